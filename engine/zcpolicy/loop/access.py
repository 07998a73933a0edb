"""What the loop needs besides the execution: a model, and ways to the outside. Neither is policy.

In: the host's model, prices, approvers, recorder, way to delegate. Out: `ResolvedModelAccess`, `ResolvedIo`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from zcpolicy.approvals.question import Approvers
from zcpolicy.events import Event, nowhere
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.loop.messages import Model
from zcpolicy.registry.sources import ToolResult


class Prices(Protocol):
    """What tokens cost."""

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Mapping[str, Decimal] | None:
        """By currency (`usd`), exact; None where the model has no price, which a money limit denies."""
        ...


@dataclass(frozen=True, slots=True)
class ResolvedModelAccess:
    """`max_output_tokens`: of one response; reserved before each request where tokens or money are limited."""

    model: Model
    prices: Prices | None = None
    max_output_tokens: int = 4_096


Delegate = Callable[[ResolvedAgentExecution, str, str, bool], Awaitable[ToolResult]]
"""Has a child of the execution do a task: the execution, the child's agent, the task, whether it is independent. The
child is resolved with `parent=` and has a registry and a loop of its own; what its turn comes to is `TurnResult.for_delegator`.
A child that cannot be is a ResolveError, or a failed result.
"""


def unheard(_piece: str) -> None:
    """For hosts that do not stream."""


async def _nobody(_run: ResolvedAgentExecution, _agent: str, _task: str, _independent: bool) -> ToolResult:
    """For hosts that do not delegate."""
    return ToolResult("this host does not delegate", ok=False)


@dataclass(frozen=True, slots=True)
class ResolvedIo:
    """`approvers`: whom to ask. `record`: is given every event. `emit`: is given pieces of the answer as they come.
    `waits=False`: nobody takes up a turn that pauses, so that `Later` is no yes; for a child's turn it never is one.

    `delegate`: the host's way to have another agent do something. What `record` or `emit` raises fails the turn.
    """

    approvers: Approvers = field(default_factory=Approvers)
    record: Callable[[Event], None] = nowhere
    emit: Callable[[str], None] = unheard
    delegate: Delegate = _nobody
    waits: bool = True
