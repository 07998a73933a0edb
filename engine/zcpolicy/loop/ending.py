"""Why a turn ends before the model has answered.

In: what stands in the way. Out: `Ended`, which the loop turns into a `TurnResult`.
"""

from typing import Final

from zcpolicy.approvals.question import Question
from zcpolicy.combine import Verdict
from zcpolicy.loop.turn import Status
from zcpolicy.room import EXHAUSTED, texts_of

_NOTES: Final = {
    "budget": "a limit of the policy is reached: {what}. Wait until there is room, or raise the limit",
    "ledger-unavailable": "the ledger cannot be reached, so what is left of a limit is not known: {what}. Try again when it answers",
    "iterations": "the turn has used all its requests to the model: {what}. Ask again to go on, or raise the limit",
    "turn-timeout": "the turn's time is over: {what}. Ask again to go on, or raise `turn_timeout`",
    "context": "what has to be sent does not fit in {what}. Raise `context`, or lower `tool_result`",
    "stale-policy": "the policy that is in force now has no such execution, or none: {what}",
    "asked": "a person is asked: {what}",
}


class Ended(Exception):
    """The turn ends here. `reason`, `note`, `retry_after`, `questions` as of a `TurnResult`."""

    def __init__(
        self,
        status: Status,
        reason: str,
        what: str = "",
        *,
        note: str = "",
        retry_after: float | None = None,
        questions: tuple[Question, ...] = (),
    ) -> None:
        self.status: Status = status
        self.reason = reason
        self.note = note or _NOTES[reason].format(what=what)
        self.retry_after = retry_after
        self.questions = questions
        super().__init__(self.note)


def by_limit(denied: Verdict) -> Ended:
    """The end by a limit that has no room, or cannot count what the request takes: then its note says what it is."""
    rules = texts_of(denied.rules)
    reason = denied.reason if denied.reason in _NOTES else "budget"
    what, note = rules or "it has no room", denied.note
    if reason == "ledger-unavailable":
        what, note = note, ""
    elif note.startswith(EXHAUSTED):
        note = ""
    if note and rules:
        note = f"{note} ({rules})"
    return Ended("stopped", reason, what, note=note, retry_after=denied.retry_after)
