"""Every knob of `runtime` in a test in which the loop would do otherwise without it."""

import asyncio
from typing import Any

import pytest

from tests.loop.stage import play, stage, told
from zcpolicy.loop.messages import Message
from zcpolicy.loop.scripted import calls
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.registry.sources import ToolContext

LOOK = ("look", {"at": "x"})


class Meeting:
    """A tool that answers only once two of its calls are at work at the same time."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.both = asyncio.Event()

    async def __call__(self, _arguments: dict[str, Any], _context: ToolContext) -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside == 2:
            self.both.set()
        try:
            async with asyncio.timeout(0.05):
                await self.both.wait()
        except TimeoutError:
            return "alone"
        finally:
            self.inside -= 1
        return "together"


@pytest.mark.parametrize(("switch", "most", "answers"), [("on", 2, "together"), ("off", 1, "alone")])
def test_parallel_tools(switch: str, most: int, answers: str) -> None:
    meeting = Meeting()
    on = stage(f"allow look; runtime {{ parallel_tools {switch} }}", look=meeting)
    result, _ = play(on, calls(LOOK, LOOK), "done")
    assert meeting.most == most
    assert told(result) == [answers, answers]


def test_parallel_tools_are_off_where_nothing_is_said() -> None:
    meeting = Meeting()
    play(stage("allow look", look=meeting), calls(LOOK, LOOK), "done")
    assert meeting.most == 1


@pytest.mark.parametrize(("knob", "shown"), [("history 3", ["3", "4", "5"]), ("history 50", ["1", "2", "3", "4", "5"])])
def test_history_is_how_many_messages_the_model_is_shown(knob: str, shown: list[str]) -> None:
    roles: Any = ["user", "assistant", "user", "assistant", "user"]
    messages = [Message(role, str(number)) for number, role in enumerate(roles, 1)]
    result, model = play(stage(f"allow look; runtime {{ {knob} }}"), "done", messages=messages)
    assert [message.text for message in model.requests[0].messages] == shown
    assert len(result.messages) == 6


@pytest.mark.parametrize(("knob", "shown"), [("context 700", 1), ("context 32_000", 3)])
def test_context_is_how_long_a_request_is(knob: str, shown: int) -> None:
    messages = [Message("user", "a" * 900), Message("assistant", "b" * 900), Message("user", "c" * 900)]
    _, model = play(stage(f"allow look; runtime {{ {knob} }}"), "done", messages=messages)
    assert len(model.requests[0].messages) == shown


def test_a_turn_whose_newest_messages_do_not_fit_stops_and_says_so() -> None:
    result, model = play(stage("allow look; runtime { context 100 }"), "done", messages=[Message("user", "c" * 900)])
    assert (result.status, result.reason) == ("stopped", "context")
    assert result.note == "what has to be sent does not fit in 100 tokens. Raise `context`, or lower `tool_result`"
    assert model.requests == []


@pytest.mark.parametrize(("knob", "length"), [("tool_result 200", 200), ("tool_result 50_000", 5_000)])
def test_tool_result_is_how_much_of_a_result_goes_back(knob: str, length: int) -> None:
    async def long(_arguments: dict[str, Any], _context: ToolContext) -> str:
        return "z" * 5_000

    result, _ = play(stage(f"allow look; runtime {{ {knob} }}", look=long), calls(LOOK), "done")
    (text,) = told(result)
    assert len(text) == length
    assert text.endswith("[cut: this result has 5000 characters; ask for less of it]") == (length == 200)


@pytest.mark.parametrize(
    ("knob", "answer"),
    [("call_timeout 1s", "[failed] The tool did not answer within 1 seconds."), ("call_timeout 60s", "late")],
)
def test_call_timeout(knob: str, answer: str) -> None:
    async def slow(_arguments: dict[str, Any], _context: ToolContext) -> str:
        await asyncio.sleep(1.1)
        return "late"

    on = stage(f"allow look; runtime {{ {knob} }}", look=slow)
    result, _ = play(on, calls(LOOK), "done")
    assert (result.status, told(result)) == ("done", [answer])
    assert on.session.history is not None
    assert [entry.ok for entry in on.session.history] == [answer == "late"]
    assert on.open_reservations() == []


@pytest.mark.parametrize(("knob", "status"), [("turn_timeout 1s", "stopped"), ("turn_timeout 60s", "done")])
def test_turn_timeout(knob: str, status: str) -> None:
    async def slow(_arguments: dict[str, Any], _context: ToolContext) -> str:
        await asyncio.sleep(0.6)
        return "late"

    on = stage(f"allow look; runtime {{ {knob} }}", look=slow)
    result, _ = play(on, calls(LOOK, LOOK, LOOK), "done")
    assert result.status == status
    if status == "stopped":
        assert result.reason == "turn-timeout"
        assert told(result) == [
            "late",
            told(result)[1],
            "The call was not made: the turn ended before it.",
        ]
        assert told(result)[1].startswith("[failed] The tool did not answer within 0.")
        assert result.note == "the turn's time is over: 1 seconds. Ask again to go on, or raise `turn_timeout`"


def test_a_model_is_cut_off_when_the_turn_is_over() -> None:
    on = stage("allow look; runtime { turn_timeout 1s }")

    class Sleeper:
        name = "sleeper"

        async def stream(self, _request: Any) -> Any:
            await asyncio.sleep(30)
            yield "never"

    model: Any = Sleeper()
    result = asyncio.run(on.turn(model))
    assert (result.status, result.reason) == ("stopped", "turn-timeout")
    assert on.open_reservations() == []


@pytest.mark.parametrize(("limit", "requests"), [("limit 2 iterations per turn", 2), ("", 4)])
def test_iterations(limit: str, requests: int) -> None:
    on = stage(f"allow look; {limit}")
    result, model = play(on, calls(LOOK), calls(LOOK), calls(LOOK), "done")
    assert len(model.requests) == requests
    assert result.status == ("stopped" if limit else "done")
    if limit:
        assert result.reason == "iterations"


def test_iterations_of_a_session_stop_the_turn_that_goes_beyond() -> None:
    on = stage("allow look; limit 3 iterations per session")
    first, _ = play(on, calls(LOOK), "done")
    second, model = play(on, calls(LOOK), "done")
    assert (first.status, second.status, second.reason) == ("done", "stopped", "budget")
    assert second.note == (
        "a limit of the policy is reached: limit 3 iterations per session. Wait until there is room, or raise the limit"
    )
    assert len(model.requests) == 1


def test_a_turn_without_any_limit_ends_all_the_same() -> None:
    on = stage("allow look")
    result, model = play(on, *[calls(LOOK)] * 80)
    assert (result.status, result.reason, len(model.requests)) == ("stopped", "iterations", 50)


@pytest.mark.parametrize(("knob", "entries"), [("runtime { recall 2 }", 2), ("", 5)])
def test_recall_is_how_much_a_tool_is_given_of_the_memory(knob: str, entries: int) -> None:
    store = InMemoryStore()

    async def remembers(_arguments: dict[str, Any], context: ToolContext) -> str:
        for number in range(9):
            await context.memory.remember(store, f"note {number}")
        return f"{len(await context.memory.recall(store, 'note'))} notes"

    on = stage(f"allow look; memory read own write own; {knob}", look=remembers)
    result, _ = play(on, calls(LOOK), "done")
    assert told(result) == [f"{entries} notes"]
    assert [event.data["did"] for event in on.events if event.kind == "memory"] == ["remember"] * 9 + ["recall"]
