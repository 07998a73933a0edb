"""What the loop needs besides the execution: a model, and ways to the outside. Neither is policy.

In: the host's model, prices, approvers, recorder. Out: `ResolvedModelAccess`, `ResolvedIo`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from zcpolicy.approvals.question import Approvers
from zcpolicy.events import Event
from zcpolicy.loop.messages import Model


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


def _nowhere(_event: Event) -> None:
    """For hosts that keep no record."""


def _unheard(_piece: str) -> None:
    """For hosts that do not stream."""


@dataclass(frozen=True, slots=True)
class ResolvedIo:
    """`approvers`: whom to ask. `record`: is given every event. `emit`: is given pieces of the answer as they come."""

    approvers: Approvers = field(default_factory=Approvers)
    record: Callable[[Event], None] = _nowhere
    emit: Callable[[str], None] = _unheard
