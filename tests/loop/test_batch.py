"""The calls of one response: what each sees of those before it, and what is left of those that fail."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from tests.loop.stage import play, stage, told
from zcpolicy import Session
from zcpolicy.loop.messages import ModelResponse, ToolCall
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import ToolContext, ToolResult

FETCH = ("fetch", {"url": "https://x.org/"})
MAIL = ("mail", {"to": "x"})
LABELS = "allow fetch, mail; mark untrusted on fetch; deny mail when marked untrusted"


async def breaks(_arguments: dict[str, Any], _context: ToolContext) -> str:
    raise RuntimeError("password=hunter2")


@pytest.mark.parametrize("switch", ["on", "off"])
def test_the_mail_is_decided_under_the_mark_of_the_fetch(switch: str) -> None:
    on = stage(f"{LABELS}; runtime {{ parallel_tools {switch} }}")
    play(on, calls(MAIL, FETCH, MAIL), "done")
    assert on.names == ["mail", "fetch"]


def test_a_fetch_that_fails_marks_all_the_same() -> None:
    on = stage(LABELS, fetch=breaks)
    result, _ = play(on, calls(FETCH), calls(MAIL), "done")
    assert on.names == ["fetch"]
    assert told(result)[0] == "[failed] The tool failed."
    assert on.session.labels == {"untrusted"}


def test_a_fetch_that_is_denied_does_not_mark() -> None:
    on = stage(f"{LABELS}; deny fetch")
    play(on, calls(FETCH), calls(MAIL), "done")
    assert on.names == ["mail"]


def test_nothing_of_a_failure_reaches_the_model_but_the_record_names_it() -> None:
    on = stage("allow fetch", fetch=breaks)
    result, model = play(on, calls(FETCH), "done")
    assert "hunter2" not in str(model.requests) + str(result.messages)
    assert [event.data.get("fault") for event in on.events if event.data.get("phase") == "finished"] == ["RuntimeError"]


def test_what_runs_is_what_was_judged() -> None:
    on = stage("allow mail")
    sent = [
        '{"to": "a", "to": "b"}',
        '{"to": "c", "extra": 1}',
        '{"to": "\\u0041"}',
        "[]",
        "{",
        '{"to": "d", "body": null}',
    ]
    play(on, calls(*[("mail", text) for text in sent]), "done")
    assert on.ran == [("mail", {"to": "A", "body": "hello"})]


def test_what_a_tool_does_to_its_arguments_stays_with_it() -> None:
    async def greedy(arguments: dict[str, Any], _context: ToolContext) -> str:
        arguments["to"] = "everybody"
        return "sent"

    on = stage("allow mail", mail=greedy)
    play(on, calls(MAIL), "done")
    assert on.session.history is not None
    assert [entry.arguments["to"] for entry in on.session.history] == ["x"]


def test_a_call_that_has_to_come_first_may_come_in_the_same_response() -> None:
    on = stage("allow fetch, mail; require fetch before mail")
    play(on, calls(MAIL, FETCH, MAIL), "done")
    assert on.names == ["fetch", "mail"]


def test_a_call_that_failed_does_not_come_first() -> None:
    on = stage("allow fetch, mail; require fetch before mail", fetch=breaks)
    play(on, calls(FETCH, MAIL), "done")
    assert on.names == ["fetch"]


def test_a_limit_lets_so_many_calls_run_and_failures_count() -> None:
    on = stage("allow fetch; limit 2 calls to fetch per hour", fetch=breaks)
    result, _ = play(on, calls(FETCH, FETCH, FETCH), "done")
    assert on.names == ["fetch", "fetch"]
    assert told(result)[2].startswith("A limit is reached. Go on without this call, or call again in ")


def test_calls_that_run_at_once_never_go_beyond_a_limit() -> None:
    on = stage("allow fetch; limit 2 calls to fetch; runtime { parallel_tools on }")
    play(on, calls(*[FETCH] * 5), "done")
    assert on.names == ["fetch", "fetch"]


def test_a_cost_that_a_tool_reports_counts() -> None:
    async def dear(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
        return ToolResult("done", cost={"usd": Decimal("0.75")})

    on = stage("allow fetch; limit 1.00 usd per day", fetch=dear)
    result, _ = play(on, calls(FETCH, FETCH, FETCH), "done")
    assert on.names == []  # the model's own tokens have no price here, so that nothing is sent
    assert (result.status, result.reason) == ("stopped", "budget")


def test_one_call_beyond_those_of_one_response_is_refused() -> None:
    on = stage("allow look")
    result, _ = play(on, calls(*[("look", {"at": "x"})] * 130), "done")
    assert len(on.names) == 128
    assert told(result)[128:] == ["The call was not made: one response makes at most 128 calls."] * 2


def test_calls_that_share_an_id_are_told_apart() -> None:
    call = ToolCall("same", "look", '{"at": "x"}')
    result, _ = play(stage("allow look"), ModelResponse("", (call, call, ToolCall("", "look", "{}"))), "done")
    (asked,) = [message for message in result.messages if message.calls]
    answered = [message.call_id for message in result.messages if message.role == "tool"]
    assert answered == [one.id for one in asked.calls]
    assert len(set(answered)) == 3


@pytest.mark.parametrize("answer", [7, None, b"done", {"text": "done"}])
def test_a_tool_that_answers_what_is_no_result_has_failed(answer: Any) -> None:
    async def odd(_arguments: dict[str, Any], _context: ToolContext) -> Any:
        return answer

    result, _ = play(stage("allow look", look=odd), calls(("look", {"at": "x"})), "done")
    assert told(result) == ["[failed] The tool failed."]


@pytest.mark.parametrize(
    "odd", [{"text": 7}, {"text": "x", "ok": "no"}, {"text": "x", "cost": 1}, {"text": "x", "cost": None}]
)
def test_a_result_that_is_not_made_as_results_are_is_a_failure(odd: dict[str, Any]) -> None:
    async def answers(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
        return ToolResult(**odd)

    on = stage("allow look", look=answers)
    result, _ = play(on, calls(("look", {"at": "x"})), "done")
    assert told(result) == ["[failed] The tool failed."]
    assert on.session.history is not None
    assert [entry.ok for entry in on.session.history] == [False]


def test_a_tool_whose_own_task_was_cancelled_has_failed_and_the_turn_goes_on() -> None:
    async def torn(_arguments: dict[str, Any], _context: ToolContext) -> str:
        raise asyncio.CancelledError

    result, _ = play(stage("allow look", look=torn), calls(("look", {"at": "x"})), "done")
    assert (result.status, told(result)) == ("done", ["[failed] The tool failed."])


def test_every_event_of_a_call_is_on_record_with_who_acts() -> None:
    on = stage("allow look", session=Session(interactive=True, client="c", id="s"))
    play(on, calls(("look", {"at": "x"})), "done")
    assert [(event.kind, event.data.get("phase")) for event in on.events] == [
        ("turn", "started"), ("model", None), ("call", "admitted"), ("call", "started"), ("call", "finished"),
        ("model", None), ("turn", "done"),
    ]  # fmt: skip
    assert {(event.identity.agent, event.identity.client, event.identity.session) for event in on.events} == {
        ("a", "c", "s")
    }
    assert len({event.identity.turn for event in on.events}) == 1


@pytest.mark.parametrize(
    "cost", [{"usd": "much"}, {"usd": Decimal("NaN")}, {"usd": Decimal(-1)}, {1: 2}, {"usd": None}, {"usd": Decimal("1e999999")}]
)  # fmt: skip
def test_a_cost_that_is_none_harms_nothing(cost: Any) -> None:
    async def odd(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
        return ToolResult("done", cost=cost)

    on = stage("allow look", look=odd)
    result, _ = play(on, calls(("look", {"at": "x"})), "done")
    assert (result.status, told(result)) == ("done", ["done"])
    assert on.open_reservations() == []
