"""Connections lent out and taken back: each once at a time, closed once, and none that has gone stale.

In: a connector, versions, and who borrows. Out: steps, for `borrowing` to do: what they do outside, they do without the lock.
"""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Event, Lock
from typing import Any, Final, Generic, TypeVar

from zcpolicy.awaited import is_async
from zcpolicy.refusals import PermitError
from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Scope
from zcpolicy.state.handles.apart import Apart, Full
from zcpolicy.state.handles.borrowing import Do, Steps
from zcpolicy.state.handles.connections import Connection, Connector, Place, ThreadConnector
from zcpolicy.state.handles.named import checked_name
from zcpolicy.state.handles.outside import Unreachable, unreachable
from zcpolicy.state.handles.waiting import settled
from zcpolicy.state.versions import SourceVersions
from zcpolicy.texts import escaped

C = TypeVar("C")

MAX_PLACES: Final = 16
"""Places that one client is connected to."""
MAX_OPEN: Final = 512
"""Connections of all clients; for one more, the one that nobody has used for longest is closed, and if all are in use it is refused."""
MAX_CONNECTED_ANEW: Final = 10
"""How often a connection is made anew for one borrower while credentials keep changing; then it is refused."""
IDLE_SECONDS: Final = 300.0
"""How long a connection may lie unused; then it is closed instead of lent."""


