"""One seam, scenarios 22 to 29d, on every way to a turn (what tests/daemon does not have on each of them already)."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import GIVEN, NOON, WAYS, World, turn
from tests.runtime.scene import Scene, forge, reached
from zcpolicy import Narrowing
from zcpolicy.daemon.paths.run import run_due
from zcpolicy.daemon.schedule import Job
from zcpolicy.facts import ToolName
from zcpolicy.loop.messages import ModelResponse
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import HostTool, SkillSource, ToolContext
from zcpolicy.sessions import fork, restore, save

ways = pytest.mark.parametrize("way", WAYS)
BELOW_BOSS = ("delegate", "step", "later")
"""Ways on which `boss` stands above, who may reach `worker` and `free` and nobody else."""

READER = "agent free { allow file_read }\n"
ISSUE: tuple[str, dict[str, Any]] = ("forge__get_issue", {"number": 7})
MAIL: tuple[str, dict[str, Any]] = ("send_mail", {"to": "ann"})
FETCH: tuple[str, dict[str, Any]] = ("fetch", {"url": "x"})


def wire(tool: ToolName) -> str:
    return tool if isinstance(tool, str) else "__".join(tool)


def everything() -> ModelResponse:
    """A call of each tool that only notes that it ran."""
    return calls(*((wire(tool), given) for tool, given in GIVEN.items()))


def hand(agent: str, task: str = "do it", **more: Any) -> tuple[str, Mapping[str, Any]]:
    return ("delegate", {"agent": agent, "task": task, **more})


def refused(world: World) -> list[tuple[str, str]]:
    """Who was refused a call, and why."""
    return [(one.identity.agent, one.data["reason"]) for one in world.of_kind("call") if one.data["phase"] == "refused"]


# --- 22: also through a skill, a resumed session ------------------------------------------------------------------------

WITH_SKILL = """
tool forge/get_issue(number: integer) risk read
tool load_skill(skill: string) risk low
bundle all_of_forge { server forge }
skill digging { deny mail }
agent owner { connect all_of_forge; allow any; skills digging }
agent worker { allow any; skills digging; %s }
"""


def digging(ran: list[str]) -> SkillSource:
    """A skill that brings tools which are called as those of the server are."""

    def tool(name: str) -> HostTool:
        async def run(_arguments: dict[str, Any], _context: ToolContext) -> str:
            ran.append(name)
            return "dug"

        return HostTool(name, "Digs.", {"type": "object", "properties": {}}, run)

    return SkillSource("Digs.", "Dig deep with forge__get_issue.", (tool("forge__get_issue"), tool("get_issue")))


@pytest.mark.parametrize("rules", ["", "connect none", "deny forge/get_issue"])
def test_22_a_skill_brings_no_tool_of_a_server(rules: str, tmp_path: Path) -> None:
    """Agent A has bundle x, agent B none: B is neither shown nor can call a tool of x, on every construction path, also through a tool search, a pipeline tool, a skill or a resumed session."""
    ran: list[str] = []
    scene = Scene(WITH_SKILL % rules, servers={"forge": forge(tmp_path / "log")})
    scene.sources = replace(scene.sources, skills={"digging": digging(ran)})
    went = scene.play(calls(ISSUE, ("get_issue", {"number": 7})), "done", skills=("digging",))
    shown = {spec.wire for request in went.model.requests for spec in request.tools}
    assert shown & {"forge__get_issue", "get_issue"} == set()
    assert (ran, reached(tmp_path / "log"), len(went.told)) == ([], [], 2)


@pytest.mark.parametrize("kept", ["as it is", "saved", "forked"])
def test_22_a_session_that_goes_on_has_the_tools_of_whom_it_is_now(kept: str, tmp_path: Path) -> None:
    """B is neither shown nor can call a tool of x, on every construction path, also through a tool search, a pipeline tool, a skill or a resumed session."""
    log = tmp_path / "log"
    scene = Scene(WITH_SKILL % "", servers={"forge": forge(log)})
    first = scene.play(calls(ISSUE), "done", agent="owner")
    assert reached(log) == ["get_issue 7"]
    if kept == "saved":
        scene.session = restore(save(scene.session), clock=scene.clock)
    elif kept == "forked":
        scene.session = fork(scene.session)
    steps = {"steps": [{"tool": "forge__get_issue", "arguments": {"number": 7}}]}
    went = scene.play(calls(ISSUE, ("pipeline", steps)), "done", messages=first.result.messages)
    assert "forge__get_issue" not in {spec.wire for request in went.model.requests for spec in request.tools}
    assert reached(log) == ["get_issue 7"]  # and no other


# --- 23, 24 -------------------------------------------------------------------------------------------------------------


def test_23_the_tools_and_the_answers_are_the_same_on_every_path(tmp_path: Path) -> None:
    """Policy allows only `file_read`: the tool list and the answers for every tool are the same on every construction path."""
    found: dict[str, Any] = {}

    async def story(way: str) -> None:
        folder = tmp_path / way
        folder.mkdir()
        world = World("agent worker { allow file_read }\n" + READER, folder)
        model = world.script("worker", everything(), "done")
        assert await turn(way, world) == "done"
        assert world.ran == [("worker", "file_read")]
        found[way] = (model.requests[0].tools, model.requests[0].system, world.told("worker"))

    for way in WAYS:
        asyncio.run(story(way))
    assert [one for one in found.values() if one != found["run"]] == []
    assert set(found) == set(WAYS)


NESTED = """
profile goes_deep { delegate to deepest independent because "it knows"; delegate depth 4 }
agent worker { use goes_deep; allow any; delegate to free, deeper }
agent free { use goes_deep; allow any; delegate to deeper }
agent deeper { use goes_deep; allow any }
agent deepest { allow any }
"""


@ways
def test_24_a_narrowing_holds_at_any_depth(way: str, tmp_path: Path) -> None:
    """A per-run narrowing of `["cron_add"]`: nothing else is callable, in the run and in every child of it at any depth."""

    async def story() -> None:
        world = World(NESTED, tmp_path)
        world.script("worker", calls(hand("free")), "done")
        world.script("free", calls(hand("deeper")), everything(), "done")
        world.script("deeper", calls(hand("deepest")), everything(), "done")
        world.script("deepest", everything(), "done")
        await turn(way, world, narrowing=Narrowing(only=["cron_add", "delegate"]))
        line = ["free"] if way in BELOW_BOSS else ["deepest", "deeper", "free"]  # `boss` reaches no further
        assert world.ran == [(agent, "cron_add") for agent in line]

    asyncio.run(story())


@ways
def test_24_alone(way: str, tmp_path: Path) -> None:
    """A per-run narrowing of `["cron_add"]`: nothing else is callable"""

    async def story() -> None:
        world = World(NESTED, tmp_path)
        world.script("worker", calls(hand("free")), everything(), "done")
        world.script("free", everything(), "done")
        await turn(way, world, narrowing=Narrowing(only=["cron_add"]))
        assert {name for _, name in world.ran} == {"cron_add"}
        if way != "delegate":  # where somebody stands above who delegates, that is part of the narrowing
            assert world.ran == [("worker", "cron_add")]
            assert world.models["free"].requests == []  # to delegate is a call as well

    asyncio.run(story())


# --- 27, 28: another agent ----------------------------------------------------------------------------------------------

PAIR = """
agent worker { allow file_read, delegate, shell; delegate to free, absent; runtime { history 20 } }
agent free { allow file_read, send_mail }
agent absent { allow file_read }
"""


@ways
def test_27_another_agent_has_its_own_policy_transcript_and_provider(way: str, tmp_path: Path) -> None:
    """A nested step names another agent: that agent's own policy, transcript and provider; the parent's history never reaches it; records carry both names."""

    async def story() -> None:
        world = World(PAIR, tmp_path)
        world.script(
            "worker",
            calls(("file_read", {"path": "/w/a"}), text="the secret is 7"),
            calls(hand("free", "only this")),
            "done",
        )
        child = world.script("free", everything(), "done below")
        await turn(way, world)
        assert world.told("worker")[-1] == "done below"
        assert ("free", "file_read") in world.ran
        assert ("free", "shell") not in world.ran  # its delegator's own, and not its
        assert ("free", "send_mail") not in world.ran  # its own, and not its delegator's
        first = child.requests[0].messages
        assert [one.text for one in first] == ["only this"]
        assert "secret" not in str([request.messages for request in child.requests])
        assert {one.data["model"] for one in world.of_kind("model") if one.identity.agent == "free"} == {
            "model of free"
        }
        lines = {tuple(agent for agent, _ in one.identity.line) for one in world.events if one.identity.agent == "free"}
        assert {line[:1] for line in lines} == {("worker",)}

    asyncio.run(story())


CANNOT_BE = {
    "an agent that is not there": "nobody",
    "one that may not be reached": "boss",
    "one without a model": "absent",
}


@ways
@pytest.mark.parametrize("case", CANNOT_BE)
def test_28_what_cannot_be_fails_the_step_and_nothing_runs_as_the_parent(case: str, way: str, tmp_path: Path) -> None:
    """A nested step names an unknown agent, or re-assembly fails: the step fails, nothing runs as the parent."""

    async def story() -> None:
        world = World(PAIR, tmp_path)
        model = world.script("worker", calls(hand(CANNOT_BE[case], "run the shell")), "done")
        await turn(way, world)
        assert world.told("worker")[-1].startswith("[failed]")
        assert world.ran == []
        assert len(model.requests) == 2  # the parent's model was told, and was not asked to do the task
        assert "run the shell" not in str([one.text for one in model.requests[0].messages])
        assert [one.identity.agent for one in world.of_kind("failed")] == [CANNOT_BE[case]]

    asyncio.run(story())


# --- 29: unattended -----------------------------------------------------------------------------------------------------

ASKING = "agent worker { allow any except delegate; ask shell, send_mail }\nagent free { allow any }\n"
UNATTENDED = [way for way in WAYS if way not in ("channel", "rpc")]


@pytest.mark.parametrize("way", [*UNATTENDED, "scheduled", "heartbeat", "planned"])
def test_29_what_asks_is_denied_where_nobody_is(way: str, tmp_path: Path) -> None:
    """An unattended run with `ask` on a tool: denied and recorded, never silently run."""

    async def story() -> None:
        world = World(ASKING, tmp_path)
        if way == "planned":
            world.script("worker", calls(("schedule", {"agent": "", "text": "x"})), "planned")
            await turn("channel", world)  # a person was there when it was planned
        world.script("worker", calls(("shell", {"command": "ls"}), MAIL, ("file_read", {"path": "/w/a"})), "done")
        if way in ("scheduled", "heartbeat"):
            every = 60.0 if way == "heartbeat" else None
            world.schedule.add(Job(NOON, "worker", "do it", every=every, surface=way))
        if way in WAYS:
            await turn(way, world)
        else:
            (ran,) = await run_due(world.host, world.schedule, NOON)
            assert ran.refused == ""
        assert world.ran == [("worker", "file_read")]
        assert refused(world) == [("worker", "no-approver")] * 2

    asyncio.run(story())


# --- 29a: later ---------------------------------------------------------------------------------------------------------

LATER = """
agent worker {
    allow any except delegate
    limit 2 calls to cron_add per day
    mark untrusted on fetch
    deny send_mail when marked untrusted
    delegate to free
}
agent free { allow any except delegate }
"""


@ways
@pytest.mark.parametrize("agent", ["", "free"])
@pytest.mark.parametrize("anew", [False, True])
def test_29a_a_run_for_later_is_bounded_by_the_call_that_made_it(
    anew: bool, agent: str, way: str, tmp_path: Path
) -> None:
    """A run that a call schedules for later is a bounded child of the execution that made the call: same narrowing, same limits, same labels."""
    only = Narrowing(only=["cron_add", "send_mail", "fetch", "schedule"])

    async def story() -> None:
        world = World(LATER, tmp_path)
        plan = ("schedule", {"agent": agent, "text": "all of it"})
        world.script("worker", calls(("cron_add", {"text": "1"}), FETCH, plan), "planned")
        await turn(way, world, narrowing=only)
        assert world.ran == [("worker", "cron_add"), ("worker", "fetch")]
        if anew:
            world = World(LATER, tmp_path)
        world.ran.clear()
        world.script(agent or "worker", everything(), calls(*[("cron_add", {"text": "2"})] * 3), "done")
        (ran,) = await run_due(world.host, world.schedule, NOON)
        assert ran.refused == ""
        names = [name for _, name in world.ran]
        assert set(names) == {"fetch", "cron_add"}  # the narrowing, and the label: no mail
        assert names.count("cron_add") == (2 if anew else 1)  # one pot of two calls; in memory it ends with the process

    asyncio.run(story())


# --- 29b to 29d: what goes down, what comes up --------------------------------------------------------------------------

REACHES = """
agent worker { allow any; delegate to free; delegate depth 3 }
agent free { allow any; delegate to third independent because "it may more"; delegate depth 3 }
agent third { allow any except delegate }
"""


@ways
def test_29b_whom_the_first_may_not_reach_nobody_below_it_reaches(way: str, tmp_path: Path) -> None:
    """A under a narrowing delegates to B, B independently to C, which A may not reach: refused."""

    async def story() -> None:
        world = World(REACHES, tmp_path)
        world.script("worker", calls(hand("free")), "done")
        world.script("free", calls(hand("third", independent=True)), "done")
        world.script("third", everything(), "done")
        await turn(way, world, narrowing=Narrowing(only=["delegate", "shell", "send_mail"]))
        assert world.told("worker") == ["done"]
        assert world.told("free")[0].startswith("[failed]")
        assert (world.ran, world.models["third"].requests) == ([], [])

    asyncio.run(story())


@ways
def test_29b_an_independent_child_is_under_the_narrowing_and_spends_from_the_root(way: str, tmp_path: Path) -> None:
    """An independent child under a narrowing of `["cron_add"]` can call nothing else, and its spending counts against the root."""
    policy = """
    agent worker {
        allow delegate, cron_add
        delegate to free independent because "it may more"
        limit 3 calls to cron_add
    }
    agent free { allow any }
    """

    async def story() -> None:
        world = World(policy, tmp_path)
        world.script("worker", calls(hand("free", independent=True)), calls(*[("cron_add", {"text": "x"})] * 3), "done")
        world.script("free", everything(), calls(("cron_add", {"text": "y"})), "done")
        await turn(way, world, narrowing=Narrowing(only=["cron_add", "delegate"]))
        assert world.ran == [("free", "cron_add"), ("free", "cron_add"), ("worker", "cron_add")]

    asyncio.run(story())


MARKED = """
agent worker { allow any; mark untrusted on fetch; deny send_mail when marked untrusted; delegate to free }
agent free { allow any; mark untrusted on fetch }
"""


@ways
@pytest.mark.parametrize("fails", [False, True])
def test_29c_what_a_child_has_read_marks_its_parent(fails: bool, way: str, tmp_path: Path) -> None:
    """A child fetches untrusted content and returns text: the parent's session carries the label from then on."""

    async def story() -> None:
        world = World(MARKED, tmp_path)
        if fails:
            world.fails.add("fetch")
        world.script("worker", calls(MAIL), calls(hand("free")), calls(MAIL), "done")
        world.script("free", calls(FETCH), "what a stranger wrote")
        await turn(way, world)
        assert world.ran == [("worker", "send_mail"), ("free", "fetch")]
        assert ("worker", "denied") in refused(world)

    asyncio.run(story())


