"""What an answer is worth (SPEC 9): what is not exactly a yes is none.

In: whatever an approver gave back. Out: a yes within what was offered, an edit, a no, a later, or `Nothing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, get_args

from zcpolicy.approvals.outcome import Edited
from zcpolicy.approvals.question import Absent, Approve, Later, Question, Reject, Scope
from zcpolicy.call import judge, same
from zcpolicy.facts import ToolName
from zcpolicy.names import is_tool_name

MAX_SAID_CHARACTERS: Final = 2_000
"""Characters of a note, and of the name of who says it, that are kept."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No answer: nobody was there, or what came is none. `why`: for records. `absent`: it says itself that nobody is there."""

    why: str
    absent: bool = False


Worth = Approve | Edited | Reject | Later | Nothing


def weighed(answer: object, question: Question, arguments: Mapping[str, Any]) -> Worth:
    """An answer, held against its question. `arguments`: those that were asked about. Never raises.

    A scope wider than offered becomes `once`. Subclasses of answers, and answers with fields of other kinds, are none.
    """
    if type(answer) is Later:
        return answer
    if type(answer) is Reject:
        return Reject(_text(answer.note), _text(answer.by))
    if type(answer) is Absent:
        return Nothing(_text(answer.note) or "nobody is there", absent=True)
    try:
        found = _yes(answer, question, arguments) if type(answer) is Approve else None
    except Exception:  # noqa: BLE001 - mappings of the host's own may do anything
        found = None
    return Nothing("what came is no answer") if found is None else found


def _yes(answer: Approve, question: Question, arguments: Mapping[str, Any]) -> Approve | Edited | None:
    said: Any = answer.scope
    known = type(said) is str and said in get_args(Scope)
    if not known or type(answer.by) is not str or not _is_time(answer.seconds):
        return None
    if answer.tool is not None or answer.arguments is not None:
        edited = _edit(answer, question.tool, arguments)
        if edited.tool != question.tool or not same(edited.arguments, {**arguments}):
            return edited
    scope: Scope = answer.scope if answer.scope in question.scopes else "once"
    return Approve(scope, answer.seconds if scope != "once" else None, by=_text(answer.by))


def _edit(answer: Approve, asked: ToolName, arguments: Mapping[str, Any]) -> Edited:
    """A copy that the approver cannot alter any more. Raises Malformed, TypeError."""
    wanted = arguments if answer.arguments is None else answer.arguments
    tool = asked if answer.tool is None else answer.tool
    if not is_tool_name(tool):
        raise TypeError("no tool's name")
    return Edited(tool, judge({"kind": "object", "extra": "allow"}, {**wanted}), _text(answer.by))


def _is_time(seconds: object) -> bool:
    return seconds is None or (type(seconds) in (int, float) and isfinite(seconds) and seconds > 0)  # type: ignore[arg-type,operator]  # a number


def _text(said: object) -> str:
    return said[:MAX_SAID_CHARACTERS] if type(said) is str else ""
