"""A ledger in this process's memory: gone with the process, seen by no other.

In: charges, yeses, what a limit asks. Out: what is spent, reservations. It does not grow with the life of the process:
what nobody holds any more, and is older than every window of the clock that a limit asked about and than
`APART_SECONDS`, is put together by spender, which is exact for sessions and turns, and for a window that was not asked
about counts as of the latest of it; what is older than `KEPT_SECONDS` as well is forgotten, by sessions too.
"""

from __future__ import annotations

from _thread import allocate_lock

from zcpolicy.ledgers import reservations as step
from zcpolicy.ledgers.book import Book
from zcpolicy.ledgers.contract import LEASE_SECONDS, Entry, Exhausted, LedgerUnavailable, Reserved
from zcpolicy.ledgers.reservations import Reservation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Final

    from zcpolicy.ledgers.contract import Charge, Pot, Spender, Spent, Yes

MAX_YESES: Final = 10_000
"""Yeses that a ledger in memory keeps; of more, the oldest go, and what they were for asks again."""
APART_SECONDS: Final = 86_400.0
"""Seconds for which reservations stay apart."""
KEPT_SECONDS: Final = 32 * 86_400.0
"""Seconds for which they count at all."""
SWEEP_EVERY: Final = 10_000
"""Reservations after which a ledger in memory looks for what it may forget."""


