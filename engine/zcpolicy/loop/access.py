"""What the loop needs besides the execution: a model, and ways to the outside. Neither is policy.

In: the host's model, prices, approvers, recorder, way to delegate. Out: `ResolvedModelAccess`, `ResolvedIo`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Generic, Protocol

from zcpolicy.approvals.question import Approvers
from zcpolicy.events import Event, nowhere
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.loop.messages import Model
from zcpolicy.registry.sources import ToolResult


class NamedModel(Protocol):
    """What `budgets` reads of a model, and all that a host with a loop of its own has to give."""

    @property
    def name(self) -> str:
        """What prices know it by."""
        ...


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    M_co = TypeVar("M_co", bound=NamedModel, covariant=True, default=Model)
else:
    from typing import TypeVar

    M_co = TypeVar("M_co", covariant=True)


class Prices(Protocol):
    """What tokens cost."""

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Mapping[str, Decimal] | None:
        """By currency (`usd`), exact; None where the model has no price, which a money limit denies."""
        ...


@dataclass(frozen=True, slots=True)
class ResolvedModelAccess(Generic[M_co]):
    """`model`: a `Model`; a loop of the host's own needs no more of it than a `name`. `max_output_tokens`: of one response;
    reserved before each request where tokens or money are limited. Raises TypeError.
    """

    model: M_co
    prices: Prices | None = None
    max_output_tokens: int = 4_096

    def __post_init__(self) -> None:
        name: object = getattr(self.model, "name", None)
        _must_be(isinstance(name, str), "model", "has a `name`", self.model)
        _must_be(self.prices is None or hasattr(self.prices, "cost"), "prices", "has a `cost`", self.prices)
        whole = type(self.max_output_tokens) is int and self.max_output_tokens >= 0
        _must_be(whole, "max_output_tokens", "is a whole number, 0 or more", self.max_output_tokens)


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

    def __post_init__(self) -> None:
        """Raises TypeError: what is no approver or recorder would be found out at the first question or event."""
        whom = "is an `Approvers`, such as `Approvers(person=…)`"
        _must_be(_is_approvers(self.approvers), "approvers", whom, self.approvers)
        functions: dict[str, object] = {"record": self.record, "emit": self.emit, "delegate": self.delegate}
        for name, given in functions.items():
            _must_be(callable(given), name, "is a function", given)


def _is_approvers(given: object) -> bool:
    return isinstance(given, Approvers)


def _must_be(holds: bool, name: str, what: str, given: object) -> None:
    if not holds:
        raise TypeError(f"`{name}` {what}, and this is a `{type(given).__name__[:60]}`")
