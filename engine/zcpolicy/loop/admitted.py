"""A call that may run, once.

In: what the gate found. Out: `Admitted`, sealed: its arguments are fresh, made from the text that was judged.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Never, Self

from zcpolicy.decision import Decision
from zcpolicy.sealed import Sealed

NOTHING: Final[Mapping[str, Decimal]] = {}


class Admitted(Sealed):
    """A call that was decided, asked, reserved and marked. Made by the gate; runs once.

    `arguments`: what runs, JSON values. `wire`: the same as JSON text. `decision`: the last one, which permits it.
    `async with` cleans up: what was not started is given back, what was not finished counts as failed.
    """

    __slots__ = ("__weakref__", "arguments", "decision", "key", "wire")
    _maker = "`admit`"

    def __init__(self, sealed: Never, /) -> None:
        self.arguments: Final[dict[str, Any]] = sealed
        self.wire: Final[str] = sealed
        self.decision: Final[Decision] = sealed
        self.key: Final[str] = sealed

    async def start(self) -> None:
        """The call is sent now: from here on it counts. Raises PermitError where its reservation is gone: do not send it."""

    async def finish(self, ok: bool, cost: Mapping[str, Decimal] = NOTHING) -> None:
        """It has run. `ok`: it reports success. `cost`: what it spent, by currency."""

    async def abandon(self) -> None:
        """It is not made after all. Does nothing once it was started."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.abandon()
