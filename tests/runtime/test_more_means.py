"""More of what an agent has: memory, servers, and how long things may be."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.runtime.scene import Scene
from zcpolicy import Narrowing
from zcpolicy.loop.messages import Message
from zcpolicy.loop.scripted import calls
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.sources import McpServer, McpTool, ToolContext, ToolResult

LOOK = ("look", {"at": "x"})

# --- memory -------------------------------------------------------------------------------------------------------------


def remembering(rules: str, **more: Any) -> tuple[Scene, list[str]]:
    """A scene whose tool `note` keeps a text, and whose tool `look` recalls; what was recalled."""
    store, found = InMemoryStore(), list[str]()

    async def keeps(arguments: dict[str, Any], context: ToolContext) -> str:
        await context.memory.remember(store, str(arguments["rest"]))
        return "kept"

    async def recalls(arguments: dict[str, Any], context: ToolContext) -> str:
        found.extend(one.text for one in await context.memory.recall(store, str(arguments["at"])))
        return "recalled"

    return Scene(rules, note=keeps, look=recalls, **more), found


@pytest.mark.parametrize(
    ("rules", "many"),
    [
        ("memory read own write own", 2),
        ("memory read own write own; runtime { recall 1 }", 1),
        ("memory read own write own; runtime { recall 0 }", 0),
        ("memory read own write own; runtime { recall 5 } }\nceiling { runtime { recall 0 }", 0),
        ("memory write own", 0),
        ("memory none", 0),
        ("", 0),
        ("memory read own write own }\nceiling { memory none", 0),
        ("memory read own write own }\nceiling { memory write own", 0),
    ],
)
def test_how_much_is_recalled(rules: str, many: int) -> None:
    scene, found = remembering(f"agent worker {{ allow any; {rules} }}")
    notes = calls(("note", {"rest": "blue one"}), ("note", {"rest": "blue two"}))
    scene.play(notes, calls(("look", {"at": "blue"})), "done")
    assert len(found) == many


def test_a_run_without_memory_recalls_nothing() -> None:
    scene, recalled = remembering("agent worker { allow any; memory read own write own }")
    scene.play(calls(("note", {"rest": "blue"})), "done")
    scene.play(calls(("look", {"at": "blue"})), "done", narrowing=Narrowing(exclude_memory=True))
    assert recalled == []


# --- servers ------------------------------------------------------------------------------------------------------------

SERVERS = """
tool forge/get(number: integer) risk read
tool mill/get(number: integer) risk read
bundle of_forge { server forge }
bundle of_mill { server mill }
"""


class Server:
    """A host's own connection. `there`: whether it can be had."""

    def __init__(self, name: str) -> None:
        self.name, self.there, self.reached = name, True, list[object]()
        parameters = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
        self.listed: Sequence[McpTool] = (McpTool("get", f"Gets of {name}.", parameters),)

    async def connect(self) -> "Server":
        if not self.there:
            raise OSError("it is away")
        return self

    async def tools(self) -> Sequence[McpTool]:
        return self.listed

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        self.reached.append((tool, dict(arguments)))
        return ToolResult(f"of {self.name}")

    async def resources(self) -> Sequence[str]:
        return ()

    async def read(self, uri: str) -> str:
        return uri

    async def prompts(self) -> Sequence[str]:
        return ()

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        return f"{name}{arguments}"

    async def close(self) -> None:
        self.there = self.there


def served(policy: str) -> tuple[Scene, Server, Server]:
    forge, mill = Server("forge"), Server("mill")
    servers = {one.name: McpServer(one.connect) for one in (forge, mill)}
    return Scene(SERVERS + policy, servers=servers), forge, mill


GETS = calls(("forge__get", {"number": 1}), ("mill__get", {"number": 2}), ("get", {"number": 3}))


@pytest.mark.parametrize(
    ("rules", "reached"),
    [
        ("connect of_forge, of_mill; allow any", (1, 1)),
        ("connect of_forge, of_mill; allow any; deny mill/get", (1, 0)),
        ("connect of_forge; allow any", (1, 0)),
        ("connect of_forge, of_mill; allow forge/get", (1, 0)),
        ("connect of_forge, of_mill; allow */get; limit 0 calls to forge/get", (0, 1)),
        ("connect of_forge, of_mill; allow any; require forge/get before mill/get", (1, 1)),
        ("connect of_forge, of_mill; allow any; require mill/get before forge/get", (0, 1)),
        ("connect of_forge, of_mill; allow any }\nceiling { connect of_mill", (0, 1)),
        ("connect of_forge, of_mill; allow any }\nceiling { connect none", (0, 0)),
    ],
)
def test_two_servers_with_a_tool_of_the_same_name(rules: str, reached: tuple[int, int]) -> None:
    scene, forge, mill = served(f"agent worker {{ {rules} }}")
    scene.play(GETS, "done")
    assert (len(forge.reached), len(mill.reached)) == reached


