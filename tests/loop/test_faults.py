"""What is left behind when something raises, or the turn is cancelled, at whatever point: nothing half done.

Every story runs again and again, with the fault one point later each time, until it comes through whole.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from tests.loop.stage import Stage, play, stage, told
from zcpolicy.approvals.question import Answer, Approve, Approvers, Later, Question
from zcpolicy.events import Event
from zcpolicy.ledgers.contract import Ledger, LedgerUnavailable
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.sqlite import SqliteLedger
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.loop import TurnResult, run_tool_call_loop
from zcpolicy.loop.messages import Message, ModelRequest, ModelResponse
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.registry.host_tools import pipeline_tool
from zcpolicy.registry.sources import ToolContext
from zcpolicy.sessions import restore, save

RULES = """
allow look, fetch, mail, pipeline
ask mail
mark untrusted on fetch
limit 100 calls
limit 100 concurrent calls
limit 1_000_000 tokens
limit 50 iterations per turn
"""
SCRIPT = (
    calls(("look", {"at": "x"}), ("fetch", {"url": "https://x.org/"}), ("mail", {"to": "x"}), text="one moment"),
    calls(
        (
            "pipeline",
            {"steps": [{"tool": "look", "arguments": {"at": "y"}}, {"tool": "mail", "arguments": {"to": "y"}}]},
        )
    ),
    "done",
)


class Point:
    """Passed again and again; at the given pass it does what is told."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.left = at
        self.act = act
        self.hit = False

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.hit = True
            self.act()


def fail() -> None:
    raise RuntimeError("password=hunter2")


class Slow(ScriptedModel):
    """Gives others a turn between its pieces."""

    point: Callable[[], None]

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        async for piece in super().stream(request):
            await asyncio.sleep(0)
            self.point()
            yield piece


def play_with(point: Point, where: str, ledger: Ledger, switch: str) -> tuple[Stage, Callable[[], Any]]:
    """A story in which everything takes its time, and the point lies where it is told."""

    def at(place: str) -> None:
        if place == where:
            point()

    async def slow(_arguments: dict[str, Any], _context: ToolContext) -> str:
        await asyncio.sleep(0)
        at("tool")
        await asyncio.sleep(0)
        return "done"

    async def person(_question: Question) -> Answer:
        await asyncio.sleep(0)
        at("approver")
        return Approve()

    on = stage(
        f"{RULES}\nruntime {{ parallel_tools {switch} }}",
        ledger=ledger, look=slow, fetch=slow, mail=slow, pipeline=pipeline_tool().run,
    )  # fmt: skip

    def record(event: Event) -> None:
        at("record")
        on.events.append(event)

    def emit(piece: str) -> None:
        at("emit")
        on.heard.append(piece)

    on.approvers = Approvers(person)
    model = Slow(*SCRIPT)
    model.point = lambda: at("model")

    async def turn() -> TurnResult:
        registry = await on.assemble()
        try:
            io = ResolvedIo(on.approvers, record, emit)
            return await run_tool_call_loop(on.run, ResolvedModelAccess(model), io, [Message("user", "go")])
        finally:
            await registry.close()

    return on, turn


def nothing_is_half_done(on: Stage) -> None:
    """Nothing is held; what ran is charged; what is charged and came to its tool is in the history."""
    assert on.open_reservations() == []
    charged = [
        entry for entry in on.resolver.ledger.entries()
        if entry.state == "settled" and entry.charge.unit == "calls" and entry.spender.tool is not None
    ]  # fmt: skip
    assert on.session.history is not None
    assert len(on.names) <= len(charged) == len(on.session.history)
    assert ("fetch" in on.names) <= ("untrusted" in on.session.labels)


@pytest.mark.parametrize("switch", ["off", "on"])
@pytest.mark.parametrize("where", ["tool", "model", "approver", "record", "emit"])
def test_a_fault_at_any_point_leaves_nothing_half_done(where: str, switch: str) -> None:
    for number in range(1, 100):
        point = Point(number, fail)
        on, turn = play_with(point, where, MemoryLedger(), switch)
        result = asyncio.run(turn())
        nothing_is_half_done(on)
        assert "hunter2" not in str(result.messages) + result.note
        expected = {"tool": "done", "approver": "done", "model": "failed", "record": "failed", "emit": "failed"}
        if not point.hit:
            assert result.status == "done"
            assert number > 1
            return
        # a question that cannot be put on record gets no yes, and the turn goes on
        assert result.status in ({"failed", "done"} if where == "record" else {expected[where]})
        answered = {message.call_id for message in result.messages if message.role == "tool"}
        assert answered == {call.id for message in result.messages for call in message.calls}
    pytest.fail("the story has no end")


@pytest.mark.parametrize("switch", ["off", "on"])
def test_a_turn_that_is_cancelled_at_any_step_leaves_nothing_half_done(switch: str) -> None:
    async def cancelled_after(steps: int) -> bool:
        on, turn = play_with(Point(0, fail), "", MemoryLedger(), switch)
        task = asyncio.ensure_future(turn())
        for _ in range(steps):
            await asyncio.sleep(0)
        finished = not task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            assert not finished
        nothing_is_half_done(on)
        return finished

    for steps in range(200):
        if asyncio.run(cancelled_after(steps)):
            assert steps > 20
            return
    pytest.fail("the turn has no end")


