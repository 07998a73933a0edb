"""A ledger in one SQLite file, shared by all threads and processes of a machine that open it.

In: charges, yeses, what a limit asks. Out: what is spent, reservations. Every change is one transaction that also looked
at the limits, so it is there whole or not at all, also when the process is killed. The latest time that was acted on is
kept in the file. Not for network file systems: they do not lock as SQLite needs it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from json import dumps, loads
from threading import Lock
from typing import Any, Final, Never

from zcpolicy.faults import described
from zcpolicy.ledgers import reservations as step
from zcpolicy.ledgers.book import Book
from zcpolicy.ledgers.contract import (
    LEASE_SECONDS,
    Charge,
    Entry,
    Exhausted,
    LedgerUnavailable,
    Pot,
    Reserved,
    Spender,
    Spent,
    Yes,
)
from zcpolicy.ledgers.forks import begins_after_fork
from zcpolicy.ledgers.reservations import Reservation
from zcpolicy.ledgers.sqlite_file import COLUMNS, Place, opened, place_of, places_beside
from zcpolicy.ledgers.wire import charges_of, charges_text, odd, spender_of, spender_text, tag_text
from zcpolicy.sqlite_files import BUSY_SECONDS, files_of

MAX_ENTRIES_READ: Final = 1_000
"""Reservations that an audit reads at once; others write in between."""

FIND: Final = f"SELECT {COLUMNS} FROM "  # noqa: S608 - of constants, as all statements here
COLD: Final = FIND + "tags AS t CROSS JOIN reservations AS r ON r.seq = t.seq WHERE t.tag = ? AND t.seq > ?"
WARM: Final = FIND + "reservations AS r WHERE EXISTS (SELECT 1 FROM tags WHERE tag = ? AND seq = r.seq) AND change > ?"  # noqa: S608 - as above
BY_KEY: Final = FIND + "reservations AS r WHERE key = ? ORDER BY seq DESC LIMIT 1"
OLD: Final = "FROM reservations WHERE at < ? AND (state IN ('settled', 'released') OR until <= ?)"

_inherited: list[sqlite3.Connection] = []
"""Of the process that this one was forked from: not to be used here, nor closed."""


class SqliteLedger:
    """`path`: the file; it is made if it is not there, in a folder that is. `synced`: each change is on the disk before it
    is told, so that it survives a loss of power as well; it takes some milliseconds then.
    """

    blocking = True
    charged: object = True

    def __init__(self, path: str | os.PathLike[str], *, synced: bool = False) -> None:
        self._path = os.path.abspath(path)
        self.files: tuple[str, ...] = files_of(path)
        self._synced = synced
        self._closed = False
        self._db: sqlite3.Connection | None = None
        self.begin()
        begins_after_fork(self)

    def begin(self) -> None:
        """As in a new process: nothing is open, nothing is counted."""
        if self._db is not None:
            _inherited.append(self._db)
        self._db = None
        self._file: Place = None  # the one that was opened first: no other takes its place
        self._beside: tuple[Place, ...] = ()  # what belongs to it, while it is open
        self._real = self._path
        self._lost = ""  # why what is there cannot be what was charged, once that was seen
        self._lock = Lock()
        self._book = Book()
        self._latest = 0.0
        self._change = 0
        self._epoch: int = 0

    # --- charges -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises LedgerUnavailable for a file that cannot be opened or written, or is no ledger."""
        with self._transaction("BEGIN IMMEDIATE", 0.0) as (db, now):
            self._tick(db, now)

    def now(self, clock: float) -> float:
        """The time to act at: never before one that any process acted on."""
        with self._transaction("BEGIN", clock) as (_, now):
            return now

    def look(self, pots: Sequence[Pot], clock: float) -> tuple[Spent, ...]:
        """What is spent in each pot."""
        with self._transaction("BEGIN", clock) as (db, now):
            return self._spent(db, pots, now)

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
        """All charges at once if every pot has room, else none. Raises ValueError for an amount that is none."""
        kept = charges_text(step.sound(charges))
        with self._transaction("BEGIN IMMEDIATE", clock) as (db, now):
            known = _by_key(db, key)
            if known is not None and step.stands(known, now):
                return Reserved(key, known.state, known.at, fresh=False)
            spent = self._spent(db, pots, now)
            if not all(one.room for one in spent):
                return Exhausted(spent)
            made = self._tick(db, now)
            row = (made, made, dumps(key), now, now + lease, "reserved", spender_text(spender), kept)
            db.execute("INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            db.executemany("INSERT INTO tags VALUES (?, ?)", [(tag_text(tag), made) for tag in step.tags_of(spender)])
            return Reserved(key, "reserved", now, fresh=True)

    def dispatch(self, key: str, clock: float) -> bool:
        """Whether the call may run; then it counts from now on."""
        return self._become(key, clock, step.dispatched)

    def settle(self, key: str, actual: Sequence[Charge], clock: float) -> None:
        """Puts what was really spent in the place of what was reserved. Raises ValueError for an amount that is none."""
        kept = step.sound(actual)
        self._become(key, clock, lambda one, now: step.settled(one, kept))

    def release(self, key: str) -> None:
        """Gives back what was never dispatched."""
        self._become(key, 0.0, lambda one, now: step.released(one))

    def renew(self, key: str, clock: float, *, lease: float = LEASE_SECONDS) -> None:
        """The lease runs from now."""
        self._become(key, clock, lambda one, now: step.renewed(one, now, lease))

    def entries(
        self, *, client: str | None = None, session: str | None = None, agent: str | None = None
    ) -> Iterator[Entry]:
        """What is on record, oldest first."""
        tag, seq = step.tag_of_line(client, session, agent), -1
        while True:
            with self._transaction("BEGIN", 0.0) as (db, _):
                query = f"{COLD} ORDER BY t.seq LIMIT {MAX_ENTRIES_READ}"
                found = [_reservation(row) for row in db.execute(query, (tag_text(tag), seq))]
            for one in found:
                if step.concerns(one.spender, client, session, agent):
                    for charge in one.charges:
                        yield Entry(one.key, one.at, one.state, one.spender, charge)
            if not found:
                return
            seq = found[-1].seq

    # --- yeses -------------------------------------------------------------------------------------------------------

    def approve(self, yes: Yes) -> None:
        """Puts a yes on record."""
        row = (dumps(yes.binding), yes.once, dumps(yes.use), yes.expires, dumps(yes.by))
        with self._transaction("BEGIN IMMEDIATE", 0.0) as (db, now):
            self._tick(db, now)
            db.execute("INSERT INTO yeses VALUES (NULL, ?, ?, ?, ?, ?, NULL, ?)", (*row, now))

    def consume(self, binding: str, use: str, clock: float) -> Yes | None:
        """A yes that holds for this call now."""
        with self._transaction("BEGIN IMMEDIATE", clock) as (db, now):
            self._tick(db, now)  # a yes that ran out stays so
            best: tuple[int, int, Yes] | None = None
            query = "SELECT id, once, use, expires, by, taken FROM yeses WHERE binding = ? ORDER BY id"
            for number, once, wanted, expires, by, taken in db.execute(query, (dumps(binding),)).fetchall():
                yes = Yes(binding, bool(once), loads(wanted), expires, loads(by))
                rank = step.rank(yes, None if taken is None else loads(taken), use, now)
                if rank is not None and (best is None or rank < best[0]):
                    best = (rank, number, yes)
            if best is None:
                return None
            if best[2].once:
                db.execute("UPDATE yeses SET taken = ? WHERE id = ?", (dumps(use), best[1]))
            return best[2]

    def revoke(self, binding: str | None = None) -> None:
        """Takes back the yeses of a binding, or all."""
        with self._transaction("BEGIN IMMEDIATE", 0.0) as (db, _):
            if binding is None:
                db.execute("DELETE FROM yeses")
            else:
                db.execute("DELETE FROM yeses WHERE binding = ?", (dumps(binding),))

    # --- the file ----------------------------------------------------------------------------------------------------

    def prune(self, before: float) -> None:
        """Forgets what was charged or said earlier, but for what runs."""
        with self._transaction("BEGIN IMMEDIATE", 0.0) as (db, now):
            db.execute("DELETE FROM yeses WHERE said < ? OR expires <= ?", (before, now))
            db.execute("DELETE FROM tags WHERE seq IN (SELECT seq " + OLD + ")", (before, now))  # noqa: S608 - as above
            db.execute("DELETE " + OLD, (before, now))
            db.execute("UPDATE clock SET epoch = epoch + 1")

    def close(self) -> None:
        """Lets go of the file."""
        with self._lock:
            self._closed = True
            self._let_go()

    # --- inside, under the lock --------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, begin: str, clock: float) -> Generator[tuple[sqlite3.Connection, float]]:
        """The connection in a transaction, and the time to act at."""
        if not self._lock.acquire(timeout=BUSY_SECONDS):
            raise LedgerUnavailable("the ledger is busy")
        try:
            db = self._connection()
            db.execute(begin)
            self._read_clock(db)
            self._latest = step.moment(clock, self._latest)
            yield db, self._latest
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self._let_go()
            raise LedgerUnavailable(f"the ledger's file `{self._path}` cannot be used: {described(error)}") from None
        except (ValueError, TypeError, LookupError, OverflowError):
            self._let_go()
            raise odd() from None
        except BaseException:
            self._let_go()
            raise
        finally:
            self._lock.release()

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerUnavailable("the ledger is closed")
        if self._lost:
            raise LedgerUnavailable(self._lost)
        self._same_file()
        if self._db is None:
            self._db = opened(self._path, synced=self._synced)
            self._file = self._file or place_of(self._path)
            self._real = os.path.realpath(self._path)
            self._beside = places_beside(self._real)
            self._same_file()
        elif places_beside(self._real) != self._beside:
            self._lose("a part of the ledger's file is gone")
        return self._db

    def _same_file(self) -> None:
        here = place_of(self._path)
        if self._file is not None and here != self._file:
            raise LedgerUnavailable(f"the ledger's file {'is gone' if here is None else 'was replaced'}")

    def _lose(self, why: str) -> Never:
        """For good: who goes on with less than was charged grants it again."""
        self._lost = why
        raise LedgerUnavailable(why)

    def _let_go(self) -> None:
        """After a failure nothing is kept: an open transaction is rolled back, what was counted is counted again."""
        self._book.clear()
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _read_clock(self, db: sqlite3.Connection) -> None:
        row: tuple[Any, Any, Any] | None = db.execute("SELECT latest, change, epoch FROM clock").fetchone()
        if row is None:
            raise odd()
        latest, change, epoch = float(row[0]), int(row[1]), int(row[2])
        if change < self._change:
            self._lose("the ledger's file lost what was charged")
        if epoch != self._epoch:
            self._book.clear()
        self._latest, self._change, self._epoch = max(latest, self._latest), change, epoch

    def _tick(self, db: sqlite3.Connection, now: float) -> int:
        """The number of a change that is made now; it and the time are on record."""
        change = step.next_change(self._change, now)
        db.execute("UPDATE clock SET latest = ?, change = ?", (now, change))
        return change

    def _spent(self, db: sqlite3.Connection, pots: Sequence[Pot], now: float) -> tuple[Spent, ...]:
        found: list[Spent] = []
        for pot in pots:
            tally = self._book.tally(pot)
            rows: Iterator[Any] = iter(())
            if tally.mark != self._change:
                query = COLD if tally.mark is None else WARM
                rows = iter(db.execute(query, (tag_text(tally.tag), tally.since(now))))
            tally.catch_up(map(_reservation, rows), now, self._change)
            self._book.trim(tally)
            found.append(tally.spent(pot, now))
        return tuple(found)

    def _become(self, key: str, clock: float, become: Callable[[Reservation, float], Reservation | None]) -> bool:
        with self._transaction("BEGIN IMMEDIATE", clock) as (db, now):
            known = _by_key(db, key)
            new = None if known is None else become(known, now)
            if new is None:
                return False
            db.execute(
                "UPDATE reservations SET change = ?, until = ?, state = ?, charges = ? WHERE seq = ?",
                (self._tick(db, now), new.until, new.state, charges_text(new.charges), new.seq),
            )
            return True


def _by_key(db: sqlite3.Connection, key: str) -> Reservation | None:
    row: Any = db.execute(BY_KEY, (dumps(key),)).fetchone()
    return None if row is None else _reservation(row)


def _reservation(row: Any) -> Reservation:
    seq, change, key, at, until, state, spender, charges = row
    at, until = at + 0.0, until + 0.0  # a text is no time
    return Reservation(seq, change, loads(key), at, until, state, spender_of(spender), charges_of(charges))
