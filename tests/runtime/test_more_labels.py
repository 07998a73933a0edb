"""More of labels, and of what has to come before: unclear marks, sessions that go on, trees, what is shown afterwards."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import World
from tests.runtime.scene import NO, YES, Scene
from zcpolicy import Narrowing, Session
from zcpolicy.daemon.paths.run import run_once
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import ToolContext, ToolResult
from zcpolicy.sessions import fork, restore, save

LOOK = ("look", {"at": "x"})
MAIL = ("mail", {"to": "bob"})
READ = ("read", {"path": "/w/a"})
WRITE = ("write", {"path": "/w/a"})


def mails(scene: Scene, session: Session | None = None, **more: Any) -> str:
    return scene.call(*MAIL, session=session or scene.session, **more)


# --- when a call marks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "facts", "marks"),
    [
        ('when session.role == "guest"', {}, True),
        ('when session.role == "guest"', {"role": "owner"}, False),
        ('unless session.role == "owner"', {}, True),
        ('unless session.role == "owner"', {"role": "owner"}, False),
        ('when session.role == "guest" and args.at == "y"', {}, False),
        ('when session.role == "guest" or args.at == "x"', {}, True),
        ('when args.at like "https:*"', {}, False),
    ],
)
def test_what_is_not_clear_marks(condition: str, facts: dict[str, object], marks: bool) -> None:
    scene = Scene(f"context {{ role: string }}\nagent worker {{ allow any; mark untrusted on look {condition} }}")
    scene.session = scene.seat(context=facts)
    assert scene.call(*LOOK) == "ran"
    assert scene.session.labels == ({"untrusted"} if marks else set())


@pytest.mark.parametrize(
    ("rules", "answers", "marks"),
    [
        ("deny look", (), False),
        ("ask look", (NO,), False),
        ("ask look", (YES,), True),
        ("limit 0 calls to look", (), False),
        ("require read before look", (), False),
        ("autonomy readonly", (), True),
    ],
)
def test_a_call_marks_when_it_is_permitted(rules: str, answers: tuple[object, ...], marks: bool) -> None:
    scene = Scene(f"agent worker {{ allow any; mark untrusted on look; {rules} }}")
    scene.call(*LOOK, *answers)
    assert scene.session.labels == ({"untrusted"} if marks else set())


def test_a_call_that_is_no_call_does_not_mark() -> None:
    scene = Scene("agent worker { allow any; mark untrusted on any }")
    for given in ({}, {"at": 7}, "[", '{"at": "x", "at": "y"}', {"at": "x", "approved": True}):
        assert scene.call("look", given) != "ran"
    assert scene.call("l\N{CYRILLIC SMALL LETTER O}ok", {"at": "x"}) != "ran"
    assert scene.session.labels == set()


@pytest.mark.parametrize("where", ["agent", "profile", "ceiling", "narrows", "skill"])
def test_a_mark_stands_in_any_body(where: str) -> None:
    rule = "mark untrusted on look"
    bodies = {
        "agent": f"agent worker {{ allow any; {rule} }}",
        "profile": f"profile p {{ {rule} }}\nagent worker {{ allow any; use p }}",
        "ceiling": f"agent worker {{ allow any }}\nceiling {{ {rule} }}",
        "narrows": f"agent all {{ allow any }}\nagent worker narrows all {{ {rule} }}",
        "skill": f"skill s {{ {rule} }}\nagent worker {{ allow any; skills s }}",
    }
    scene = Scene(bodies[where])
    skills = ("s",) if where == "skill" else ()
    assert scene.call(*LOOK, skills=skills) == "ran"
    assert scene.session.labels == {"untrusted"}


def test_the_first_look_is_the_last() -> None:
    scene = Scene("agent worker { allow any; mark untrusted on look; deny look when marked untrusted }")
    scene.play(calls(LOOK, LOOK, LOOK), "done")
    assert scene.ends() == ["ran", "denied", "denied"]


# --- sessions that go on ------------------------------------------------------------------------------------------------

GUARDED = "agent worker { allow any; mark untrusted on look; deny mail when marked untrusted }"


def test_a_fork_has_the_labels_of_then_and_gives_none_back() -> None:
    scene = Scene(GUARDED)
    before = fork(scene.session)
    assert scene.call(*LOOK) == "ran"
    after = fork(scene.session)
    assert [mails(scene), mails(scene, before), mails(scene, after)] == ["denied", "ran", "denied"]
    assert scene.call(*LOOK, session=before) == "ran"
    assert mails(scene, before) == "denied"
    clean = scene.seat("s9")
    apart = fork(clean)
    assert scene.call(*LOOK, session=apart) == "ran"
    assert (mails(scene, clean), mails(scene, apart)) == ("ran", "denied")


def test_a_label_outlives_the_rule_that_gave_it() -> None:
    scene = Scene(GUARDED)
    assert scene.call(*LOOK) == "ran"
    scene.publish(GUARDED.replace("mark untrusted on look; ", ""))
    assert mails(scene) == "denied"
    assert mails(scene, restore(save(scene.session), clock=scene.clock)) == "denied"


def test_what_the_mark_denies_is_not_shown_from_then_on() -> None:
    scene = Scene(GUARDED)
    went = scene.play(calls(LOOK), "done")
    before, after = ({spec.wire for spec in request.tools} for request in went.model.requests)
    assert (before - after, after - before) == ({"mail"}, set())


def test_a_search_finds_no_tool_that_the_mark_denies() -> None:
    found: list[list[str]] = []

    async def searches(_arguments: dict[str, Any], context: ToolContext) -> str:
        found.append([spec.wire for spec in context.registry.search("Does mail")])
        return "found"

    scene = Scene(GUARDED, note=searches)
    scene.play(calls(("note", {"rest": 1}), LOOK, ("note", {"rest": 2})), "done")
    assert ("mail" in found[0], "mail" in found[1]) == (True, False)


# --- trees --------------------------------------------------------------------------------------------------------------

TREE = """
agent worker {{ allow any; delegate to free{}; mark untrusted on fetch; deny send_mail when marked untrusted }}
agent free {{ allow any except delegate; mark untrusted on fetch; deny send_mail when marked untrusted }}
"""


@pytest.mark.parametrize("free", [False, True])
def test_labels_go_down_and_up_also_to_an_independent_child(free: bool, tmp_path: Path) -> None:
    world = World(TREE.format(' independent because "it is trusted"' if free else ""), tmp_path)
    mail, fetch = ("send_mail", {"to": "ann"}), ("fetch", {"url": "x"})
    hand = ("delegate", {"agent": "free", "task": "do it", "independent": free})
    world.script("worker", calls(hand), calls(mail), calls(hand), "done")
    world.script("free", calls(mail, fetch), "done", calls(mail), "done")
    asyncio.run(run_once(world.host, "worker", "have it done"))
    assert world.ran == [("free", "send_mail"), ("free", "fetch")]


# --- what has to come before --------------------------------------------------------------------------------------------

BEFORE = (
    "agent worker { allow any; require read before write within 10m%s }\nagent other { allow any; delegate to worker }"
)


def writes(scene: Scene, session: Session | None = None, path: str = "/w/a", **more: Any) -> str:
    return scene.call("write", {"path": path}, session=session or scene.session, **more)


@pytest.mark.parametrize("kept", ["as it is", "saved", "forked"])
@pytest.mark.parametrize(("seconds", "ends"), [(599, "ran"), (601, "precondition")])
def test_what_came_before_is_as_old_as_it_is(seconds: int, ends: str, kept: str) -> None:
    scene = Scene(BEFORE % "")
    assert writes(scene) == "precondition"
    assert scene.call(*READ) == "ran"
    if kept == "saved":
        scene.session = restore(save(scene.session), clock=scene.clock)
    elif kept == "forked":
        scene.session = fork(scene.session)
    scene.clock.now += seconds
    assert writes(scene) == ends


def test_what_came_before_and_failed_did_not_come() -> None:
    async def fails(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
        return ToolResult("no", ok=False)

    async def raises(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
        raise OSError("no")

    for does in (fails, raises):
        scene = Scene(BEFORE % "", read=does)
        scene.call(*READ)
        assert (scene.names, writes(scene)) == (["read"], "precondition")


@pytest.mark.parametrize(
    ("path", "ends"),
    [("/w/a", "ran"), ("/w/A", "precondition"), ("/w/b", "precondition"), ("/w/e\N{COMBINING ACUTE ACCENT}", "precondition")],
)  # fmt: skip
def test_the_same_is_exactly_the_same(path: str, ends: str) -> None:
    scene = Scene(BEFORE % " same args.path")
    assert scene.call(*READ) == "ran"
    assert scene.call("read", {"path": "/w/é"}) == "ran"
    assert writes(scene, path=path) == ends


def test_of_what_came_before_the_last_that_is_the_same_counts() -> None:
    scene = Scene(BEFORE % " same args.path")
    assert scene.call(*READ) == "ran"
    scene.clock.now += 700
    assert scene.call(*READ) == "ran"
    assert scene.call("read", {"path": "/w/b"}) == "ran"
    assert (writes(scene), writes(scene, path="/w/b"), writes(scene, path="/w/c")) == ("ran", "ran", "precondition")


def test_what_came_above_counts_below_and_not_the_other_way() -> None:
    scene = Scene(BEFORE % "")
    above = scene.resolver.resolve("other", session=scene.session)
    child = scene.seat("s2")
    assert writes(scene, child, parent=above) == "precondition"
    assert scene.call(*READ, session=child, parent=above) == "ran"
    assert writes(scene) == "precondition"  # what a child read is not read here
    assert scene.call(*READ, agent="other") == "ran"
    assert writes(scene, scene.seat("s3"), parent=above) == "ran"


@pytest.mark.parametrize(("client", "ends"), [("ann", "ran"), ("bob", "precondition")])
def test_by_any_agent_is_by_one_of_this_client(client: str, ends: str) -> None:
    scene = Scene(BEFORE % " by any agent")
    assert scene.call(*READ, agent="other", session=scene.seat("s2", client)) == "ran"
    assert writes(scene) == ends


def test_steps_of_one_pipeline_do_not_come_before_each_other() -> None:
    """Every inner call is decided before the first runs."""
    scene = Scene(BEFORE % "")
    steps = [{"tool": tool, "arguments": given} for tool, given in (READ, WRITE)]
    scene.play(calls(("pipeline", {"steps": steps})), "done")
    assert scene.names == []
    scene.play(calls(READ, WRITE), "done")
    assert scene.names == ["read", "write"]


def test_whatever_came_before_nothing_is_granted() -> None:
    scene = Scene("agent worker { allow read, write; deny write; require read before write }")
    assert scene.call(*READ) == "ran"
    assert writes(scene) == "denied"
    less = Scene("agent worker { allow read, write; require read before write }")
    assert less.call(*READ) == "ran"
    assert writes(less, narrowing=Narrowing(only=["read"])) == "outside-only"


@pytest.mark.parametrize("body", ["ceiling { %s }", "agent less narrows worker { %s }"])
def test_it_stands_in_any_body(body: str) -> None:
    scene = Scene("agent worker { allow any }\n" + body % "require read before write")
    agent = "less" if "less" in body else "worker"
    assert writes(scene, agent=agent) == "precondition"
    assert scene.call(*READ, agent=agent) == "ran"
    assert writes(scene, agent=agent) == "ran"


def test_a_history_that_cannot_be_read_denies() -> None:
    scene = Scene(BEFORE % "")
    assert writes(scene, scene.seat("s2", history=None)) == "precondition"
