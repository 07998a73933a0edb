"""However a tool fails, it is its own failure: the turn goes on, and ends only when it is itself cancelled."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.loop.stage import Stage, play, stage, told
from zcpolicy.loop import bounded
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.registry.host_tools import pipeline_tool
from zcpolicy.registry.sources import ToolContext, ToolResult

LOOK = ("look", {"at": "x"})


class Panic(BaseException):
    """As libraries written in other languages raise it."""


def raising(raised: BaseException | type[BaseException], rules: str = "allow look, mail") -> Stage:
    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        raise raised

    return stage(rules, look=look)


RAISED = {
    "SystemExit": SystemExit(3), "GeneratorExit": GeneratorExit(), "Panic": Panic("inside"), "CancelledError": asyncio.CancelledError(),
    "BaseExceptionGroup": BaseExceptionGroup("two", [SystemExit(1), ValueError()]), "TimeoutError": TimeoutError(),
    "StopIteration": StopIteration(), "MemoryError": MemoryError(), "RecursionError": RecursionError(),
}  # fmt: skip


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("switch", ["on", "off"])
def test_whatever_a_tool_raises_it_has_failed_and_the_turn_goes_on(name: str, switch: str) -> None:
    on = raising(RAISED[name], f"allow look, mail; runtime {{ parallel_tools {switch} }}")
    result, _ = play(on, calls(LOOK, ("mail", {"to": "x"})), "done")
    assert (result.status, told(result)) == ("done", ["[failed] The tool failed.", "mail is done"])
    assert on.open_reservations() == []
    faults = [event.data["fault"] for event in on.events if event.data.get("fault")]
    assert faults == ["RuntimeError" if name == "StopIteration" else name]  # Python's own doing


def test_a_tool_that_calls_exit_ends_nothing() -> None:
    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        sys.exit("usage: look [--at]")

    result, _ = play(stage("allow look", look=look), calls(LOOK), "done")
    assert (result.status, told(result)) == ("done", ["[failed] The tool failed."])


def test_a_step_that_exits_is_a_failed_step() -> None:
    on = raising(SystemExit(1), "allow look, mail, pipeline")
    on.tools["pipeline"] = pipeline_tool().run
    steps = [{"tool": "look", "arguments": {"at": "x"}}, {"tool": "mail", "arguments": {"to": "x"}}]
    result, _ = play(on, calls(("pipeline", {"steps": steps})), "done")
    assert told(result) == ["[failed] 1. failed: The tool failed.\n2. mail is done"]


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_keyboard_interrupt_is_the_persons_and_ends_the_turn(switch: str) -> None:
    on = raising(KeyboardInterrupt(), f"allow look, mail; runtime {{ parallel_tools {switch} }}")
    with pytest.raises(KeyboardInterrupt):
        play(on, calls(LOOK, ("mail", {"to": "x"})), "done")
    assert on.open_reservations() == []


# --- cancelling ----------------------------------------------------------------------------------------------------


def test_a_tool_that_cancels_its_task_has_cancelled_itself() -> None:
    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)
        return "never"

    on = stage("allow look", look=look)
    result, _ = play(on, calls(LOOK), "done")
    assert (result.status, told(result)) == ("done", ["[failed] The tool failed."])


async def stubborn(_arguments: dict[str, Any], _context: ToolContext) -> str:
    """It does not hear that it is cut off."""
    try:
        await asyncio.sleep(0.2)
    except asyncio.CancelledError:
        return "kept on"
    return "done in time"


def test_a_tool_that_swallows_the_cancellation_does_not_save_the_turn() -> None:
    async def story() -> None:
        task = asyncio.create_task(on.turn(ScriptedModel(calls(LOOK), "done")))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    on = stage("allow look", look=stubborn)
    asyncio.run(story())
    assert (on.names, on.open_reservations()) == (["look"], [])


def test_a_tool_that_answers_after_it_was_cut_off_has_failed() -> None:
    async def look(arguments: dict[str, Any], context: ToolContext) -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "late"
        return "never"

    result, _ = play(stage("allow look; runtime { call_timeout 1s }", look=look), calls(LOOK), "done")
    assert told(result) == ["[failed] The tool did not answer within 1 seconds."]


@pytest.mark.parametrize("ends", ["time", "cancellation"])
def test_a_tool_that_does_not_stop_is_left_alone(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "CUT_OFF_SECONDS", 0.05)

    async def deaf(_arguments: dict[str, Any], _context: ToolContext) -> str:
        while not free.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return "free"

    async def story() -> None:
        turn = asyncio.create_task(on.turn(ScriptedModel(calls(LOOK), "done")))
        if ends == "time":
            assert told(await turn) == ["[failed] The tool did not answer within 1 seconds."]
        else:
            await asyncio.sleep(0.02)
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
        assert on.open_reservations() == []
        free.set()
        await asyncio.sleep(0.02)

    free = asyncio.Event()
    on = stage("allow look; runtime { call_timeout 1s }", look=deaf)
    asyncio.run(story())


# --- odd results ---------------------------------------------------------------------------------------------------


class OddText(str):
    __slots__ = ()

    def __format__(self, _spec: str) -> str:
        raise RuntimeError("inside")

    def __str__(self) -> str:
        raise RuntimeError("inside")


class OddCosts(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("inside")


class OddMapping(Mapping[str, Any]):
    def __getitem__(self, name: str) -> Any:
        raise RuntimeError("inside")

    def __iter__(self) -> Any:
        return iter(["usd"])

    def __len__(self) -> int:
        return 1


class Liar:
    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - that is what it is here for
        raise SystemExit(1)


@pytest.mark.parametrize(
    ("answer", "heard"),
    {
        "text": (OddText("plain"), "plain"),
        "text of a failure": (ToolResult(OddText("plain"), ok=False), "[failed] plain"),
        "costs": (ToolResult("plain", cost=OddCosts()), "plain"),
        "costs that cannot be read": (ToolResult("plain", cost=OddMapping()), "[failed] The tool failed."),
        "what does not say what it is": (Liar, "[failed] The tool failed."),
    }.values(),
)
def test_an_odd_result_harms_nothing(answer: Any, heard: str) -> None:
    async def look(_arguments: dict[str, Any], _context: ToolContext) -> Any:
        return answer() if answer is Liar else answer

    on = stage("allow look", look=look)
    result, _ = play(on, calls(LOOK), "done")
    assert (result.status, told(result)) == ("done", [heard])
    assert on.open_reservations() == []


# --- the model -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raised", [SystemExit(1), Panic("inside")], ids=["SystemExit", "Panic"])
def test_a_model_that_exits_has_failed(raised: BaseException) -> None:
    def model(_request: Any) -> str:
        raise raised

    on = stage("allow look")
    result, _ = play(on, model)
    assert (result.status, result.reason) == ("failed", "model-failed")
    assert result.note == f"the model failed: {type(raised).__name__}"
    assert on.open_reservations() == []