@ways
@pytest.mark.parametrize("parallel", ["on", "off"])
def test_29c_also_within_one_response(parallel: str, way: str, tmp_path: Path) -> None:
    """A child fetches untrusted content and returns text: the parent's session carries the label from then on."""

    async def story() -> None:
        rules = MARKED.replace("delegate to free", f"delegate to free; runtime {{ parallel_tools {parallel} }}", 1)
        world = World(rules, tmp_path)
        world.script("worker", calls(hand("free"), MAIL), calls(MAIL), "done")
        world.script("free", calls(FETCH), "what a stranger wrote")
        await turn(way, world)
        assert ("free", "fetch") in world.ran
        at_once = (
            1 if parallel == "on" else 0
        )  # the label comes with the answer: what runs beside it may be before that
        assert world.ran.count(("worker", "send_mail")) <= at_once

    asyncio.run(story())


@ways
@pytest.mark.parametrize("parallel", ["on", "off"])
def test_29d_in_one_batch_the_mail_is_decided_under_the_mark_of_the_fetch(
    parallel: str, way: str, tmp_path: Path
) -> None:
    """A fetch fails with an error text: the session is marked all the same. In a batch [fetch, mail] the mail is decided under the mark of the fetch."""

    async def story() -> None:
        world = World(MARKED.replace("delegate to free", f"runtime {{ parallel_tools {parallel} }}"), tmp_path)
        world.fails.add("fetch")
        world.script("worker", calls(FETCH, MAIL), calls(MAIL), "done")
        await turn(way, world)
        assert world.ran == [("worker", "fetch")]
        assert refused(world) == [("worker", "denied")] * 2

    asyncio.run(story())