class Waiting(SqliteLedger):
    """A ledger on a disk during whose nth step the turn is cancelled."""

    point: Point

    def _passed(self) -> None:
        before = self.point.hit
        self.point()
        if self.point.hit and not before:
            sleep(0.005)  # long enough that the cancellation comes while the step is on its way

    def look(self, *given: Any, **more: Any) -> Any:
        self._passed()
        return super().look(*given, **more)

    def reserve(self, *given: Any, **more: Any) -> Any:
        self._passed()
        return super().reserve(*given, **more)

    def dispatch(self, *given: Any, **more: Any) -> bool:
        self._passed()
        return super().dispatch(*given, **more)

    def settle(self, *given: Any, **more: Any) -> None:
        self._passed()
        super().settle(*given, **more)

    def release(self, *given: Any, **more: Any) -> None:
        self._passed()
        super().release(*given, **more)


@pytest.mark.parametrize("switch", ["off", "on"])
def test_a_turn_that_is_cancelled_while_the_disk_works_leaves_nothing_half_done(switch: str, tmp_path: Path) -> None:
    async def cancelled_at(number: int) -> bool:
        ledger = Waiting(str(tmp_path / f"{number}.db"))
        on, turn = play_with(Point(0, fail), "", ledger, switch)
        loop = asyncio.get_running_loop()
        task: asyncio.Task[TurnResult] = loop.create_task(turn())
        ledger.point = Point(number, lambda: void(loop.call_soon_threadsafe(task.cancel)))
        try:
            await task
        except asyncio.CancelledError:
            assert ledger.point.hit
        nothing_is_half_done(on)
        ledger.close()
        return ledger.point.hit

    for number in range(1, 200):
        if not asyncio.run(cancelled_at(number)):
            assert number > 20
            return
    pytest.fail("the turn has no end")


def void(_whatever: object) -> None:
    """For functions that are called for what they do."""


def test_a_ledger_that_cannot_be_reached_at_any_point_lets_nothing_run_uncharged() -> None:
    for number in range(1, 400):
        ledger = Flaky(number)
        on, turn = play_with(Point(0, fail), "", ledger, "on")
        result = asyncio.run(turn())
        assert result.status in ("done", "stopped")
        if ledger.left > 0:
            assert result.status == "done"
            assert number > 20
            return
        charged = {
            entry.key
            for entry in ledger.entries()
            if entry.charge.unit == "calls" and entry.state in ("settled", "dispatched")
        }
        assert len(on.names) <= len(charged)
    pytest.fail("the story has no end")


class Flaky(MemoryLedger):
    """A ledger that cannot be reached once."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def _reach(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise LedgerUnavailable("the line is cut")

    def look(self, *given: Any, **more: Any) -> Any:
        self._reach()
        return super().look(*given, **more)

    def reserve(self, *given: Any, **more: Any) -> Any:
        self._reach()
        return super().reserve(*given, **more)

    def dispatch(self, *given: Any, **more: Any) -> bool:
        self._reach()
        return super().dispatch(*given, **more)

    def settle(self, *given: Any, **more: Any) -> None:
        self._reach()
        super().settle(*given, **more)

    def release(self, *given: Any, **more: Any) -> None:
        self._reach()
        super().release(*given, **more)


def test_a_ledger_that_is_closed_stops_the_turn_before_it_spends() -> None:
    ledger = MemoryLedger()
    on = stage("allow look; limit 5 iterations per turn", ledger=ledger)
    ledger.close()
    result, model = play(on, calls(("look", {"at": "x"})), "done")
    assert (result.status, result.reason) == ("stopped", "ledger-unavailable")
    assert model.requests == []


def test_a_model_that_fails_is_told_to_the_host_and_to_nobody_else() -> None:
    def broken(_request: ModelRequest) -> str:
        raise ValueError("key=sk-123")

    on = stage("allow look")
    result, _ = play(on, broken)
    assert (result.status, result.reason, result.note) == ("failed", "model-failed", "the model failed: ValueError")
    assert isinstance(result.error, ValueError)
    assert [message.text for message in result.messages] == ["go"]
    before = [Message("user", "hi"), Message("assistant", "hello"), Message("user", "go")]
    assert play(on, broken, messages=before)[0].text == ""


@pytest.mark.parametrize("piece", [7, ModelResponse(text=None, calls=())], ids=["no text", "no response"])  # type: ignore[arg-type]
def test_a_model_that_answers_what_is_no_response_has_failed(piece: Any) -> None:
    result, _ = play(stage("allow look"), lambda _request: piece)
    assert (result.status, result.reason) == ("failed", "model-failed")


def test_one_call_of_a_turn_that_two_take_up_at_once_runs_once() -> None:
    """As two processes would, each with the session as it was saved."""

    async def story() -> list[TurnResult]:
        paused = await on.turn(ScriptedModel(calls(("mail", {"to": "x"}))))
        await on.run.approvals.answer(paused.questions[0], Approve())

        async def again() -> TurnResult:
            run = on.resolver.resolve("a", session=restore(save(on.session)))
            registry = await on.assemble(run)
            model = ResolvedModelAccess(ScriptedModel("done"))
            try:
                return await run_tool_call_loop(run, model, on.io, paused.messages, resume=paused.state)
            finally:
                await registry.close()

        return list(await asyncio.gather(again(), again()))

    async def slow(_arguments: dict[str, Any], _context: ToolContext) -> str:
        await asyncio.sleep(0.01)
        return "sent"

    async def person(_question: Question) -> Any:
        return Later()

    on = stage("allow mail; ask mail", mail=slow)
    on.approvers = Approvers(person)
    results = asyncio.run(story())
    assert on.names == ["mail"]
    assert sorted(text[:9] for result in results for text in told(result)) == ["This call", "sent"]
