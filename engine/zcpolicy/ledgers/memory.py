"""A ledger in this process's memory: what was charged, and when.

In: `Charge`s. Out: those that a limit asks about. Limits are computed from charges, never stored: an edited limit
applies to what is spent.
"""

from __future__ import annotations

from _thread import RLock, allocate_lock
from collections import deque

from zcpolicy.exact import added

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from decimal import Decimal
    from typing import Final

    from zcpolicy.facts import ToolName


MAX_POTS: Final = 10_000
"""Pots whose sums are remembered; a forgotten one is counted from all charges again."""


class Charge:
    """One amount of one unit that one call spent.

    `agents`: the acting agent and those above it. `chains`: they and all that they narrow. `skills`: active in them.
    `clients`, `sessions`, `turns`: of the acting execution and those above it. `argument`: the path below args of a sum.
    `values`: for each argument that some limit keeps pots by, the pots that this call counts in.
    """

    __slots__ = (
        "agents", "amount", "argument", "at", "chains", "clients", "currency", "sessions", "skills", "tool", "turns", "unit",
        "values",
    )  # fmt: skip

    def __init__(
        self,
        *,
        at: float,
        unit: str,
        amount: int | Decimal,
        tool: ToolName,
        clients: frozenset[str],
        agents: tuple[str, ...],
        chains: frozenset[str],
        skills: frozenset[str] = frozenset(),
        sessions: frozenset[str],
        turns: frozenset[tuple[str, str]],
        currency: str = "",
        argument: tuple[str, ...] = (),
        values: Mapping[tuple[str, ...], frozenset[str]] | None = None,
    ) -> None:
        self.at = at
        self.unit = unit
        self.amount = amount
        self.tool = tool
        self.clients = clients
        self.agents = agents
        self.chains = chains
        self.skills = skills
        self.sessions = sessions
        self.turns = turns
        self.currency = currency
        self.argument = argument
        self.values: Mapping[tuple[str, ...], frozenset[str]] = values or {}


class Spent:
    """What counts in one pot: its charges, oldest first, and their sum."""

    __slots__ = ("charges", "seen", "total")

    def __init__(self) -> None:
        self.charges: deque[Charge] = deque()
        self.total: int | Decimal = 0
        self.seen = 0


class MemoryLedger:
    """Charges by unit, oldest first. `charged`: the same, for a quick look whether there are any.

    `exclusive`: held from the last look at the limits until the call is charged, so that no two calls take one place.
    """

    __slots__ = ("_latest", "_lock", "_pots", "charged", "exclusive")

    def __init__(self) -> None:
        self.charged: dict[str, list[Charge]] = {}
        self._pots: dict[object, Spent] = {}
        self._latest = float("-inf")
        self._lock = allocate_lock()
        self.exclusive = RLock()

    def now(self, clock: float) -> float:
        """The clock, and never before a time that was already acted on."""
        self._latest = max(clock, self._latest)
        return self._latest

    def add(self, charges: Iterable[Charge]) -> None:
        """All of them at once."""
        with self._lock:
            for charge in charges:
                self.charged.setdefault(charge.unit, []).append(charge)

    def spent(self, pot: object, unit: str, counts: Callable[[Charge], bool], after: float | None) -> Spent:
        """What is spent in a pot since a time. What was counted before is not counted again; times only go forward."""
        with self._lock:
            found = self._pots.get(pot)
            if found is None:
                if len(self._pots) >= MAX_POTS:
                    self._pots.clear()
                found = self._pots[pot] = Spent()
            charges = self.charged.get(unit, [])
            for index in range(found.seen, len(charges)):
                if counts(charges[index]):
                    found.charges.append(charges[index])
                    found.total = added(found.total, charges[index].amount)
            found.seen = len(charges)
            while after is not None and found.charges and found.charges[0].at <= after:
                found.total = added(found.total, -found.charges.popleft().amount)
            return found
