"""What counts in a pot, and whether there is room (SPEC 8): the one place that knows, whatever the store.

In: pots, and the reservations that a store says were made or changed. Out: `Spent`. What was counted is kept, so that a
look costs what is new, not the whole history; what is kept is bounded, and what was dropped is counted from the store.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from zcpolicy.exact import added
from zcpolicy.ledgers.contract import Spent
from zcpolicy.ledgers.reservations import change_before, tag_of
from zcpolicy.windows import calendar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from zcpolicy.ledgers.contract import Number, Pot, Who
    from zcpolicy.ledgers.reservations import Reservation

MAX_TALLIES: Final = 10_000
"""Pots that a ledger keeps counted; of more, those that nobody asked about for longest are counted anew when asked for."""
MAX_PARTS: Final = 1_000_000
"""Charges that a ledger keeps counted, over all pots (one pot alone may be more); then as above."""
REACH: Final = {"day": 2 * 86_400.0, "month": 32 * 86_400.0}
"""Seconds that no calendar window is longer than."""
MIDNIGHT: Final = 1e-6
"""Seconds before a calendar's start: a charge at midnight is of the new day."""


class Tally:
    """What counts in one pot. `tag`: what the store finds it by. `mark`: the number of the last change that is counted;
    None while nothing is.
    """

    __slots__ = ("_calendar", "_leases", "_order", "_parts", "_soonest", "booked", "mark", "pot", "tag", "total")

    def __init__(self, pot: Pot) -> None:
        self.pot = pot
        self.tag = tag_of(pot)
        self.booked = 0  # parts that the book knows of
        self._calendar = (0.0, 0.0)
        self.forget()

    def forget(self) -> None:
        """Counts nothing any more."""
        self.mark: int | None = None
        self.total: Number = 0
        self._parts: dict[int, Number] = {}
        self._order: list[tuple[float, int]] = []  # (when, which) of the parts, only where the clock takes them away
        self._leases: dict[int, tuple[float, float]] = {}  # of the parts that a lease may take away: until, at
        self._soonest = float("inf")  # none of them ends earlier

    def __len__(self) -> int:
        return len(self._parts)

    def since(self, now: float) -> int:
        """The store must tell what changed after this number."""
        if self.mark is not None:
            return self.mark
        start = self._starts_after(now)
        return -1 if start is None else change_before(start)

    def reach(self) -> float:
        """Seconds into the past that the window never reaches beyond; 0 if the clock does not bound it."""
        window = self.pot.window
        if window["kind"] == "rolling":
            return float(window.get("seconds", "0"))
        return REACH[window.get("calendar", "day")] if window["kind"] == "calendar" else 0.0

    def catch_up(self, changed: Iterable[Reservation], now: float, mark: int) -> None:
        """Counts what changed, up to `mark`, and drops what counts no more. Times and marks only go forward."""
        start = self._starts_after(now)
        for one in changed:
            self._drop(one.seq, one.at)
            if start is None or one.at > start:
                self._take(one, now)
        if self._soonest <= now:
            self._end_leases(now)
        if start is not None and self._order and self._order[0][0] <= start:
            gone = bisect_right(self._order, start, key=_when)
            for _, seq in self._order[:gone]:
                self.total = added(self.total, _negative(self._parts.pop(seq)))
                self._leases.pop(seq, None)
            del self._order[:gone]
        self.mark = mark

    def spent(self, pot: Pot, now: float) -> Spent:
        """What is spent, as of the last `catch_up`. `pot`: this one, with its own limit and need."""
        if _fits(self.total, pot):
            return Spent(self.total, room=True, retry_after=0.0)
        return Spent(self.total, room=False, retry_after=self._retry_after(pot, now))

    # --- inside ------------------------------------------------------------------------------------------------------

    def _starts_after(self, now: float) -> float | None:
        window = self.pot.window
        if window["kind"] == "rolling":
            return now - float(window.get("seconds", "0"))
        if window["kind"] == "calendar":
            return self._period(now)[0] - MIDNIGHT
        return None

    def _period(self, now: float) -> tuple[float, float]:
        if not self._calendar[0] <= now < self._calendar[1]:
            self._calendar = calendar(self.pot.window, now)
        return self._calendar

    def _take(self, one: Reservation, now: float) -> None:
        amount, until = counted(one, self.pot)
        if not amount or (until is not None and until <= now):
            return
        self._parts[one.seq] = amount
        self.total = added(self.total, amount)
        if until is not None:
            self._leases[one.seq] = (until, one.at)
            self._soonest = min(self._soonest, until)
        if self.pot.window["kind"] in ("rolling", "calendar"):
            insort(self._order, (one.at, one.seq))

    def _end_leases(self, now: float) -> None:
        for seq, (_, at) in [pair for pair in self._leases.items() if pair[1][0] <= now]:
            self._drop(seq, at)
        self._soonest = min((until for until, _ in self._leases.values()), default=float("inf"))

    def _drop(self, seq: int, at: float) -> None:
        amount = self._parts.pop(seq, None)
        if amount is None:
            return
        self.total = added(self.total, _negative(amount))
        self._leases.pop(seq, None)
        if self._order:
            del self._order[bisect_left(self._order, (at, seq))]

    def _retry_after(self, pot: Pot, now: float) -> float | None:
        if not _fits(0, pot):
            return None
        if pot.window["kind"] == "calendar":
            return self._period(now)[1] - now
        if pot.window["kind"] != "rolling":
            return None
        left = self.total
        for at, seq in self._order:
            left = added(left, _negative(self._parts[seq]))
            if _fits(left, pot):
                return max(0.0, at + float(pot.window.get("seconds", "0")) - now)
        return None


