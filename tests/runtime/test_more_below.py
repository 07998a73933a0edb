"""More of what is below an agent, and of what it is shown: children, skills."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policy_lang import PolicyError, loads
from tests.daemon.world import GIVEN, World, turn
from tests.person import Person
from tests.runtime.scene import TOOLS, YES, Scene
from zcpolicy.daemon.paths.run import run_once
from zcpolicy.loop.scripted import calls
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.sources import SkillSource, ToolContext
from zcpolicy.sessions import fork, restore, save

LOOK = ("look", {"at": "x"})
MAIL = ("mail", {"to": "bob"})
SHELL = ("shell", {"command": "ls"})

# --- who may have whom do something -------------------------------------------------------------------------------------

FREELY = 'independent because "it is trusted"'


@pytest.mark.parametrize(
    ("policy", "line", "free", "reached"),
    [
        ("agent a { allow any; delegate to b } agent b { allow any; delegate to c } agent c { allow any }", "abc", "", "ab"),
        ("agent a { allow any; delegate to b, c } agent b { allow any; delegate to c } agent c { allow any }", "abc", "", "ab"),
        ("agent a { allow any; delegate to b, c; delegate depth 2 } agent b { allow any; delegate to c } agent c { allow any }", "abc", "", "abc"),
        ("agent a { allow any; delegate to b; delegate depth 2 } agent b { allow any; delegate to c } agent c { allow any }", "abc", "", "ab"),
        (f"agent a {{ allow any; delegate to b {FREELY} }} agent b {{ allow any }}", "ab", "b", "ab"),
        ("agent a { allow any; delegate to b } agent b { allow any }", "ab", "b", "a"),
        ("agent a { allow any; delegate to b } agent b { allow any } ceiling { delegate none }", "ab", "", "a"),
        ("agent a { allow any; delegate to b; delegate depth 0 } agent b { allow any }", "ab", "", "a"),
        ("agent a { allow any; delegate to b, c; delegate depth 3 } agent b { allow any; delegate to c; delegate depth 3 } agent c { allow any } ceiling { delegate depth 1 }", "abc", "", "ab"),
        ("agent a { allow any; delegate to b; delegate depth 2 } agent b narrows a { deny mail }", "abb", "", "ab"),
        ("agent a { allow any; delegate to c } agent b narrows a { delegate none } agent c { allow any }", "bc", "", "b"),
        ("agent a { allow any; delegate to b, a; delegate depth 2 } agent b { allow any; delegate to a; delegate depth 2 }", "aba", "", "!"),
        (f"agent a {{ allow any; delegate to b {FREELY}; delegate depth 2 }} agent b {{ allow any; delegate to c }} agent c {{ allow any }}", "abc", "b", "abc"),
        (f"agent a {{ allow any; delegate to b {FREELY} }} agent b {{ allow any; delegate to c; delegate depth 9 }} agent c {{ allow any }}", "abc", "b", "ab"),
    ],
)  # fmt: skip
def test_how_far_down_a_line_goes(policy: str, line: str, free: str, reached: str) -> None:
    """`line`: who is to have whom do something. `free`: whom independently. `reached`: how far it comes."""
    split = policy.replace(" agent ", "\nagent ").replace(" ceiling ", "\nceiling ")
    if reached == "!":
        with pytest.raises(PolicyError):
            Scene(split)
        return
    scene = Scene(split)
    run, came = scene.resolver.resolve(line[0], session=scene.session), line[0]
    for number, name in enumerate(line[1:]):
        try:
            run = scene.resolver.resolve(
                name, session=scene.seat(f"c{number}"), parent=run, independent=True if name in free else None
            )
        except ResolveError:
            break
        came += name
    assert came == reached


def test_who_is_independent_says_why() -> None:
    with pytest.raises(PolicyError):
        loads(f"{TOOLS} agent a {{ allow look; delegate to b independent }}\nagent b {{ allow look }}")


WITH = """
agent worker {{ allow any; {}; delegate to free{} }}
agent free {{ allow any except delegate; ask send_mail }}
{}
"""


@pytest.mark.parametrize(
    ("rules", "ceiling", "bounded", "free"),
    [
        ("deny shell", "", False, True),
        ("", "ceiling { deny shell }", False, False),
        ("only delegate, fetch", "", False, True),
        ("autonomy { read allow; low allow; medium allow; high deny }", "", False, True),
        ("autonomy supervised", "", False, True),  # nobody is there to be asked
        ("limit 0 calls to shell", "", False, False),
        ("deny shell when agent.depth > 0", "", False, True),
        ("require file_read before shell", "", False, True),
    ],
)
def test_an_independent_child_is_free_of_its_delegators_own_bodies_only(
    rules: str, ceiling: str, bounded: bool, free: bool, tmp_path: Path
) -> None:
    found: list[bool] = []
    for independent in (False, True):
        folder = tmp_path / str(independent)
        folder.mkdir()
        world = World(
            WITH.format(rules or "deny post", f" {FREELY}", ceiling).replace(
                "autonomy supervised", "autonomy supervised; auto_approve delegate"
            ),
            folder,
        )
        world.script("worker", calls(("delegate", {"agent": "free", "task": "x", "independent": independent})), "done")
        world.script("free", calls(("shell", {"command": "ls"})), "done")
        asyncio.run(run_once(world.host, "worker", "have it done"))
        assert len(world.models["free"].requests) == 2
        found.append(("free", "shell") in world.ran)
    assert found == [bounded, free]


@pytest.mark.parametrize(
    ("above", "independent", "asked"),
    [("allow any", False, 1), ("allow any; approval none", False, 0), ("allow any; approval none", True, 1)],
)
def test_whoever_may_not_be_asked_above_is_not_asked_below(above: str, independent: bool, asked: int) -> None:
    scene = Scene(f"agent worker {{ {above}; delegate to free {FREELY} }}\nagent free {{ allow any; ask shell }}")
    parent = scene.resolver.resolve("worker", session=scene.session)
    person = Person(YES)
    scene.play(
        calls(SHELL),
        "done",
        agent="free",
        session=scene.seat("c"),
        parent=parent,
        independent=independent,
        person=person,
    )
    assert (len(person.asked), len(scene.ran)) == (asked, asked)


@pytest.mark.parametrize("independent", [False, True])
def test_where_nobody_sits_nobody_is_asked_below(independent: bool) -> None:
    scene = Scene(f"agent worker {{ allow any; delegate to free {FREELY} }}\nagent free {{ allow any; ask shell }}")
    parent = scene.resolver.resolve("worker", session=scene.seat(interactive=False))
    person = Person(YES)
    scene.play(
        calls(SHELL),
        "done",
        agent="free",
        session=scene.seat("c"),
        parent=parent,
        independent=independent,
        person=person,
    )
    assert (person.asked, scene.ran, scene.ends()) == ([], [], ["no-approver"])


def test_the_rules_of_all_above_are_about_who_acts() -> None:
    scene = Scene(
        'agent worker { allow any; deny shell when agent.name == "free"; deny mail when agent.depth == 0; delegate to free }\n'
        "agent free { allow any }"
    )
    run = scene.resolver.resolve("worker", session=scene.session)
    scene.play(calls(SHELL, MAIL), "done", agent="free", session=scene.seat("c"), parent=run)
    scene.play(calls(SHELL, MAIL), "done")
    assert scene.ends() == ["denied", "ran", "ran", "denied"]


@pytest.mark.parametrize(
    ("rules", "facts", "shown"),
    [
        ("ask shell", {}, True),
        ("ask shell; approval none", {}, False),
        ("ask shell", {"interactive": False}, False),
        ('ask shell; approval { route "ops" }', {"interactive": False}, True),
        ("deny shell when agent.depth == 0", {}, False),
        ('deny shell when args.command runs any ["ls"]', {}, True),
        ("deny shell when marked untrusted", {"labels": ["untrusted"]}, False),
        ("autonomy readonly", {}, False),
        ("only look", {}, False),
    ],
)
def test_what_is_denied_whatever_the_arguments_is_not_shown(rules: str, facts: dict[str, Any], shown: bool) -> None:
    scene = Scene(f"agent worker {{ allow any; {rules} }}")
    went = scene.play("done", session=scene.seat(**facts))
    assert ("shell" in {spec.wire for spec in went.model.requests[0].tools}) == shown


# --- skills -------------------------------------------------------------------------------------------------------------


def skilled(rules: str, agent: str = "allow any") -> Scene:
    """A scene whose tool `note` loads the skill `s`."""

    async def loads_it(arguments: dict[str, Any], context: ToolContext) -> str:
        try:
            return context.load_skill(str(arguments["rest"]))
        except ResolveError:
            return "no such skill"

    scene = Scene(
        f"skill s {{ {rules} }}\nskill other {{ deny pay }}\n"
        f"agent worker {{ {agent}; skills s, other; delegate to free {FREELY} }}\nagent free {{ allow any; skills other }}",
        note=loads_it,
    )
    known = {name: SkillSource(f"Has {name}.", f"How to {name}.") for name in ("s", "other")}
    scene.sources = replace(scene.sources, skills=known)
    return scene


LOAD = ("note", {"rest": "s"})
OTHER = ("note", {"rest": "other"})


@pytest.mark.parametrize(
    ("rules", "call", "ends"),
    [
        ("deny shell", SHELL, "denied"),
        ("only note, look", SHELL, "outside-only"),
        ("only none", LOOK, "outside-only"),
        ("autonomy readonly", SHELL, "autonomy"),
        ("limit 1 calls to look", LOOK, "budget"),
        ("ask shell; approval none", SHELL, "no-approver"),
        ("require read before shell", SHELL, "precondition"),
        ("deny look when marked untrusted; mark untrusted on note", LOOK, "ran"),
        ('deny shell when agent.name == "free"', SHELL, "ran"),
    ],
)  # fmt: skip
def test_a_skill_that_is_loaded_half_way(rules: str, call: tuple[str, dict[str, Any]], ends: str) -> None:
    scene = skilled(rules)
    scene.play(calls(call), calls(LOAD), calls(call), *([calls(call)] if "limit" in rules else []), "done")
    assert (scene.ends()[0], scene.ends()[-1]) == ("ran", ends)


def test_what_a_skill_restricts_lasts_and_one_that_closes_skills_lets_no_other_in() -> None:
    scene = skilled("skills none; deny shell")
    went = scene.play(calls(LOAD), calls(OTHER), "done")
    assert went.told == ["How to s.", "no such skill"]
    assert scene.call(*SHELL) == "denied"
    assert scene.call("pay", {"amount": 1}) == "ran"
    for on in (restore(save(scene.session), clock=scene.clock), fork(scene.session)):
        assert scene.call(*SHELL, session=on) == "denied"
    assert scene.call(*SHELL, session=scene.seat("s2")) == "ran"


@pytest.mark.parametrize("rules", ["delegate none", "delegate depth 0"])
def test_a_skill_that_ends_delegating(rules: str) -> None:
    scene = skilled(rules)
    run = scene.resolver.resolve("worker", session=scene.session)
    scene.resolver.resolve("free", session=scene.seat("c1"), parent=run)
    scene.play(calls(LOAD), "done")
    for parent in (run, scene.resolver.resolve("worker", session=scene.session)):
        with pytest.raises(ResolveError):
            scene.resolver.resolve("free", session=scene.seat("c2"), parent=parent)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_a_skill_reaches_every_child(before: bool, independent: bool) -> None:
    """Also one that was there before it was loaded."""
    scene = skilled("deny shell")
    run = scene.resolver.resolve("worker", session=scene.session)
    more: dict[str, Any] = {"session": scene.seat("c"), "parent": run, "independent": independent}
    if before:
        child = scene.resolver.resolve("free", **more)
        scene.play(calls(LOAD), "done")
        assert child.decide("shell", {"command": "ls"}).effect == "deny"
    else:
        scene.play(calls(LOAD), "done")
        run = scene.resolver.resolve("worker", session=scene.session)
        more["parent"] = run
        scene.play(calls(SHELL), "done", agent="free", **more)
        assert scene.ends()[-1] == "denied"


def test_a_step_that_loads_a_skill_is_followed_by_nothing_that_it_denies() -> None:
    scene = skilled("deny mail")
    steps = [{"tool": "note", "arguments": {"rest": "s"}}, {"tool": "mail", "arguments": {"to": "b"}}]
    scene.play(calls(("pipeline", {"steps": steps}), MAIL), "done")
    assert scene.names == ["note"]


def test_what_a_child_loads_does_not_bind_its_delegator() -> None:
    scene = skilled("deny look", "allow any; deny pay when agent.depth > 3")
    run = scene.resolver.resolve("worker", session=scene.session)
    scene.play(calls(OTHER), calls(("pay", {"amount": 1})), "done", agent="free", session=scene.seat("c"), parent=run)
    assert scene.ends()[-1] == "denied"
    assert scene.call("pay", {"amount": 1}) == "ran"


# --- on the ways of a host --------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "delegate", "step"])
def test_an_agent_that_may_nothing_is_shown_nothing(way: str, tmp_path: Path) -> None:
    world = World("agent worker { allow any; only none }\nagent free { allow any }", tmp_path)
    world.script("worker", calls(*((name, given) for name, given in GIVEN.items() if isinstance(name, str))), "done")
    asyncio.run(turn(way, world))
    assert (world.shown("worker"), world.ran) == (set(), [])
