"""A ledger on a Redis or Valkey server, shared by all machines that reach it.

In: charges, yeses, what a limit asks. Out: what is spent, reservations. A step is one Lua script, whole or not at all. A
reservation is made if nothing that it depends on counts more than when it was looked at, else it is looked at again.
Time is the server's. The server must keep what it is given: `appendonly yes`, and no `maxmemory-policy` that may drop keys
without an expiry. All keys lie in one slot, so a cluster will do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from json import dumps, loads
from secrets import token_hex
from threading import Lock
from time import monotonic, sleep
from typing import Any, Final, Literal, NamedTuple

from zcpolicy.extras import missing
from zcpolicy.faults import described
from zcpolicy.ledgers import reservations as step
from zcpolicy.ledgers.book import Book, Tally
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
from zcpolicy.ledgers.reservations import TICKS, Reservation
from zcpolicy.ledgers.wire import charges_of, charges_text, odd, spender_of, spender_text, tag_text

try:
    from redis import Redis, RedisCluster, RedisError
    from redis.backoff import NoBackoff
    from redis.exceptions import BusyLoadingError
    from redis.exceptions import TimeoutError as Silent
    from redis.retry import Retry
except ImportError:
    raise missing("a ledger on Redis", "redis") from None

EDITION: Final = "1"
"""Of what is kept. What another edition keeps is not touched."""
TIMEOUT_SECONDS: Final = 2.0
"""Seconds to wait for a connection, and for an answer; once more if that fails."""
MAX_NEWS: Final = 1_000
"""Reservations of one pot that one answer tells; the next one tells more."""
MAX_TRIES: Final = 1_000
"""Looks at limits that others keep filling meanwhile; then the ledger is unavailable."""
MAX_HELD: Final = 10_000
"""Reservations whose state is remembered, so that a change of them need not read it first."""

CHECK_SECONDS: Final = 60.0
"""After which the server is asked again whether it keeps what it is given; also after every failure."""
REST_SECONDS: Final = 1.0
"""For which a server is left alone that did not answer in time: whoever asks meanwhile is refused at once, and does not wait as well."""
LOADING_SECONDS: Final = 0.02
"""Between two tries of a server that was started again and still reads what it kept; for the seconds of a time-out."""

SCRIPT: Final = os.path.join(os.path.dirname(__file__), "redis.lua")


class _Answer(NamedTuple):
    """`news`: of each pot; None: the ledger is another than it was, what was counted means nothing any more."""

    what: str
    known: Reservation | None
    news: list[list[Reservation]] | None
    rest: list[Any]


class RedisLedger:
    """`url`: as `redis.Redis.from_url` takes it, or a client that decodes its answers. `name`: which ledger of that server.

    `clock`: whose time counts, `server` or, for replays and tests, `caller`. Nothing is sent before the first use.
    """

    blocking = True
    charged: object = True
    files: tuple[str, ...] = ()

    def __init__(
        self,
        url: str | Redis | RedisCluster,
        *,
        name: str = "default",
        clock: Literal["server", "caller"] = "server",
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._client = _client(url, timeout) if isinstance(url, str) else url
        self._prefix = f"{{zcpolicy:{name}}}"
        self._by_caller = clock == "caller"
        self._timeout = timeout
        self._patience = 4 * timeout
        self._closed = False
        with open(SCRIPT, encoding="utf-8") as file:
            self._script = self._client.register_script(file.read())
        self.begin()
        begins_after_fork(self)

    def begin(self) -> None:
        """As in a new process: nothing is counted."""
        self._lock = Lock()
        self._book = Book()
        self._held: dict[str, Reservation] = {}
        self._now = 0.0
        self._floor: str = "0"  # the same, as the server wrote it
        self._change = 0
        self._epoch = ""
        self._checked = -CHECK_SECONDS
        self._silent = -REST_SECONDS  # when it last did not answer in time

    # --- charges -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises LedgerUnavailable for a server that does not answer, may drop what was charged, or keeps another edition."""
        self._checked = -CHECK_SECONDS
        self.now(0.0)

    def now(self, clock: float) -> float:
        """The server's time, and never before one that was acted on."""
        with self._alone():
            self._ask("read", clock, pots=[])
            return self._now

    def look(self, pots: Sequence[Pot], clock: float) -> tuple[Spent, ...]:
        """What is spent in each pot."""
        with self._alone():
            tallies = [self._book.tally(pot) for pot in pots]
            self._read(tallies, clock)
            return self._spent(tallies, pots)

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
        name = dumps(key)
        made = {
            "key": name,
            "charges": charges_text(step.sound(charges)),
            "spender": spender_text(spender),
            "tags": [tag_text(tag) for tag in step.tags_of(spender)],
            "lease": str(int(lease * TICKS)),
            "token": token_hex(8),
        }
        with self._alone():
            tallies = [self._book.tally(pot) for pot in pots]
            known, fresh = None, False
            for _ in range(MAX_TRIES):
                if not (fresh or self._room(tallies, pots)) or any(tally.mark is None for tally in tallies):
                    known, fresh = self._read(tallies, clock, name), True
                if known is not None and step.stands(known, self._now):
                    return Reserved(key, known.state, known.at, fresh=False)
                if not self._room(tallies, pots):
                    return Exhausted(self._spent(tallies, pots))
                answer = self._ask("reserve", clock, pots=self._marks(tallies), **made)
                self._catch_up(tallies, answer.news, clock)
                if answer.known is not None:
                    self._hold(answer.known)
                    return Reserved(key, answer.known.state, answer.known.at, fresh=answer.what == "made")
                fresh = True
        raise LedgerUnavailable("too many others spend from the same limits")

    def dispatch(self, key: str, clock: float) -> bool:
        """Whether the call may run; then it counts from now on."""
        return self._become(key, clock, step.dispatched, live=True)

    def settle(self, key: str, actual: Sequence[Charge], clock: float) -> None:
        """Puts what was really spent in the place of what was reserved. Raises ValueError for an amount that is none."""
        kept = step.sound(actual)
        self._become(key, clock, lambda one, now: step.settled(one, kept))

    def release(self, key: str) -> None:
        """Gives back what was never dispatched."""
        self._become(key, 0.0, lambda one, now: step.released(one))

    def renew(self, key: str, clock: float, *, lease: float = LEASE_SECONDS) -> None:
        """The lease runs from now."""
        self._become(key, clock, lambda one, now: step.renewed(one, now, lease), live=True, lease=lease)

    def entries(
        self, *, client: str | None = None, session: str | None = None, agent: str | None = None
    ) -> Iterator[Entry]:
        """What is on record, oldest first."""
        with self._alone():
            numbers = self._numbers(step.tag_of_line(client, session, agent))
        for first in range(0, len(numbers), MAX_NEWS):
            page = numbers[first : first + MAX_NEWS]
            with self._alone():
                texts: Any = self._client.hmget(self._prefix + ":records", [str(number) for number in page])
                found = [_reservation(number, text) for number, text in zip(page, texts, strict=True) if text]
            for one in found:
                if step.concerns(one.spender, client, session, agent):
                    for charge in one.charges:
                        yield Entry(one.key, one.at, one.state, one.spender, charge)

    # --- yeses -------------------------------------------------------------------------------------------------------

    def approve(self, yes: Yes) -> None:
        """Puts a yes on record."""
        token = token_hex(8)
        text = dumps([yes.once, yes.use, yes.expires, yes.by, None, token])
        with self._alone():
            self._ask("approve", 0.0, binding=tag_text(yes.binding), yes=text, token=token)

    def consume(self, binding: str, use: str, clock: float) -> Yes | None:
        """A yes that holds for this call now."""
        with self._alone():
            for _ in range(MAX_TRIES):
                best: tuple[int, int, str, Yes] | None = None
                for number, text in self._yeses(tag_text(binding), clock):
                    once, wanted, expires, by, taken, _ = loads(text)
                    yes = Yes(binding, once, wanted, expires, by)
                    rank = step.rank(yes, taken, use, self._now)
                    if rank is not None and (best is None or (rank, number) < best[:2]):
                        best = (rank, number, text, yes)
                if best is None or not best[3].once:
                    return None if best is None else best[3]
                _, number, old, yes = best
                *said, _, token = loads(old)
                if self._take(tag_text(binding), number, old, dumps([*said, use, token])):
                    return yes
        raise LedgerUnavailable("too many others take the same yes")

    def revoke(self, binding: str | None = None) -> None:
        """Takes back the yeses of a binding, or all."""
        with self._alone():
            self._ask("revoke", 0.0, binding=None if binding is None else tag_text(binding))

    def prune(self, before: float) -> None:
        """Forgets what was charged or said earlier, but for what runs."""
        limit = int(before * TICKS)
        with self._alone():
            numbers = [number for number in self._numbers(step.ALL) if number < limit]
            for first in range(0, len(numbers), MAX_NEWS):
                page = [str(number) for number in numbers[first : first + MAX_NEWS]]
                self._ask("forget", 0.0, numbers=page, before=str(limit))
            bindings: Any = self._client.smembers(self._prefix + ":bindings")
            for binding in bindings:
                for number, text in self._yeses(binding, 0.0):
                    if number < limit:
                        self._take(binding, number, text, None)

    def close(self) -> None:
        """Lets go of the connections."""
        self._closed = True
        self._client.close()

    # --- inside, under the lock --------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Generator[None]:
        asked = monotonic()
        if not self._lock.acquire(timeout=self._patience):
            raise LedgerUnavailable("the ledger is busy")
        try:
            if self._closed:
                raise LedgerUnavailable("the ledger is closed")
            if asked < self._silent + REST_SECONDS:  # it fell silent while this one waited for its turn, or just before
                raise LedgerUnavailable("the ledger's server cannot be used: it did not answer in time a moment ago")
            self._check_keeps()
            yield
        except (RedisError, OSError) as error:
            self._checked = -CHECK_SECONDS
            if isinstance(error, Silent | BusyLoadingError):
                self._silent = monotonic()
            raise LedgerUnavailable(f"the ledger's server cannot be used: {described(error)}") from None
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            self._book.clear()
            raise odd() from None
        except BaseException:
            self._book.clear()
            raise
        finally:
            self._lock.release()

    def _check_keeps(self) -> None:
        """A server that drops keys to make room would give back what was spent."""
        now = monotonic()
        if now - self._checked < CHECK_SECONDS:
            return
        client: Any = self._client  # whose answers have no types
        found = client.info("memory")
        policy = str(found.get("maxmemory_policy", ""))
        if int(found.get("maxmemory", 0)) and policy.startswith("allkeys"):
            raise LedgerUnavailable(
                f"the ledger's server may drop what was charged: its maxmemory-policy is `{policy}`"
            )
        self._checked = now

    def _ask(self, what: str, clock: float, **given: object) -> _Answer:
        if self._by_caller:
            given["now"] = str(round(step.moment(clock, 0.0) * TICKS))
        named = {name: one for name, one in given.items() if one is not None}
        seen = {"epoch": self._epoch, "seen": str(self._change), "floor": self._floor}
        text = dumps({"token": token_hex(8), "what": what, "edition": EDITION, "page": MAX_NEWS, **seen, **named})
        answer = self._answer(text)
        if answer[0] == "lost":
            raise LedgerUnavailable(
                "the ledger's server lost what was charged: restart this process, to go on with what is left"
            )
        if answer[0] == "edition":
            raise LedgerUnavailable("the server keeps a ledger of another edition")
        now, change, epoch = map(str, answer[1:4])
        rest: list[Any] = answer[4:]
        self._floor, self._now, self._change = now, int(now) / TICKS, int(change)
        moved = epoch != self._epoch
        if moved:
            self._book.clear()
            self._held.clear()
            self._epoch = epoch
        if len(rest) < 3:
            return _Answer(answer[0], None, [], rest)
        number, record, news = rest
        known = _reservation(int(number), record) if record else None
        return _Answer(answer[0], known, None if moved else [list(map(_named, one)) for one in news], [])

    def _answer(self, text: str) -> Any:
        """What the script says. Nothing was done by a server that is still reading; it is there in a moment."""
        ends = monotonic() + self._timeout
        while True:
            try:
                return self._script(keys=[self._prefix], args=[text])
            except BusyLoadingError:
                if monotonic() >= ends:
                    raise
                sleep(LOADING_SECONDS)

    def _read(self, tallies: list[Tally], clock: float, key: str | None = None) -> Reservation | None:
        """Has all tallies catch up."""
        if any(tally.mark is None for tally in tallies):
            self._ask("read", clock, pots=[])  # from when on it must be read, is known only by the server's time
        answer = self._ask("read", clock, key=key, pots=self._marks(tallies))
        self._catch_up(tallies, answer.news, clock)
        return answer.known

    def _catch_up(self, tallies: list[Tally], news: list[list[Reservation]] | None, clock: float) -> None:
        while True:
            if news is not None:
                for tally, changed in zip(tallies, news, strict=True):
                    whole = len(changed) < MAX_NEWS
                    tally.catch_up(changed, self._now, self._change if whole else changed[-1].change)
                    self._book.trim(tally)
                if all(len(changed) < MAX_NEWS for changed in news):
                    return
            news = self._ask("read", clock, pots=self._marks(tallies)).news

    def _marks(self, tallies: list[Tally]) -> list[tuple[str, str]]:
        return [(tag_text(tally.tag), str(tally.since(self._now))) for tally in tallies]

    def _spent(self, tallies: list[Tally], pots: Sequence[Pot]) -> tuple[Spent, ...]:
        return tuple(tally.spent(pot, self._now) for tally, pot in zip(tallies, pots, strict=True))

    def _room(self, tallies: list[Tally], pots: Sequence[Pot]) -> bool:
        return all(one.room for one in self._spent(tallies, pots))

    def _become(
        self,
        key: str,
        clock: float,
        become: Callable[[Reservation, float], Reservation | None],
        *,
        live: bool = False,
        lease: float | None = None,
    ) -> bool:
        """`live`: only while its lease runs, unless it was dispatched."""
        token = token_hex(8)
        with self._alone():
            known, fresh = self._held.pop(key, None), False
            for _ in range(MAX_TRIES):
                if known is None and not fresh:
                    known, fresh = self._ask("read", clock, key=dumps(key), pots=[]).known, True
                new = None if known is None else become(known, self._now)
                if known is None or (new is None and fresh):
                    return False
                if new is None:
                    known = None
                    continue
                answer = self._ask(
                    "change",
                    clock,
                    number=str(known.seq),
                    change=str(known.change),
                    state=new.state,
                    charges=charges_text(new.charges),
                    live=live and known.state == "reserved",
                    lease=None if lease is None else str(int(lease * TICKS)),
                    raised=step.raises(known, new),
                    token=token,
                )
                known, fresh = answer.known, True
                if answer.what == "done":
                    self._hold(answer.known)
                    return True
        raise LedgerUnavailable("too many others change the same reservation")

    def _hold(self, one: Reservation | None) -> None:
        if one is not None and one.state in ("reserved", "dispatched"):
            self._held[one.key] = one
            if len(self._held) > MAX_HELD:
                del self._held[next(iter(self._held))]

    def _yeses(self, binding: str, clock: float) -> list[tuple[int, str]]:
        pairs = self._ask("yeses", clock, binding=binding).rest[0]
        return [(int(number), text) for number, text in zip(pairs[::2], pairs[1::2], strict=True)]

    def _take(self, binding: str, number: int, old: str, new: str | None) -> bool:
        return self._ask("take", 0.0, binding=binding, number=str(number), old=old, new=new).what == "done"

    def _numbers(self, tag: str) -> list[int]:
        """Of all reservations that have a tag, oldest first."""
        client: Any = self._client
        return sorted(map(int, client.zrange(f"{self._prefix}:tag:{tag_text(tag)}", 0, -1)))


def _client(url: str, timeout: float) -> Redis:
    library: Any = Redis  # whose arguments have no types
    client: Redis = library.from_url(
        url,
        decode_responses=True,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 1),
    )
    return client


def _named(found: Sequence[str]) -> Reservation:
    return _reservation(int(found[0]), found[1])


@lru_cache(MAX_NEWS)
def _reservation(number: int, text: str) -> Reservation:
    """Several pots tell the same ones."""
    one = loads(text)
    return Reservation(
        number,
        int(one["h"]),
        loads(one["k"]),
        int(one["a"]) / TICKS,
        int(one["u"]) / TICKS,
        one["s"],
        spender_of(one["w"]),
        charges_of(one["c"]),
    )