class MemoryLedger:
    """Raises LedgerUnavailable only for a clock that tells no time, and once closed. `charged`: reservations by key."""

    files: tuple[str, ...] = ()
    blocking = False
    __slots__ = (
        "_book", "_by_tag", "_change", "_latest", "_lock", "_longest", "_next_sweep", "_open", "_yeses", "charged",
    )  # fmt: skip

    def __init__(self) -> None:
        self.charged: dict[str, Reservation] = {}
        self._by_tag: dict[str, dict[int, Reservation]] = {}  # by `seq`, the latest change last
        self._yeses: dict[int, tuple[Yes, str | None, float]] = {}  # the yes, the use that took it, when it was said
        self._book = Book()
        self._change = 0
        self._latest = 0.0
        self._longest = 0.0  # of the windows of the clock that were asked about, seconds
        self._next_sweep = SWEEP_EVERY
        self._open = True
        self._lock = allocate_lock()

    def check(self) -> None:
        """Raises LedgerUnavailable once it is closed."""
        self.now(0.0)

    def now(self, clock: float) -> float:
        """The clock, and never before a time that was already acted on."""
        with self._lock:
            return self._at(clock)

    # --- charges -----------------------------------------------------------------------------------------------------

    def look(self, pots: Sequence[Pot], clock: float) -> tuple[Spent, ...]:
        """What is spent in each pot."""
        with self._lock:
            return self._spent(pots, self._at(clock))

    def reserve(
        self,
        key: str,
        spender: Spender,
        charges: Sequence[Charge],
        pots: Sequence[Pot],
        clock: float,
        *,
        lease: float = LEASE_SECONDS,
    ) -> Reserved | Exhausted:
        """All charges at once if every pot has room, else none."""
        kept = step.sound(charges)
        with self._lock:
            now = self._at(clock)
            known = self.charged.get(key)
            if known is not None and step.stands(known, now):
                return Reserved(key, known.state, known.at, fresh=False)
            spent = self._spent(pots, now)
            if not all(one.room for one in spent):
                return Exhausted(spent)
            self._sweep(now)
            made = step.next_change(self._change, now)
            self._put(Reservation(made, made, key, now, now + lease, "reserved", spender, kept), made)
            return Reserved(key, "reserved", now, fresh=True)

    def dispatch(self, key: str, clock: float) -> bool:
        """Whether the call may run; then it counts from now on."""
        with self._lock:
            return self._change_to(key, step.dispatched, self._at(clock))

    def settle(self, key: str, actual: Sequence[Charge], clock: float) -> None:
        """Puts what was really spent in the place of what was reserved."""
        kept = step.sound(actual)
        with self._lock:
            self._at(clock)
            self._change_to(key, step.settled, kept)

    def release(self, key: str) -> None:
        """Gives back what was never dispatched."""
        with self._lock:
            self._at(self._latest)
            self._change_to(key, step.released)

    def renew(self, key: str, clock: float, *, lease: float = LEASE_SECONDS) -> None:
        """The lease runs from now."""
        with self._lock:
            self._change_to(key, step.renewed, self._at(clock), lease)

    def entries(
        self, *, client: str | None = None, session: str | None = None, agent: str | None = None
    ) -> Iterator[Entry]:
        """What is on record, oldest first."""
        with self._lock:
            self._at(self._latest)
            found = sorted(self._by_tag.get(step.tag_of_line(client, session, agent), {}).values(), key=_age)
        for one in found:
            if step.concerns(one.spender, client, session, agent):
                for charge in one.charges:
                    yield Entry(one.key, one.at, one.state, one.spender, charge)

    # --- yeses -------------------------------------------------------------------------------------------------------

    def approve(self, yes: Yes) -> None:
        """Puts a yes on record."""
        with self._lock:
            self._at(self._latest)
            self._yeses[next(reversed(self._yeses), 0) + 1] = (yes, None, self._latest)
            while len(self._yeses) > MAX_YESES:
                del self._yeses[next(iter(self._yeses))]

    def consume(self, binding: str, use: str, clock: float) -> Yes | None:
        """A yes that holds for this call now."""
        with self._lock:
            now = self._at(clock)
            fits = [
                (rank, number)
                for number, (yes, taken, _) in self._yeses.items()
                if yes.binding == binding and (rank := step.rank(yes, taken, use, now)) is not None
            ]
            if not fits:
                return None
            number = min(fits)[1]
            yes, taken, said = self._yeses[number]
            self._yeses[number] = (yes, use if yes.once else taken, said)
            return yes

    def revoke(self, binding: str | None = None) -> None:
        """Takes back the yeses of a binding, or all."""
        with self._lock:
            self._at(self._latest)
            kept = {} if binding is None else {n: one for n, one in self._yeses.items() if one[0].binding != binding}
            self._yeses = kept

    def prune(self, before: float) -> None:
        """Forgets what was charged or said earlier, but for what runs."""
        with self._lock:
            now = self._at(self._latest)
            self._yeses = {number: one for number, one in self._yeses.items() if one[2] >= before}
            every = self._by_tag.get(step.ALL, {}).values()
            self._keep([one for one in every if one.at >= before or not step.closed(one, now)])

    def close(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._open = False
            self._by_tag.clear()
            self._yeses.clear()
            self._book.clear()

    # --- inside, under the lock --------------------------------------------------------------------------------------

    def _at(self, clock: float) -> float:
        if not self._open:
            raise LedgerUnavailable("the ledger is closed")
        self._latest = step.moment(clock, self._latest)
        return self._latest

    def _spent(self, pots: Sequence[Pot], now: float) -> tuple[Spent, ...]:
        found: list[Spent] = []
        for pot in pots:
            tally = self._book.tally(pot)
            if tally.mark is None:
                self._longest = max(self._longest, tally.reach())
            tally.catch_up(self._changed(tally.tag, tally.since(now)), now, self._change)
            self._book.trim(tally)
            found.append(tally.spent(pot, now))
        return tuple(found)

    def _changed(self, tag: str, mark: int) -> list[Reservation]:
        """What has the tag and changed after a change, in the order of changes."""
        found: list[Reservation] = []
        for one in reversed(self._by_tag.get(tag, {}).values()):
            if one.change <= mark:
                break
            found.append(one)
        found.reverse()
        return found

    def _change_to(self, key: str, become: Callable[..., Reservation | None], *given: Any) -> bool:
        known = self.charged.get(key)
        new = None if known is None else become(known, *given)
        if new is not None:
            self._put(new, step.next_change(self._change, self._latest))
        return new is not None

    def _put(self, one: Reservation, change: int) -> None:
        one = one._replace(change=change)
        self._change = change
        self.charged[one.key] = one
        for tag in step.tags_of(one.spender):
            kept = self._by_tag.setdefault(tag, {})
            kept.pop(one.seq, None)  # so that it stands last
            kept[one.seq] = one

    def _sweep(self, now: float) -> None:
        every = self._by_tag.get(step.ALL, {})
        if len(every) >= self._next_sweep:
            merge, drop = (now - max(self._longest, kept) for kept in (APART_SECONDS, KEPT_SECONDS))
            self._keep(step.condensed(every.values(), now, merge, drop))
            # with the keys that were forgotten go the yeses that they took: such a call would be new, and is asked about
            self._yeses = {n: one for n, one in self._yeses.items() if one[1] is None or one[2] >= merge}
            self._next_sweep = 2 * len(self._by_tag.get(step.ALL, ())) + SWEEP_EVERY

    def _keep(self, those: Sequence[Reservation]) -> None:
        """In the order of their last changes."""
        last = self._change
        self._book.clear()
        self._by_tag.clear()
        self.charged.clear()
        for one in those:
            self._put(one, one.change)
        self._change = last


def _age(one: Reservation) -> int:
    return one.seq
