"""More of approvals: who has to say yes, how far a yes reaches, and what waits while a person thinks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.person import Person
from tests.runtime.scene import EXACT, NO, YES, Scene, Turn
from zcpolicy import Session
from zcpolicy.approvals.question import Answer, Approve, Later, Question
from zcpolicy.loop.messages import ModelResponse
from zcpolicy.loop.scripted import Step, calls
from zcpolicy.loop.turn import TurnState
from zcpolicy.sessions import fork, restore, save

LS = ("shell", {"command": "ls"})
MAIL = ("mail", {"to": "bob"})
LOOK = ("look", {"at": "x"})
TOOL = Approve("tool", by="ada")

# --- who has to say yes -------------------------------------------------------------------------------------------------

TWO_ROUTES = """
agent worker { allow any; ask shell; approval { route "mine", remember exact, timeout 5s } }
ceiling { ask shell; approval { route "theirs", remember exact, timeout 1s } }
"""


async def silent(_question: Question) -> Answer:
    await asyncio.sleep(60)
    return YES


def test_of_two_routes_one_says_yes_and_the_other_nothing() -> None:
    scene = Scene(TWO_ROUTES)
    scene.play(calls(LS), "done", routes={"mine": Person(EXACT), "theirs": silent})
    assert (scene.names, scene.ends()) == ([], ["no-approver"])


def test_of_two_routes_each_says_yes() -> None:
    scene = Scene(TWO_ROUTES)
    mine, theirs = Person(EXACT), Person(EXACT)
    scene.play(calls(LS, LS), "done", routes={"mine": mine, "theirs": theirs})
    assert (scene.names, len(mine.asked), len(theirs.asked)) == (["shell", "shell"], 1, 1)


@pytest.mark.parametrize(
    ("policy", "agent", "ends"),
    [
        ("agent worker { allow any; ask shell } ceiling { approval none }", "worker", "no-approver"),
        ("agent worker { allow any except shell; allow shell with approval; approval none }", "worker", "no-approver"),
        ("agent worker { allow any; autonomy supervised; approval none }", "worker", "no-approver"),
        ("profile alone { approval none } agent worker { allow any; ask shell } agent less narrows worker { use alone }", "less", "no-approver"),
        ("agent worker { allow any; approval none }", "worker", "ran"),
        ("profile alone { approval none } agent worker { allow any } agent less narrows worker { use alone }", "less", "ran"),
    ],
)  # fmt: skip
def test_where_nobody_is_asked_every_prompt_is_a_deny(policy: str, agent: str, ends: str) -> None:
    person = Person(YES)
    scene = Scene(policy)
    scene.play(calls(LS), "done", agent=agent, person=person)
    assert (scene.ends(), person.asked) == ([ends], [])


def test_a_profile_without_approval_leaves_the_agent_that_is_narrowed_its_person() -> None:
    policy = (
        "profile alone { approval none } agent worker { allow any; ask shell } agent less narrows worker { use alone }"
    )
    assert Scene(policy).call(*LS, YES) == "ran"


@pytest.mark.parametrize(
    ("rules", "questions"),
    [
        ("autonomy supervised; auto_approve shell", 0),
        ("autonomy supervised; auto_approve shell; ask shell", 1),
        ("autonomy supervised; auto_approve look", 1),
        ("auto_approve shell } ceiling { autonomy supervised", 1),
        ("autonomy supervised; auto_approve shell } ceiling { autonomy supervised", 1),
    ],
)
def test_what_is_approved_beforehand_is_the_agents_own_cap(rules: str, questions: int) -> None:
    person = Person(YES)
    scene = Scene(f"agent worker {{ allow any; {rules} }}")
    scene.play(calls(LS), "done", person=person)
    assert (scene.names, len(person.asked)) == (["shell"], questions)


def test_a_plain_grant_beside_one_with_approval_needs_nobody() -> None:
    scene = Scene('agent worker { allow shell when args.command runs only ["ls"]; allow shell with approval }')
    assert scene.call("shell", {"command": "ls"}) == "ran"
    assert scene.call("shell", {"command": "Ls"}, NO) != "ran"
    assert scene.call("shell", {"command": "rm x"}, YES) == "ran"


def test_a_deny_that_is_not_clear_asks_and_one_that_is_denies() -> None:
    scene = Scene(
        'context { role: string } agent worker { allow any; deny mail when session.role == "guest" unclear ask }'
    )
    assert scene.call(*MAIL, YES) == "ran"  # nobody told the role
    assert scene.call(*MAIL, session=scene.seat("s2", context={"role": "guest"})) == "denied"
    assert scene.call(*MAIL, session=scene.seat("s3", context={"role": "owner"})) == "ran"


# --- how far a yes reaches ----------------------------------------------------------------------------------------------

REMEMBERS = "agent worker { allow any; ask shell; approval { remember tool for 10m } }"


def again(scene: Scene, session: Session, command: str = "id") -> bool:
    """Whether somebody is asked about a call."""
    person = Person(NO)
    scene.play(calls(("shell", {"command": command})), "done", session=session, person=person)
    return person.asked != []


def test_a_yes_to_a_tool_is_of_the_session_and_not_of_its_fork() -> None:
    scene = Scene(REMEMBERS)
    assert scene.call(*LS, TOOL) == "ran"
    assert not again(scene, scene.session)
    assert again(scene, fork(scene.session))
    assert again(scene, scene.seat("s2"))


def test_a_yes_to_a_tool_stands_when_the_session_goes_on_and_ends_in_time() -> None:
    scene = Scene(REMEMBERS)
    assert scene.call(*LS, TOOL) == "ran"
    on = restore(save(scene.session), clock=scene.clock)
    scene.clock.now += 599
    assert not again(scene, on)
    scene.clock.now += 2
    assert again(scene, on)


def test_a_yes_ends_with_the_shortest_time_of_those_who_asked() -> None:
    scene = Scene(
        "agent worker { allow any; ask shell; approval { remember tool for 1h } }"
        "ceiling { ask shell; approval { remember tool for 5m } }"
    )
    assert scene.call(*LS, TOOL) == "ran"
    scene.clock.now += 299
    assert not again(scene, scene.session)
    scene.clock.now += 2
    assert again(scene, scene.session)


def test_a_yes_given_before_a_label_is_none_after_it() -> None:
    scene = Scene(REMEMBERS.replace("ask shell", "ask shell; mark untrusted on look"))
    assert scene.call(*LS, TOOL) == "ran"
    assert not again(scene, scene.session)
    assert scene.call(*LOOK) == "ran"
    assert again(scene, scene.session)


def test_a_yes_stands_through_a_reload_that_changed_something_else() -> None:
    scene = Scene(REMEMBERS)
    assert scene.call(*LS, TOOL) == "ran"
    scene.publish(f"{REMEMBERS} agent other {{ allow look }}")
    assert not again(scene, scene.session)


def test_a_yes_to_one_call_of_a_response_is_for_its_equals_where_it_may_be_kept() -> None:
    scene = Scene("agent worker { allow any; ask shell }")
    person = Person(EXACT)
    scene.play(calls(LS, LS, LS), "done", person=person)
    assert (scene.names, len(person.asked)) == (["shell"] * 3, 1)


# --- what happens meanwhile ---------------------------------------------------------------------------------------------


def test_where_a_limit_is_used_up_nobody_is_asked() -> None:
    scene = Scene("agent worker { allow any; ask shell; limit 1 calls to shell }")
    assert scene.call(*LS, YES) == "ran"
    person = Person(YES)
    scene.play(calls(LS), "done", person=person)
    assert (scene.ends()[-1], person.asked) == ("budget", [])


def test_a_limit_that_another_used_up_while_a_person_was_thinking() -> None:
    scene = Scene(
        'agent worker { allow any; ask shell unless args.command runs only ["id"]; limit 1 calls to shell per day }'
    )

    async def thinks(_question: Question) -> Answer:
        await scene.turn(calls(("shell", {"command": "id"})), "done", session=scene.seat("s2"))
        return YES

    scene.play(calls(LS), "done", person=thinks)
    assert (scene.names, sorted(scene.ends())) == (["shell"], ["budget", "ran"])


def test_an_edit_is_held_to_the_limits_of_the_tool_that_it_names() -> None:
    scene = Scene("agent worker { allow any; ask shell; limit 0 calls to mail }")
    assert scene.call(*LS, Approve(arguments={"to": "bob"}, tool="mail", by="ada")) == "budget"
    assert scene.names == []


def test_what_had_to_come_before_is_too_old_once_the_person_has_answered() -> None:
    scene = Scene("agent worker { allow any; ask shell; require look before shell within 5m }")

    def slow(_question: Question) -> Answer:
        scene.clock.now += 301
        return YES

    assert scene.call(*LOOK) == "ran"
    person = Person(slow)
    scene.play(calls(LS), "done", person=person)
    assert (scene.names, scene.ends()[-1]) == (["look"], "precondition")


def test_a_label_that_came_while_a_person_was_thinking_denies() -> None:
    scene = Scene("agent worker { allow any; ask shell; deny shell when marked untrusted }")

    def marks(_question: Question) -> Answer:
        scene.session.mark(["untrusted"])
        return YES

    scene.play(calls(LS), "done", person=Person(marks))
    assert (scene.names, scene.ends()) == ([], ["denied"])


def test_the_turn_is_over_before_the_person_answers() -> None:
    scene = Scene("agent worker { allow any; ask shell; runtime { turn_timeout 1s }; limit 1 calls to shell }")
    went = scene.play(calls(LS), "done", person=silent)
    assert went.result.status != "done"
    assert scene.names == []
    assert scene.call(*LS, YES) == "ran"  # nothing was charged for the first


BATCH = calls(("look", {"at": "1"}), ("note", {"rest": "2"}), LS, ("look", {"at": "4"}), MAIL)


def resumed(
    scene: Scene, batch: ModelResponse, meanwhile: Callable[[], Awaitable[Any]] | None = None, *steps: Step
) -> tuple[Turn, Turn]:
    """A turn that pauses at a call, and what became of it after the yes."""

    async def story() -> tuple[Turn, Turn]:
        first = await scene.turn(batch, person=Person(Later()))
        assert first.result.status == "paused"
        assert first.result.state is not None
        run = scene.resolver.resolve("worker", session=scene.session)
        for question in first.result.questions:
            await run.approvals.answer(question, YES)
        if meanwhile is not None:
            await meanwhile()
        state = TurnState.from_json(first.result.state.to_json())
        return first, await scene.turn(*(steps or ("done",)), messages=first.result.messages, resume=state)

    return asyncio.run(story())


@pytest.mark.parametrize("parallel", ["on", "off"])
def test_the_third_of_five_calls_waits_and_those_after_it_run_after_it(parallel: str) -> None:
    scene = Scene(f"agent worker {{ allow any; ask shell; runtime {{ parallel_tools {parallel} }} }}")
    first, second = resumed(scene, BATCH)
    assert len(first.told) == 2
    assert scene.names[:2] == ["look", "note"]
    assert sorted(map(str, scene.names)) == ["look", "look", "mail", "note", "shell"]
    assert [text.split()[0] for text in second.told] == ["look", "note", "shell", "look", "mail"]


@pytest.mark.parametrize("parallel", ["on", "off"])
def test_a_question_in_the_middle_of_five_calls(parallel: str) -> None:
    scene = Scene(f"agent worker {{ allow any; ask shell; runtime {{ parallel_tools {parallel} }} }}")
    person = Person(YES)
    went = scene.play(BATCH, "done", person=person)
    assert [text.split()[0] for text in went.told] == ["look", "note", "shell", "look", "mail"]
    assert len(person.asked) == 1


def test_a_call_that_waits_takes_no_place_of_those_that_run() -> None:
    """Limits are reserved after the yes."""
    scene = Scene(
        'agent worker { allow any; ask shell unless args.command runs only ["id"]; limit 1 concurrent calls to shell }'
    )

    async def another() -> None:
        await scene.turn(calls(("shell", {"command": "id"})), "done")

    resumed(scene, calls(LS), another)
    assert scene.names == ["shell", "shell"]


def test_a_call_that_waited_is_held_to_the_labels_of_when_it_runs() -> None:
    scene = Scene("agent worker { allow any; ask shell; mark untrusted on look; deny shell when marked untrusted }")

    async def another() -> None:
        await scene.turn(calls(LOOK), "done")

    _, second = resumed(scene, calls(LS), another)
    assert scene.names == ["look"]
    assert "is done" not in second.told[-1]


def saved(scene: Scene) -> None:
    scene.session = restore(save(scene.session), clock=scene.clock)


def forbids(scene: Scene) -> None:
    scene.publish("agent worker { allow any; deny shell }")


def asks_no_more(scene: Scene) -> None:
    scene.publish("agent worker { allow any }")


def passes(seconds: float) -> Callable[[Scene], None]:
    def wait(scene: Scene) -> None:
        scene.clock.now += seconds

    return wait


def labels(scene: Scene) -> None:
    scene.session.mark(["untrusted"])


def goes_away(scene: Scene) -> None:
    scene.session.interactive = False


def moves(scene: Scene) -> None:
    scene.session.cwd = "/elsewhere"


@pytest.mark.parametrize(
    ("rules", "happens", "ends"),
    [
        ("", saved, "ran"),
        ("", forbids, "denied"),
        ("", asks_no_more, "ran"),
        ("", passes(86_400), "ran"),
        ("approval { remember exact for 10m }", passes(599), "ran"),
        ("approval { remember exact for 10m }", passes(601), "no-approver"),
        ("", labels, "no-approver"),
        ("", goes_away, "no-approver"),
        ("", moves, "no-approver"),
    ],
)  # fmt: skip
def test_a_yes_is_good_for_the_call_that_it_answered(rules: str, happens: Callable[[Scene], None], ends: str) -> None:
    """What happens between the yes and the turn that goes on; nobody is there to be asked again."""
    scene = Scene(f"agent worker {{ allow any; ask shell; {rules} }}")

    async def meanwhile() -> None:
        happens(scene)

    resumed(scene, calls(LOOK, LS, MAIL), meanwhile)
    assert scene.ends() == ["ran", ends, "ran"]


def test_a_turn_that_waits_is_not_taken_up_in_a_fork() -> None:
    scene = Scene("agent worker { allow any; ask shell }")

    async def meanwhile() -> None:
        scene.session = fork(scene.session)

    with pytest.raises(ValueError, match="another execution"):
        resumed(scene, calls(LS), meanwhile)
    assert scene.names == []


@pytest.mark.parametrize(
    ("limit", "ends", "requests"),
    [
        ("limit 1 calls to look per turn", ["ran", "ran", "budget"], 2),
        ("limit 2 iterations per turn", ["ran", "ran", "ran"], 1),
    ],
)
def test_a_turn_that_goes_on_is_the_same_turn(limit: str, ends: list[str], requests: int) -> None:
    scene = Scene(f"agent worker {{ allow any; ask shell; {limit} }}")
    _, second = resumed(scene, calls(LOOK, LS), None, calls(LOOK), "done")
    assert (scene.ends(), len(second.model.requests)) == (ends, requests)


# --- edits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "ran"),
    [
        (Approve(arguments={"command": "ls"}, by="ada"), ["shell"]),
        (Approve(tool="mail", arguments={"to": "b"}, by="ada"), []),
        (Approve(tool="pipeline", arguments={"steps": [{"tool": "look", "arguments": {"at": "1"}}] * 2}, by="ada"), ["look", "look"]),
        (Approve(tool="pipeline", arguments={"steps": [{"tool": "look", "arguments": {"at": "1"}}, {"tool": "mail", "arguments": {"to": "b"}}]}, by="ada"), []),
        (Approve(tool=("forge", "get"), arguments={"number": 1}, by="ada"), []),
        (Approve(tool="nothing", arguments={}, by="ada"), []),
        (Approve(arguments={"command": 7}, by="ada"), []),
        (Approve(arguments={}, by="ada"), []),
    ],
)  # fmt: skip
def test_an_edit_is_another_call(edit: Approve, ran: list[str]) -> None:
    scene = Scene(
        "tool forge/get(number: integer) risk read\nbundle f { server forge }\n"
        "agent worker { allow any; ask shell; deny mail }\nagent other { connect f; allow any }"
    )
    scene.call(*LS, edit)
    assert scene.names == ran


# --- whose approval below -----------------------------------------------------------------------------------------------


def test_a_yes_to_one_execution_is_none_to_another_of_its_tree() -> None:
    scene = Scene(
        "agent worker { allow any; ask shell; approval { remember tool }; delegate to free }\nagent free { allow any }"
    )
    run = scene.resolver.resolve("worker", session=scene.session)
    assert scene.call(*LS, TOOL) == "ran"
    asked: list[int] = []
    for name in ("c1", "c2"):
        person = Person(TOOL)
        scene.play(calls(LS, LS), "done", agent="free", session=scene.seat(name), parent=run, person=person)
        asked.append(len(person.asked))
    assert (asked, scene.names) == ([1, 1], ["shell"] * 5)


def test_each_route_of_the_line_is_asked_about_a_child() -> None:
    scene = Scene(
        'agent worker { allow any; ask shell; approval { route "a" }; delegate to free }\n'
        'agent free { allow any; ask shell; approval { route "b" } }'
    )
    run = scene.resolver.resolve("worker", session=scene.session)
    for routes in ({"a": Person(YES), "b": Person(YES)}, {"b": Person(YES)}, {"a": Person(YES)}):
        scene.play(calls(LS), "done", agent="free", session=scene.seat("c"), parent=run, routes=routes)
    assert scene.ends() == ["ran", "no-approver", "no-approver"]


# --- drift --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "agent", "ceiling", "ends"),
    [
        ("description", "", "", "asked"),
        ("schema", "", "", "drift"),
        ("schema", "on drift allow", "", "ran"),
        ("schema", "on drift allow", "on drift ask", "asked"),
        ("schema", "", "on drift allow", "drift"),
        ("schema", "on drift schema ask", "", "asked"),
        ("launch", "on drift description allow", "", "drift"),
        ("description", "on drift deny", "", "drift"),
        ("description", "on drift any allow; on drift description deny", "", "drift"),
        ("description", "on drift allow", "on drift deny", "drift"),
        ("description", "on drift allow; approval none", "on drift ask", "no-approver"),
    ],
)
def test_a_tool_that_drifted(kind: Any, agent: str, ceiling: str, ends: str) -> None:
    scene = Scene(f"agent worker {{ allow any; {agent} }}" + (f"\nceiling {{ {ceiling} }}" if ceiling else ""))
    scene.session.drifted("look", kind)
    person = Person(YES)
    scene.play(calls(LOOK), "done", person=person)
    assert ("asked" if person.asked else scene.ends()[-1]) == ends
