"""Answers that come later: the turn pauses, somebody answers, the turn goes on and finds the answer."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policy_lang import loads
from tests.approvals.people import (
    ASKS,
    NO,
    TOOLS,
    YES,
    ask,
    outcomes,
    resolver,
    says,
    session,
    settled,
    shell,
    start,
    word,
)  # fmt: skip
from tests.clock import Clock
from tests.person import Person
from zcpolicy import ResolvedAgentExecution, Resolver
from zcpolicy.approvals.asking import acting
from zcpolicy.approvals.outcome import Approved, Edited, NotAsked, Refusal, Waiting
from zcpolicy.approvals.question import Approve, Later, Question, Reject
from zcpolicy.events import Event
from zcpolicy.ledgers.sqlite import SqliteLedger
from zcpolicy.refusals import PermitError


def waiting(run: ResolvedAgentExecution, key: str = "k1", **more: Any) -> Question:
    """The question that a call waits with."""
    outcome = settled(run, says(Later()), key, **more)
    assert isinstance(outcome, Waiting)
    return outcome.questions[0]


def answer(run: ResolvedAgentExecution, question: Question, said: Any, **more: Any) -> None:
    asyncio.run(run.approvals.answer(question, said, **more))


def test_a_yes_lets_the_turn_go_on_once() -> None:
    run, events = start(), list[Event]()
    answer(run, waiting(run, record=events.append), YES, record=events.append)
    nobody = Person()
    assert word(settled(run, nobody, "k1", record=events.append)) == "approved"
    assert word(settled(run, nobody, "k1")) == "approved"  # resumed again: neither asked twice nor
    assert word(settled(run, Person(NO), "k2")) == "rejected"  # good for another call
    assert (nobody.asked, outcomes(events)) == ([], ["asked", "later", "yes", "on record"])


def test_a_no_is_final() -> None:
    run = start()
    answer(run, waiting(run), Reject("not on a friday", "ada"))
    outcome = settled(run, Person(), "k1")
    assert isinstance(outcome, Refusal)
    assert (outcome.reason, outcome.note, outcome.by) == ("rejected", "not on a friday", "ada")


def test_an_edit_is_decided_when_the_turn_goes_on() -> None:
    run = start()
    arguments: dict[str, Any] = {"to": "bob", "body": "1 \u202e"}
    question = waiting(run, decision=run.decide("mail", {"to": "eve"}))
    answer(run, question, Approve(arguments=arguments, tool=None))
    outcome = settled(run, Person(), "k1", run.decide("mail", {"to": "eve"}))
    assert isinstance(outcome, Edited)
    assert (outcome.tool, outcome.arguments) == ("mail", arguments)


def test_an_edit_to_another_server() -> None:
    run = start()
    answer(run, waiting(run), Approve(tool=("gitlab", "lookup"), arguments={"q": "x", "n": 1.5}))
    outcome = settled(run, Person(), "k1")
    assert isinstance(outcome, Edited)
    assert outcome.tool == ("gitlab", "lookup")


def test_a_scope_holds_for_later_calls_too() -> None:
    clock = Clock()
    run = start("approval { remember exact for 10m }", clock=clock)
    answer(run, waiting(run), Approve("exact"))
    assert [word(settled(run, Person(), key)) for key in ("k1", "k2")] == ["approved", "approved"]
    clock.now += 601
    assert word(settled(run, Person(NO), "k3")) == "rejected"


def test_until_it_comes_nobody_is_asked_again() -> None:
    run = start()
    question = waiting(run)
    outcome = settled(run, None, "k1")
    assert isinstance(outcome, Waiting)
    assert outcome.questions == (question,)
    answer(run, outcome.questions[0], YES)
    assert word(settled(run, None, "k1")) == "approved"


def test_one_route_now_and_one_later() -> None:
    run = start('approval { route "ops" }\n ask shell because "always"')
    text = ASKS.replace("ask shell when", "auto_approve read\n    ask shell when") % 'approval { route "ops" }'
    made = Resolver(loads(TOOLS + text + "ceiling { autonomy supervised }"))
    run = made.resolve("coder", session=session())
    ops = Person(YES)
    outcome = settled(run, says(Later()), "k1", routes={"ops": ops})
    assert isinstance(outcome, Waiting)
    assert [one.route for one in outcome.questions] == [""]
    answer(run, outcome.questions[0], YES)
    done = settled(run, None, "k1")
    assert isinstance(done, Approved)
    assert len(ops.asked) == 1  # what was said is not asked again


def test_a_no_now_needs_no_later() -> None:
    run = Resolver(loads(TOOLS + ASKS % 'approval { route "ops" }' + "ceiling { autonomy supervised }"))
    coder = run.resolve("coder", session=session())
    assert word(settled(coder, says(Later()), "k1", routes={"ops": says(NO)})) == "rejected"


CHANGES: dict[str, Mapping[str, Any]] = {
    "the command": {"arguments": {"command": "rm -rf /"}},
    "one more argument": {"arguments": {"command": "git push", "timeout": 1}},
    "the tool": {"tool": "mail"},
    "a server": {"tool": ("", "shell")},
    "the key": {"key": "k2"},
    "the id": {"id": "x"},
    "the scopes": {"scopes": ("once", "exact", "tool")},
    "the order of scopes": {"scopes": ("exact", "once")},
    "the time": {"remember_for": 1.0},
    "the route": {"route": "ops"},
    "the text": {"text": "Allow read()?"},
    "the rules": {"rules": ()},
    "the because": {"because": ("",)},
    "the binding": {"binding": "0" * 64},
    "the binding of the tool": {"tool_binding": "0" * 64},
    "the client": {"client": "bob"},
    "the session": {"session": "s2"},
    "the agent": {"agent": "tester"},
    "arguments that are none": {"arguments": 7},
    "arguments that cannot be written": {"arguments": {"command": object()}},
    "a key that is none": {"key": None},
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_altered_question_is_refused(what: str) -> None:
    run = start("approval { remember exact }")
    question = waiting(run)
    with pytest.raises(NotAsked):
        answer(run, replace(question, **CHANGES[what]), YES)
    assert word(settled(run, None, "k1")) == "waiting"


def test_one_that_was_never_asked_is_refused() -> None:
    here, there = start(), start()
    with pytest.raises(NotAsked):
        answer(there, waiting(here), YES)
    for nothing in (None, "k1", 7):
        with pytest.raises(NotAsked):
            answer(here, nothing, YES)  # type: ignore[arg-type]  # on purpose


class Forged(Question):
    """A subclass."""


def test_a_subclass_of_a_question_is_refused() -> None:
    run = start()
    question = waiting(run)
    fields = {name: getattr(question, name) for name in Question.__dataclass_fields__}
    with pytest.raises(NotAsked):
        answer(run, Forged(**fields), YES)


def test_one_that_was_answered_is_refused() -> None:
    run = start()
    question = waiting(run)
    answer(run, question, NO)
    with pytest.raises(NotAsked):
        answer(run, question, YES)
    assert word(settled(run, Person(), "k1")) == "rejected"


def test_of_two_answers_at_once_a_no_counts() -> None:
    run = start()
    question = waiting(run)

    async def both() -> None:
        manager = run.approvals
        await asyncio.gather(manager.answer(question, YES), manager.answer(question, NO), return_exceptions=True)

    asyncio.run(both())
    assert word(settled(run, Person(), "k1")) in ("approved", "rejected")


@pytest.mark.parametrize("said", [True, None, "yes", Approve, Approve("forever")])  # type: ignore[arg-type]  # on purpose
def test_what_is_no_answer_is_refused(said: Any) -> None:
    run = start()
    question = waiting(run)
    with pytest.raises(NotAsked):
        answer(run, question, said)
    assert word(settled(run, None, "k1")) == "waiting"


def test_later_again_is_no_answer_yet() -> None:
    run = start()
    question = waiting(run)
    answer(run, question, Later())
    assert word(settled(run, None, "k1")) == "waiting"


def test_after_its_time_no_answer_is_taken() -> None:
    clock = Clock()
    run = start("approval { timeout 2m }", clock=clock)
    question = waiting(run)
    clock.now += 121
    with pytest.raises(NotAsked):
        answer(run, question, YES)
    assert word(settled(run, Person(NO), "k1")) == "rejected"  # the turn that goes on asks anew


def test_a_yes_is_bound_to_what_it_answered() -> None:
    run = start()
    answer(run, waiting(run), YES)
    run.session.mark(["untrusted"])
    assert word(settled(run, Person(NO), "k1")) == "rejected"


def test_an_answer_that_cannot_be_recorded_is_not_taken() -> None:
    run = start()
    question = waiting(run)

    def full(event: Event) -> None:
        raise OSError("disk full")

    with pytest.raises(NotAsked, match="cannot be recorded"):
        answer(run, question, YES, record=full)
    assert word(settled(run, None, "k1")) == "waiting"


def test_in_another_process(tmp_path: Path) -> None:
    """What is asked, and what is said, is in the ledger: the turn goes on wherever it is opened."""
    file = str(tmp_path / "ledger")

    def opened() -> ResolvedAgentExecution:
        return resolver(ledger=SqliteLedger(file)).resolve("coder", session=session())

    first = opened()
    question = waiting(first)
    second = opened()
    assert word(settled(second, None, "k1")) == "waiting"
    answer(second, question, Approve("exact", by="ada"))
    third = opened()
    assert [word(settled(third, Person(), key)) for key in ("k1", "k2")] == ["approved", "approved"]
    for run in (first, second, third):
        run.resolver.ledger.close()


def test_a_tool_or_an_approver_of_the_tree_cannot_answer() -> None:
    made = resolver()
    above = made.resolve("coder", session=session())
    child = made.resolve("tester", session=session(id="s2"), parent=above)
    question = waiting(above)
    with acting(child), pytest.raises(PermitError, match="tool"):
        answer(above, question, YES)

    async def answers(other: Question) -> Any:
        await above.approvals.answer(question, YES)
        return YES

    assert word(settled(child, answers, "k9")) == "no-approver"
    assert word(asyncio.run(ask(above, None, "k1", shell(above)))) == "waiting"


def test_what_an_approver_started_may_answer_once_the_question_is_over() -> None:
    """A host whose approver sends a message, and starts what waits for the button; the call comes out of a tool."""
    run = start()
    tasks: list[asyncio.Task[None]] = []

    async def story() -> None:
        button = asyncio.Event()

        async def waits(question: Question) -> None:
            await button.wait()
            await run.approvals.answer(question, YES)

        async def sends(question: Question) -> Any:
            tasks.append(asyncio.create_task(waits(question)))
            return Later()

        with acting(run):
            assert word(await ask(run, sends, "k1")) == "waiting"
        button.set()
        await tasks[0]
        assert word(await ask(run, None, "k1")) == "approved"

    asyncio.run(story())
