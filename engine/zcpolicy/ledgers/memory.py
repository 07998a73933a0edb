"""A ledger in this process's memory: what was charged, and when.

In: `Charge`s. Out: those that a limit asks about. Limits are computed from charges, never stored: an edited limit
applies to what is spent.
"""

from __future__ import annotations

from threading import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from decimal import Decimal

    from zcpolicy.facts import ToolName


class Charge:
    """One amount of one unit that one call spent.

    `agents`: the acting agent and those above it. `chains`: they and all that they narrow. `skills`: active in them.
    `sessions`, `turns`: of the acting execution and those above it. `argument`: the path below args of a sum.
    `values`: for each argument that some limit keeps pots by, the pots that this call counts in.
    """

    __slots__ = (
        "agents", "amount", "argument", "at", "chains", "client", "currency", "sessions", "skills", "tool", "turns", "unit",
        "values",
    )  # fmt: skip

    def __init__(
        self,
        *,
        at: float,
        unit: str,
        amount: int | Decimal,
        tool: ToolName,
        client: str,
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
        self.client = client
        self.agents = agents
        self.chains = chains
        self.skills = skills
        self.sessions = sessions
        self.turns = turns
        self.currency = currency
        self.argument = argument
        self.values: Mapping[tuple[str, ...], frozenset[str]] = values or {}


class MemoryLedger:
    """Charges by unit, oldest first."""

    __slots__ = ("_by_unit", "_latest", "_lock")

    def __init__(self) -> None:
        self._by_unit: dict[str, list[Charge]] = {}
        self._latest = float("-inf")
        self._lock = Lock()

    def now(self, clock: float) -> float:
        """The clock, and never before the last charge."""
        return max(clock, self._latest)

    def add(self, charges: Iterable[Charge]) -> None:
        """All of them at once."""
        with self._lock:
            for charge in charges:
                self._by_unit.setdefault(charge.unit, []).append(charge)
                self._latest = max(self._latest, charge.at)

    def matching(self, unit: str, counts: Callable[[Charge], bool]) -> list[Charge]:
        """The charges of a unit that count."""
        with self._lock:
            return [charge for charge in self._by_unit.get(unit, ()) if counts(charge)]
