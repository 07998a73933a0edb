"""A turn that pauses is written down as JSON, and read again: nothing that is not what was written is taken for it."""

import asyncio
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.loop.stage import Stage, stage, told
from zcpolicy import Approve, Approvers, Later, Message, Question, ToolCall, TurnState
from zcpolicy.approvals.outcome import NotAsked
from zcpolicy.ledgers.sqlite import SqliteLedger
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.sessions import restore, save

CALL = ToolCall("c1", "mail", '{"to": "x"}')
MESSAGES = [
    Message("user", "go \u202e"), Message("assistant", "", (CALL,)), Message("tool", "done", call_id="c1"),
]  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: one.role)
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    assert Message.from_json(json.loads(json.dumps(message.to_json()))) == message


def test_a_message_may_leave_out_what_it_has_not() -> None:
    assert Message.from_json({"role": "user", "text": "go"}) == Message("user", "go")


ODD_MESSAGES: Mapping[str, Any] = {
    "no object": ["user", "go"],
    "no text": {"role": "user"},
    "a text that is none": {"role": "user", "text": 1},
    "another role": {"role": "system", "text": "obey"},
    "a role that is no text": {"role": ["user"], "text": "go"},
    "something more": {"role": "user", "text": "go", "name": "ann"},
    "calls that are none": {"role": "assistant", "text": "", "calls": "abc"},
    "a call that is none": {"role": "assistant", "text": "", "calls": [{"id": "1"}]},
    "a call with more": {"role": "assistant", "text": "", "calls": [{**CALL.to_json(), "key": "1"}]},
    "arguments as an object": {"role": "assistant", "text": "", "calls": [{**CALL.to_json(), "arguments": {}}]},
    "a message": MESSAGES[0],
}


@pytest.mark.parametrize("case", ODD_MESSAGES)
def test_what_is_no_message_is_refused(case: str) -> None:
    with pytest.raises(ValueError, match=r"this is no (message of a transcript|call of a model)"):
        Message.from_json(ODD_MESSAGES[case])


QUESTION = Question(
    "i", "k", "Allow pay?", "a", "c", "s", ("bank", "pay"), {"amount": Decimal("0.10"), "n": 10**30, "to": ["x", None]}, "ops",
    ("once", "exact"), 60.0, ("p:1",), ("why",), "b", "tb", 5.5,
)  # fmt: skip


def test_a_question_comes_back_as_it_was() -> None:
    written = json.loads(json.dumps(QUESTION.to_json()))
    assert written["arguments"] == '{"amount": 0.1, "n": 1000000000000000000000000000000, "to": ["x", null]}'
    assert Question.from_json(written) == QUESTION


ODD: Mapping[str, Any] = {
    "id": 1, "tool": 3, "arguments": {}, "scopes": ["always"], "rules": "p:1", "because": [1], "due": float("nan"),
    "remember_for": "60", "more": "x", "key": None,
}  # fmt: skip


@pytest.mark.parametrize("due", [10**400, True, float("inf")])
def test_a_question_is_due_in_seconds(due: object) -> None:
    written = {**QUESTION.to_json(), "due": due}
    if due == 10**400:  # long, but a number
        assert Question.from_json(written).due == due
    else:
        with pytest.raises(ValueError, match="this is no question"):
            Question.from_json(written)


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_question_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="this is no question"):
        Question.from_json({**QUESTION.to_json(), name: ODD[name]})


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1, "a": 2}', "NaN"])
def test_a_question_whose_arguments_are_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no question|the arguments|a number|an object"):
        Question.from_json({**QUESTION.to_json(), "arguments": text})


ODD_OBJECTS: list[Any] = [None, [], "question", {}]


def test_what_is_no_object_is_no_question() -> None:
    for odd in ODD_OBJECTS:
        with pytest.raises(ValueError, match="this is no question"):
            Question.from_json(odd)


def test_a_turn_goes_on_from_what_three_processes_hand_on(tmp_path: Path) -> None:
    """Each has only the ledger's file and JSON."""
    mail = calls(("mail", {"to": "x"}))

    def process(saved: Any = None) -> Stage:
        ledger = SqliteLedger(str(tmp_path / "ledger.db"))
        on = stage("allow mail; ask mail", session=None if saved is None else restore(saved), ledger=ledger)
        on.approvers = Approvers(lambda _question: Later())
        return on

    first = process()
    paused = asyncio.run(first.turn(ScriptedModel(mail)))
    assert paused.state is not None
    kept = json.dumps(
        {
            "session": save(first.session),
            "state": paused.state.to_json(),
            "messages": [one.to_json() for one in paused.messages],
            "questions": [one.to_json() for one in paused.questions],
        }
    )

    read = json.loads(kept)
    second = process(read["session"])
    (question,) = map(Question.from_json, read["questions"])
    altered = Question.from_json({**question.to_json(), "arguments": '{"to": "y"}'})
    with pytest.raises(NotAsked):
        asyncio.run(second.run.approvals.answer(altered, Approve()))
    asyncio.run(second.run.approvals.answer(question, Approve(by="kim")))

    third = process(read["session"])
    messages = tuple(map(Message.from_json, read["messages"]))
    state = TurnState.from_json(read["state"])
    result = asyncio.run(third.turn(ScriptedModel("sent"), messages=messages, resume=state))
    assert (result.status, result.text, told(result)) == ("done", "sent", ["mail is done"])
    assert (first.names, second.names, third.names) == ([], [], ["mail"])


def test_the_transcript_has_to_be_that_of_the_turn_and_that_is_what_is_said_then() -> None:
    on = stage("allow mail; ask mail")
    on.approvers = Approvers(lambda _question: Later())
    paused = asyncio.run(on.turn(ScriptedModel(calls(("mail", {"to": "x"})))))
    for messages, error, said in (
        (paused.messages[:1], ValueError, "the transcript is not that of the paused turn"),
        ([one.to_json() for one in paused.messages], TypeError, "`Message.from_json` makes one of JSON"),
    ):
        with pytest.raises(error, match=said):
            asyncio.run(on.turn(ScriptedModel("done"), messages=messages, resume=paused.state))  # type: ignore[arg-type]
