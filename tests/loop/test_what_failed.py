"""A tool that fails tells its author why, and the model nothing."""

import logging
from typing import Any

import pytest

from tests.loop.stage import Stage, play, stage, told
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import ToolContext

LOOK = calls(("look", {"at": "x"}))


class Unsayable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def failing(raised: Exception) -> Stage:
    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        raise raised

    return stage("allow look", look=look)


def on_record(on: Stage) -> list[tuple[str, str]]:
    """Of each call that is over, what was raised, and what it says."""
    over = [event.data for event in on.events if event.data.get("phase") == "finished"]
    return [(one.get("fault", ""), one.get("error", "")) for one in over]


@pytest.mark.parametrize(
    ("raised", "fault", "error"),
    [
        (ValueError("no such\nnote \x1b[2J: hunter2"), "ValueError", "no such note \\u{1b}[2J: hunter2"),
        (KeyError("at"), "KeyError", "'at'"),
        (RuntimeError("x" * 9_999), "RuntimeError", "x" * 500),
        (RuntimeError(), "RuntimeError", ""),
        (Unsayable(), "Unsayable", ""),
    ],
)
def test_the_record_says_what_was_raised_and_the_model_hears_nothing_of_it(
    raised: Exception, fault: str, error: str
) -> None:
    on = failing(raised)
    result, model = play(on, LOOK, "done")
    assert on_record(on) == [(fault, error)]
    assert told(result) == ["[failed] The tool failed."]
    assert "hunter2" not in str(model.requests)


def test_the_log_has_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "zcpolicy"):
        play(failing(ValueError("no such note")), LOOK, "done")
    assert [one.getMessage() for one in caplog.records] == ["tool `look` failed: ValueError: no such note"]
    assert "raise raised\nValueError: no such note" in caplog.text


def test_an_answer_that_is_none_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def look(_arguments: dict[str, Any], _context: ToolContext) -> Any:
        return {"at": "x"}

    on = stage("allow look", look=look)
    play(on, LOOK, "done")
    assert on_record(on) == [("dict", "the tool's answer is neither text nor a `ToolResult`")]
    assert "tool `look` failed: dict" in caplog.text


def test_what_succeeds_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    on = stage("allow look")
    play(on, LOOK, "done")
    assert on_record(on) == [("", "")]
    assert caplog.records == []
