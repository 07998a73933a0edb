"""The gate: the one place where a call of async code becomes permitted (SPEC 5, 8, 9).

In: a sealed execution, a tool, its arguments, the ways to ask. Out: `Admitted`, `Refused` or `Paused`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from zcpolicy.approvals.question import Question
from zcpolicy.authority import genuine
from zcpolicy.decision import Decision
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import ToolName
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.admitted import NOTHING, Admitted
from zcpolicy.registry.sources import InnerCall

__all__ = ["Admitted", "Paused", "Refused", "admit", "admit_all"]


@dataclass(frozen=True, slots=True)
class Refused:
    """It does not run. `text`: what to tell the model."""

    decision: Decision
    text: str


@dataclass(frozen=True, slots=True)
class Paused:
    """It waits for an answer: nothing is reserved. Admit it again, with the same key, when the answer has come."""

    decision: Decision
    question: Question


async def admit(
    execution: ResolvedAgentExecution,
    tool: ToolName,
    arguments: object,
    io: ResolvedIo,
    *,
    key: str = "",
    cost: Mapping[str, Decimal] = NOTHING,
) -> Admitted | Refused | Paused:
    """Decides, asks, decides again, reserves and marks. `arguments`: an object, or JSON text, which is judged as text.

    `key`: of this one call, never from a model; "": a new one. `cost`: what it is thought to spend, by currency.
    Raises SealError.
    """
    genuine(execution)
    decision = execution.renewed().decide(tool, arguments)
    return Refused(decision, decision.for_model)


async def admit_all(
    execution: ResolvedAgentExecution, wanted: Sequence[InnerCall], io: ResolvedIo, *, key: str = ""
) -> list[Admitted] | Refused | Paused:
    """Every call, each under the marks of those before it; one that is not admitted, and none is. Raises SealError."""
    genuine(execution)
    found: list[Admitted] = []
    return found