def test_a_server_that_is_gone_in_the_next_turn_and_back_in_the_one_after() -> None:
    scene, forge, mill = served("agent worker { connect of_forge, of_mill; allow any }")
    for there, reached in ((True, 1), (False, 1), (True, 2)):
        forge.there = there
        went = scene.play(GETS, "done")
        assert went.result.status == "done"
        shown = {spec.wire for spec in went.model.requests[0].tools}
        assert ("forge__get" in shown, "mill__get" in shown) == (there, True)
        assert len(forge.reached) == reached
    assert len(mill.reached) == 3


def test_a_tool_that_its_server_lists_no_more_or_otherwise() -> None:
    """A server grants nothing: what the policy does not know of it is malformed, or no tool."""
    scene, forge, _ = served("agent worker { connect of_forge, of_mill; allow any }")
    scene.play(GETS, "done")
    forge.listed = (
        McpTool("get", "Gets elsewhere.", {"type": "object", "properties": {"path": {"type": "string"}}}),
        McpTool("new", "Is new.", {"type": "object"}),
    )
    scene.play(calls(("forge__get", {"number": 1, "path": "/etc"}), ("forge__new", {})), "done")
    assert scene.ends()[-2:] == ["malformed", "unknown-tool"]
    forge.listed = ()
    scene.play(GETS, "done")
    assert len(forge.reached) == 1


@pytest.mark.parametrize("name", ["shel", "forge__get", ("forge", "gett"), ("forg", "get"), "*"])
def test_a_narrowing_that_names_no_tool_is_refused_and_one_to_nothing_leaves_nothing(name: Any) -> None:
    scene, _, _ = served("agent worker { connect of_forge; allow any }")
    for less in (Narrowing(deny=[name]), Narrowing(ask=[name]), Narrowing(only=[name])):
        with pytest.raises(ResolveError):
            scene.resolver.resolve("worker", session=scene.session, narrowing=less)
    run = scene.resolver.resolve("worker", session=scene.session, narrowing=Narrowing(only=[]))
    assert [*run.tools()] == []


# --- how long things may be ---------------------------------------------------------------------------------------------

TRANSCRIPT = tuple(Message("user" if number % 2 == 0 else "assistant", f"said {number}") for number in range(21))


@pytest.mark.parametrize(("rules", "shown"), [("history 4", 4), ("history 1", 1), ("history 100", 21)])
@pytest.mark.parametrize("ceiling", [False, True])
def test_a_turn_that_takes_a_long_transcript_up_shows_the_newest_of_it(ceiling: bool, rules: str, shown: int) -> None:
    where = f"agent worker {{ allow any; runtime {{ {rules} }} }}"
    if ceiling:
        where = f"agent worker {{ allow any; runtime {{ history 50 }} }}\nceiling {{ runtime {{ {rules} }} }}"
    went = Scene(where).play("done", messages=TRANSCRIPT)
    (request,) = went.model.requests
    talk = [one.text for one in request.messages]
    assert len(talk) <= shown
    assert talk[-1] == "said 20"
    assert [one.text for one in went.result.messages[:21]] == [one.text for one in TRANSCRIPT]  # which loses nothing


def test_a_context_that_has_no_room_for_the_prompt_asks_no_model() -> None:
    went = Scene("agent worker { allow any; runtime { context 1 } }").play("done")
    assert (went.result.status, went.model.requests) == ("stopped", [])


@pytest.mark.parametrize(("rules", "most"), [("tool_result 40", 40), ("tool_result 0", 0)])
def test_a_result_is_no_longer_than_any_body_says(rules: str, most: int) -> None:
    async def talks(_arguments: dict[str, Any], _context: ToolContext) -> str:
        return "la " * 1_000

    scene = Scene(
        f"agent worker {{ allow any; runtime {{ tool_result 50_000 }} }}\nceiling {{ runtime {{ {rules} }} }}",
        look=talks,
    )
    (told,) = scene.play(calls(LOOK), "done").told
    assert len(told) <= most


def test_the_time_of_a_call_is_that_of_all_its_inner_calls() -> None:
    async def slow(_arguments: dict[str, Any], _context: ToolContext) -> str:
        await asyncio.sleep(0.7)
        return "slept"

    scene = Scene("agent worker { allow any; runtime { call_timeout 1s } }", look=slow)
    steps = [{"tool": "look", "arguments": {"at": str(number)}} for number in range(4)]
    went = scene.play(calls(("pipeline", {"steps": steps})), "done")
    assert len(scene.ran) == 2
    assert went.result.status == "done"
