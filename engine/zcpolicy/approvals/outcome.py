"""How asking ended (SPEC 9).

In: answers. Out: `Approved`, `Edited`, `Refusal` or `Waiting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Never

from zcpolicy.approvals.binding import bound
from zcpolicy.approvals.question import Question
from zcpolicy.combine import Verdict, of_the_call
from zcpolicy.decision import Decision
from zcpolicy.facts import ToolName
from zcpolicy.refusals import PermitError
from zcpolicy.sealed import NoTruth, Sealed, final, put
from zcpolicy.texts import escaped


class NotAsked(PermitError):
    """An answer to a question that was never asked, is asked no more, or is not this one's to answer."""


@final
class Approved(Sealed, NoTruth):
    """Everybody whom the policy names said yes to one call. Made by `ApprovalManager.settle`.

    `binding`: the digest of all that the yes is bound to, `""` if nobody had to be asked. `by`: who said it.
    """

    __slots__ = ("binding", "by")
    _maker = "`ApprovalManager.settle`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self.binding: Final[str] = sealed
            self.by: Final[tuple[str, ...]] = sealed

    def covers(self, decision: Decision) -> bool:
        """Whether a decision, made after the yes, still asks the very question that was answered."""
        return decision.effect == "ask" and bound(decision).call == self.binding


def approved(binding: str, by: tuple[str, ...]) -> Approved:
    """For the manager alone."""
    made: Approved = object.__new__(Approved)
    put(made, "binding", binding)
    put(made, "by", by)
    return made


@dataclass(frozen=True, slots=True)
class Edited(NoTruth):
    """Somebody wants another call instead: it is decided afresh, and asks afresh. `by`: who."""

    tool: ToolName
    arguments: dict[str, Any]
    by: str = ""


@dataclass(frozen=True, slots=True)
class Refusal(NoTruth):
    """The call may not run. `decision`: the deny that it comes to. `rejected`: somebody said no; else nobody said yes.

    `note`: why, in the words of who said no, or the engine's. `by`: who said it.
    """

    decision: Decision
    rejected: bool = False
    note: str = ""
    by: str = ""

    @property
    def reason(self) -> str:
        """`rejected`, or the code of the deny: `no-approver`, `ledger-unavailable`, or what the call is denied for by now."""
        return "rejected" if self.rejected else self.decision.reason

    @property
    def text(self) -> str:
        """What to tell the model; it quotes no policy."""
        if not self.rejected:
            return self.decision.for_model
        said = f" They say: {escaped(self.note)}" if self.note else ""
        return f"Somebody was asked, and said no. Do not make this call again as it is, nor reach its end in another way.{said}"


def refused(asked: Decision, code: str, note: str = "") -> Refusal:
    """The deny that a question comes to, by its code."""
    verdict = of_the_call(asked.verdict, Verdict("deny", code, asked.rules, note=note))
    return Refusal(Decision(verdict, asked.arguments, asked.run, asked.labels), note=note)


def rejected(asked: Decision, note: str, by: str) -> Refusal:
    """The deny that a person's no is."""
    return Refusal(refused(asked, "denied", "somebody was asked, and said no").decision, True, note, by)


@dataclass(frozen=True, slots=True)
class Waiting(NoTruth):
    """Answers come later, to these questions (`ApprovalManager.answer`); then `settle` again, with the same key."""

    questions: tuple[Question, ...]


Outcome = Approved | Edited | Refusal | Waiting
