"""What a host may report, and what it may not."""

from typing import Any

import pytest

from zcpolicy import FactsError, Narrowing, Session
from zcpolicy.facts import MAX_HISTORY, Entry, ToolName

SESSIONS: dict[str, dict[str, Any]] = {
    "cwd": {"cwd": 7},
    "interactive": {"interactive": "yes"},
    "platform": {"platform": "plan9"},
    "supplies_defaults": {"supplies_defaults": 1},
    "client": {"client": None},
    "env": {"env": {"HOME": 7}},
    "server_cwd": {"server_cwd": {7: "/"}},
    "labels": {"labels": "private"},
    "labels in it": {"labels": [7]},
    "never": {"never": "cwd"},
}
NARROWINGS: dict[str, dict[str, Any]] = {
    "only": {"only": "file_read"},
    "only in it": {"only": [7]},
    "a name of three": {"deny": [("a", "b", "c")]},
    "a name of one": {"deny": [["a"]]},
    "autonomy": {"autonomy": "free"},
    "autonomy of some classes": {"autonomy": {"read": "allow"}},
    "autonomy of another answer": {"autonomy": {"read": "yes", "low": "ask", "medium": "ask", "high": "ask"}},
    "limits": {"limits": ["20 calls"]},
    "exclude_memory": {"exclude_memory": 1},
}


@pytest.mark.parametrize("what", SESSIONS)
def test_a_session_of_another_shape(what: str) -> None:
    with pytest.raises(FactsError):
        Session(**SESSIONS[what])


@pytest.mark.parametrize("what", NARROWINGS)
def test_a_narrowing_of_another_shape(what: str) -> None:
    with pytest.raises(FactsError):
        Narrowing(**NARROWINGS[what])


def test_a_tool_may_come_as_json_writes_it() -> None:
    listed: Any = [["gh", "get"], "read"]
    assert Narrowing(only=listed).only == frozenset[ToolName]([("gh", "get"), "read"])


def test_labels_only_grow() -> None:
    session = Session(labels=["a"])
    session.mark(["b"])
    session.mark([])
    assert session.labels == {"a", "b"}
    assert Session(above=session).labels == {"a", "b"}


def test_sessions_without_an_id_are_different_ones() -> None:
    assert Session().id != Session().id


def test_a_history_keeps_the_newest() -> None:
    session = Session(history=[Entry("old", {})] * MAX_HISTORY)
    session.record(Entry("new", {}))
    assert session.history is not None
    assert len(session.history) < MAX_HISTORY
    assert session.history[-1].tool == "new"
    unreadable = Session(history=None)
    unreadable.record(Entry("new", {}))
    assert unreadable.history is None
