"""Whatever is reserved, settled, given back or left to die, in whatever order: nothing is spent that no limit had room for."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budgets.stories import Story, agent, usd
from tests.clock import Clock
from zcpolicy import ResolvedAgentExecution
from zcpolicy.combine import RANK, Verdict
from zcpolicy.ledgers.contract import LEASE_SECONDS
from zcpolicy.ledgers.memory import MemoryLedger

LIMITS = (
    "limit 5 calls",
    "limit 3 calls to ping per hour",
    "limit 2 concurrent calls",
    "limit 4.00 usd",
    "limit 2.50 usd per hour",
    "limit 20s time",
)
AMOUNTS = st.integers(0, 8).map(lambda quarters: Decimal(quarters) / 4)
STEPS = st.tuples(
    st.sampled_from(("reserve", "reserve", "reserve", "dispatch", "settle", "settle", "release", "renew", "wait")),
    st.integers(0, 2),  # who: the root or one of its children
    st.sampled_from(("ping", "pong")),
    AMOUNTS,
    st.integers(0, 30),
)


@dataclass
class Held:
    """A reservation as the test remembers it. `until`: when its lease ends."""

    tool: str
    at: float
    until: float
    cost: Decimal
    seconds: int = 0
    state: str = "reserved"

    def counts(self, now: float) -> bool:
        return self.state in ("dispatched", "settled") or (self.state == "reserved" and now < self.until)

    def runs(self, now: float) -> bool:
        return self.state in ("reserved", "dispatched") and now < self.until


@dataclass
class Book:
    """All that was reserved, counted anew at each look: no ledger but addition."""

    held: dict[str, Held] = field(default_factory=dict[str, Held])

    def spent(self, limit: str, now: float) -> Decimal:
        words = limit.split()
        counting = [
            one
            for one in self.held.values()
            if one.counts(now)
            and ("ping" not in words or one.tool == "ping")
            and ("hour" not in words or one.at > now - 3_600)
        ]
        if "concurrent" in words:
            return Decimal(sum(one.runs(now) for one in counting))
        amounts = {"usd": [one.cost for one in counting], "time": [Decimal(one.seconds) for one in counting]}
        return sum(amounts.get(words[2], [Decimal(1)] * len(counting)), Decimal(0))


def most(limit: str) -> Decimal:
    return Decimal(limit.split()[1].rstrip("s"))


def tree(limits: tuple[str, ...], ledger: MemoryLedger, clock: Clock) -> list[ResolvedAgentExecution]:
    """A root under these limits, and two children in sessions of their own."""
    story = Story(agent(*limits, more="delegate to b") + agent(name="b"), ledger=ledger, clock=clock)
    root = story.run(id="root")
    return [root, story.run("b", parent=root, id="one"), story.run("b", parent=root, id="two")]


class Running:
    """Steps done in the engine and in the book side by side."""

    def __init__(self, limits: tuple[str, ...]) -> None:
        self.limits = limits
        self.clock = Clock()
        self.ledger = MemoryLedger()
        self.line = tree(limits, self.ledger, self.clock)
        self.book = Book()

    def step(self, what: str, who: int, tool: str, amount: Decimal, number: int) -> None:
        run = self.line[who]
        if what == "reserve":
            self.reserve(run, tool, amount)
        elif what == "wait":
            self.clock.now += number * LEASE_SECONDS / 5
        elif self.book.held:
            key = sorted(self.book.held)[number % len(self.book.held)]
            getattr(self, what)(run, key, self.book.held[key], amount, number)

    def reserve(self, run: ResolvedAgentExecution, tool: str, cost: Decimal) -> None:
        key, now = f"k{len(self.book.held):03}", self.clock.now
        found = run.budgets.reserve(run.decide(tool, {}), key, usd(str(cost)))
        before = {limit: self.book.spent(limit, now) for limit in self.limits}
        self.book.held[key] = Held(tool, now, now + LEASE_SECONDS, cost)
        room = all(
            (before[limit] < most(limit) if "time" in limit else self.book.spent(limit, now) <= most(limit))
            for limit in self.limits
            if "to ping" not in limit or tool == "ping"
        )
        assert room is not isinstance(found, Verdict)
        if not room:
            self.book.held[key].state = "released"

    def dispatch(self, run: ResolvedAgentExecution, key: str, held: Held, _amount: Decimal, _number: int) -> None:
        may = held.state == "reserved" and self.clock.now < held.until
        assert run.budgets.dispatch(key) is may
        held.state = "dispatched" if may else held.state

    def settle(self, run: ResolvedAgentExecution, key: str, held: Held, amount: Decimal, seconds: int) -> None:
        if held.state == "dispatched":  # a gate settles nothing else
            run.budgets.settle(key, cost=usd(str(amount)), seconds=seconds)
            held.state, held.cost, held.seconds = "settled", amount, seconds

    def release(self, run: ResolvedAgentExecution, key: str, held: Held, _amount: Decimal, _number: int) -> None:
        run.budgets.release(key)
        held.state = "released" if held.state == "reserved" else held.state

    def renew(self, run: ResolvedAgentExecution, key: str, held: Held, _amount: Decimal, _number: int) -> None:
        run.budgets.renew(key)
        if held.state == "dispatched" or (held.state == "reserved" and self.clock.now < held.until):
            held.until = max(held.until, self.clock.now + LEASE_SECONDS)

    def agrees(self) -> None:
        """What the engine says is spent is what the book adds up to; counts are never exceeded."""
        said: dict[Any, Any] = {
            (one["unit"], one["of"]): one["spent"] for one in self.line[1].decide("ping", {}).charges
        }
        for limit in self.limits:
            spent = self.book.spent(limit, self.clock.now)
            unit = {"usd": "money", "concurrent": "concurrent calls"}.get(limit.split()[2], limit.split()[2])
            of = format(most(limit).normalize(), "f")
            assert not said or Decimal(said[unit, of]) == spent
            assert "calls" not in limit or spent <= most(limit)


@given(st.lists(st.sampled_from(LIMITS), min_size=1, max_size=4, unique=True).map(tuple), st.lists(STEPS, max_size=40))
@settings(max_examples=150, deadline=None)
def test_there_is_room_exactly_where_addition_says_so(limits: tuple[str, ...], steps: list[Any]) -> None:
    running = Running(limits)
    for step in steps:
        running.step(*step)
        running.agrees()


@given(
    st.lists(st.sampled_from(LIMITS), max_size=2, unique=True).map(tuple), st.sampled_from(LIMITS), st.lists(STEPS, max_size=20),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_one_limit_more_never_widens(limits: tuple[str, ...], more: str, steps: list[Any]) -> None:
    running = Running(limits)
    stricter = tree((*limits, more), running.ledger, running.clock)
    for step in steps:
        running.step(*step)
        for loose, strict in zip(running.line, stricter, strict=True):
            for tool in ("ping", "pong"):
                assert RANK[strict.decide(tool, {}).effect] <= RANK[loose.decide(tool, {}).effect]