class Lending(Generic[C]):
    """What a pool is made of. `contract`: which changes make a connection stale."""

    def __init__(
        self,
        contract: Contract,
        versions: SourceVersions,
        connector: Connector[C] | ThreadConnector[C],
        clock: Callable[[], float],
    ) -> None:
        self._contract = contract
        kinds = {is_async(one) for one in (connector.connect, connector.is_healthy, connector.close)}
        if len(kinds) != 1:
            raise TypeError("the functions of a connector are all coroutine functions, or none is")
        self.for_tasks: Final = kinds.pop()
        self._connector: Any = connector
        self._versions = versions
        self._clock = clock
        self._lock = Lock()
        self._closing = Event()
        self._waiting: list[Future[None]] = []
        self._count = 0
        self._places: Apart[dict[str, Place]] = Apart(dict, lambda own: all(one.is_over for one in own.values()))

    def stop(self) -> None:
        """Lends none any more."""
        self._closing.set()

    def unwanted(self) -> "list[Connection[C]]":
        """Takes out what nobody has and nobody will get any more: to be closed."""
        with self._lock:
            found = [one for place in self._all() for one in place.idle if not self._is_worth_keeping(one)]
            for one in found:
                one.place.idle.remove(one)
        return found

    def left(self) -> "Future[None] | None":
        """What is settled when there is one less that is open, or about to be; None where there is none."""
        waiting: Future[None] = Future()
        with self._lock:
            if all(place.is_over for place in self._all()):
                return None
            self._waiting.append(waiting)
        return waiting

    def opened(self) -> "list[tuple[str, Connection[C]]]":
        """All that are not closed yet, and what they lead to."""
        with self._lock:
            return [(name, one) for own in self._places.all() for name, place in own.items() for one in place.open]

    def _all(self) -> list[Place]:
        return [place for own in self._places.all() for place in own.values()]

    def borrow(self, scope: Scope, name: str) -> Steps[Connection[C]]:
        """Raises Full, TimeoutError, Unreachable, PermitError."""
        with self._lock:
            place = self._place(scope.key, name)
            slot = place.slots.ask()
        try:
            yield slot
            one = yield from self._sound(place, slot, name, scope)
        except BaseException:
            self._left(place, slot)
            raise
        return one

    def give_back(self, one: Connection[C], broken: bool) -> Steps[None]:
        """`broken`: whoever had it left with an exception: nobody knows in which state it is."""
        try:
            with self._lock:
                one.since = self._clock()
                keep = not broken and self._is_worth_keeping(one)
                if keep:
                    one.place.idle.append(one)
            if not keep:
                yield from self.close(one)
        finally:
            self._left(one.place, one.slot)

    def close(self, one: Connection[C]) -> Steps[None]:
        """Once, however often it is asked for."""
        with self._lock:
            if one.closing:
                return
            one.closing = True
        try:
            yield Do(partial(self._connector.close, one.connection))
        except Exception:  # noqa: BLE001, S110 - it is not lent any more, whatever closing it says
            pass
        finally:
            with self._lock:
                one.place.open.discard(one)
                self._count -= 1
            self._woken()

    def _left(self, place: Place, slot: "Future[None]") -> None:
        place.slots.leave(slot)
        self._woken()

    def _woken(self) -> None:
        with self._lock:
            waiting, self._waiting[:] = [*self._waiting], []
        for asked in waiting:
            settled(asked, None)

    def _place(self, key: tuple[str, ...], name: str) -> Place:
        self._must_be_open()
        own = self._places.of(key)
        if name not in own:
            checked_name(name)
            for old in [old for old, place in own.items() if place.is_over]:
                del own[old]
            if len(own) >= MAX_PLACES:
                raise Full(f"there is room for connections to {MAX_PLACES} places, and no more")
            own[name] = Place()
        return own[name]

    def _must_be_open(self) -> None:
        if self._closing.is_set():
            raise PermitError("the pool is shut down")

    def _is_worth_keeping(self, one: Connection[C]) -> bool:
        is_new = self._clock() - one.since < IDLE_SECONDS
        return is_new and self._versions.hold(one.versions) and not self._closing.is_set()

    def _sound(self, place: Place, slot: "Future[None]", name: str, scope: Scope) -> Steps[Connection[C]]:
        self._must_be_open()
        one = (yield from self._idle_one(place, slot)) or (yield from self._made(place, slot, name, scope.who))
        if scope.is_over:
            yield from self.close(one)
            raise PermitError("the call is over, and what it was given with it")
        return one

    def _idle_one(self, place: Place, slot: "Future[None]") -> Steps[Connection[C] | None]:
        while True:
            with self._lock:
                one: Connection[C] | None = place.idle.pop() if place.idle else None
            if one is None:
                return None
            if (yield from self._is_sound(one)):
                one.slot = slot
                return one
            yield from self.close(one)

    def _is_sound(self, one: Connection[C]) -> Steps[bool]:
        if not self._versions.hold(one.versions):
            return False
        try:
            sound: object = yield Do(partial(self._connector.is_healthy, one.connection))
        except Exception:  # noqa: BLE001 - one that cannot even be asked is not healthy
            return False
        except BaseException:
            yield from self.close(one)
            raise
        return sound is True and self._is_worth_keeping(one)

    def _made(self, place: Place, slot: "Future[None]", name: str, who: Who) -> Steps[Connection[C]]:
        for _ in range(MAX_CONNECTED_ANEW):
            before = self._versions.at(self._contract.depends)
            one = Connection((yield from self._connected(name, who)), place, slot, before, who)
            with self._lock:
                one.since = self._clock()
                place.open.add(one)
            if self._is_worth_keeping(one):
                return one
            yield from self.close(one)
            self._must_be_open()
        raise Unreachable(f"connecting to `{escaped(name)}` failed: what it depends on keeps changing")

    def _connected(self, name: str, who: Who) -> Steps[C]:
        yield from self._room()
        try:
            made: C = yield Do(partial(self._connector.connect, name, who))
        except BaseException as error:
            with self._lock:
                self._count -= 1
            if not isinstance(error, Exception):
                raise
            failed = unreachable(f"connecting to `{name}`", error)
        else:
            return made
        raise failed

    def _room(self) -> Steps[None]:
        """Takes room for one that is about to be opened."""
        while True:
            with self._lock:
                if self._count < MAX_OPEN:
                    self._count += 1
                    return
                idle = [one for place in self._all() for one in place.idle]
                if not idle:
                    raise Full(f"there is room for {MAX_OPEN} connections, and all are in use")
                oldest = min(idle, key=lambda one: one.since)
                oldest.place.idle.remove(oldest)
            yield from self.close(oldest)