class Book:
    """The tallies that are kept, those asked for last at the end."""

    __slots__ = ("_parts", "_tallies")

    def __init__(self) -> None:
        self._tallies: dict[object, Tally] = {}
        self._parts = 0

    def tally(self, pot: Pot) -> Tally:
        """The tally of a pot. Its limit and need make it no other: an edited limit applies to what is spent."""
        key = _identity(pot)
        found = self._tallies.pop(key, None)
        if found is None:
            found = Tally(pot)
        self._tallies[key] = found
        return found

    def trim(self, grown: Tally) -> None:
        """Forgets what is beyond the bounds, after a tally caught up."""
        self._parts += len(grown) - grown.booked
        grown.booked = len(grown)
        while len(self._tallies) > MAX_TALLIES or (self._parts > MAX_PARTS and len(self._tallies) > 1):
            self._parts -= self._tallies.pop(next(iter(self._tallies))).booked

    def clear(self) -> None:
        """Forgets all, also of tallies that somebody still holds: the store is not what it was."""
        for tally in self._tallies.values():
            tally.forget()
        self._tallies.clear()
        self._parts = 0


def counted(one: Reservation, pot: Pot) -> tuple[Number, float | None]:
    """How much of a reservation counts in a pot, if its window reaches back so far, and until when; None: for good."""
    running = pot.unit == "concurrent calls"
    if one.state == "released" or (running and one.state == "settled"):
        return 0, None
    amounts = [
        charge.amount
        for charge in one.charges
        if charge.unit == pot.unit and charge.currency == pot.currency and charge.argument == pot.argument
    ]
    if not amounts or not _of_pot(one, pot):
        return 0, None
    total: Number = 0
    for amount in amounts:
        total = added(total, amount)
    return total, one.until if running or one.state == "reserved" else None


def _of_pot(one: Reservation, pot: Pot) -> bool:
    spender, who = one.spender, pot.who
    if pot.tools is not None and spender.tool not in pot.tools:
        return False
    kind = pot.window["kind"]
    if kind == "turn" and not any(_in_session(each, who) and each.turn == who.turn for each in spender.line):
        return False
    if kind == "session" and not _of_session(one, pot):
        return False
    return _of_owner(one, pot) and _of_each(one, pot)


def _of_owner(one: Reservation, pot: Pot) -> bool:
    kind, _, name = pot.owner.partition(":")
    if kind == "agent":
        return name in one.spender.chains
    if kind == "skill":
        return name in one.spender.skills
    return kind == "ceiling" or _of_session(one, pot)


def _of_session(one: Reservation, pot: Pot) -> bool:
    return any(_in_session(each, pot.who) for each in one.spender.line)


def _in_session(each: Who, who: Who) -> bool:
    """A session is a client's: another client may call one by the same name."""
    return each.session == who.session and each.client == who.client


def _of_each(one: Reservation, pot: Pot) -> bool:
    if not pot.each:
        return True
    kind, line, who = pot.each[0], one.spender.line, pot.who
    if kind == "client":
        return any(each.client == who.client for each in line)
    if kind == "session":
        return _of_session(one, pot)
    if kind == "agent":
        return any(each.agent == who.agent for each in line)
    return pot.value in one.spender.values.get(pot.each[1:], ())


def _identity(pot: Pot) -> object:
    """All that makes it another pot; of `who` only what it looks at, so that sessions share what is common to them."""
    window, who, each = pot.window, pot.who, pot.each[:1]
    in_session = window["kind"] in ("turn", "session") or each == ("session",) or not _shared(pot.owner)
    return (
        pot.unit, pot.currency, pot.argument, pot.tools, pot.owner, pot.each, pot.value,
        window["kind"], window.get("seconds"), window.get("calendar"), window.get("zone"),
        who.session if in_session else None,
        who.turn if window["kind"] == "turn" else None,
        who.client if in_session or each == ("client",) else None,
        who.agent if each == ("agent",) else None,
    )  # fmt: skip


def _shared(owner: str) -> bool:
    return owner.partition(":")[0] in ("ceiling", "agent", "skill")


def _fits(spent: Number, pot: Pot) -> bool:
    after = added(spent, pot.need)
    return after < pot.limit if pot.open_end else after <= pot.limit


def _negative(number: Number) -> Number:
    """Exactly: unary minus would round a Decimal."""
    return -number if isinstance(number, int) else number.copy_negate()


def _when(part: tuple[float, int]) -> float:
    return part[0]
