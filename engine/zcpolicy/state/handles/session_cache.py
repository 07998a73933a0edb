"""What tools remember of one session while it lasts: text or bytes that cost something to find out again.

In: a name, and how to find out. Out: what was found, while nothing that it may depend on has changed.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from threading import Lock
from typing import Final, NamedTuple

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Handle, Held, Scope, key_of, owners
from zcpolicy.state.handles.apart import Apart, Full, Key
from zcpolicy.state.handles.named import checked_name
from zcpolicy.state.sources import SOURCES
from zcpolicy.state.versions import AsyncDerived, Derived, SourceVersions, Versions

MAX_ENTRIES: Final = 256
"""Entries of one session; the one that was not asked for longest makes room."""
MAX_ENTRY_SIZE: Final = 1_000_000
"""Characters or bytes of one entry; what is larger is not kept."""
MAX_SESSION_SIZE: Final = 4_000_000
"""Characters and bytes of all entries of one session; those that were not asked for longest make room."""
MAX_CLIENT_SIZE: Final = 16_000_000
"""Characters and bytes of all sessions of one client; those that keep nothing new for longest are emptied."""

Value = str | bytes


class _Entry(NamedTuple):
    value: Value
    versions: Versions
    who: Who


class SessionCache(Handle["OwnCache"]):
    """It may forget anything at any time, and what it gives is never out of date."""

    contract = Contract(
        holds="what tools have found out in a session",
        owner="daemon",
        concurrency="lock",
        isolation="session",
        reload="re-resolved",
        depends=frozenset(SOURCES),
    )

    def __init__(self, versions: SourceVersions) -> None:
        self._all = _All(versions)

    @owners
    def end(self, who: Who) -> None:
        """The session has ended: nothing of it is left."""
        with self._all.lock:
            self._all.sessions.drop(key_of(self.contract.isolation, who))

    def _view(self, scope: Scope) -> "OwnCache":
        return OwnCache(self._all, scope)

    def _held(self) -> Iterable[Held]:
        with self._all.lock:
            sessions = self._all.sessions.all()
            return [Held(name, one.who) for session in sessions for name, one in session.entries.items()]


class _Session:
    """The entries of one session, the one that was asked for last at the end. `number`: grows with each entry that is kept."""

    __slots__ = ("entries", "number", "size")

    def __init__(self) -> None:
        self.entries: Final[OrderedDict[str, _Entry]] = OrderedDict()
        self.size = 0
        self.number = 0

    def keep(self, name: str, entry: _Entry) -> None:
        """And makes room for it."""
        self.drop(name)
        self.entries[name] = entry
        self.size += len(entry.value)
        while len(self.entries) > MAX_ENTRIES or self.size > MAX_SESSION_SIZE:
            self.drop(next(iter(self.entries)))

    def drop(self, name: str) -> None:
        """Whether it is there or not."""
        entry = self.entries.pop(name, None)
        self.size -= 0 if entry is None else len(entry.value)

    def empty(self) -> None:
        """Drops all."""
        self.entries.clear()
        self.size = 0


class _All:
    """What is kept of all sessions."""

    def __init__(self, versions: SourceVersions) -> None:
        self.lock: Final = Lock()
        self.versions: Final = versions
        self.sessions: Final[Apart[_Session]] = Apart(_Session, self._is_over)
        self._numbers = count(1)

    def find(self, key: Key, name: str) -> Value | None:
        """What is valid."""
        with self.lock:
            session = self.sessions.find(key)
            found = session.entries.get(name) if session is not None else None
            if session is None or found is None:
                return None
            if not self.versions.hold(found.versions):
                session.drop(name)
                return None
            session.entries.move_to_end(name)
            return found.value

    def keep(self, key: Key, name: str, entry: _Entry) -> None:
        """What there is no room for is not kept."""
        if len(entry.value) > MAX_ENTRY_SIZE:
            return
        with self.lock:
            try:
                session = self.sessions.of(key)
            except Full:
                return
            session.keep(name, entry)
            session.number = next(self._numbers)
            of_client = sorted(self.sessions.beside(key), key=lambda one: one.number)
            while sum(one.size for one in of_client) > MAX_CLIENT_SIZE:
                of_client.pop(0).empty()

    def _is_over(self, session: _Session) -> bool:
        return not any(self.versions.hold(one.versions) for one in session.entries.values())


class OwnCache:
    """That of one caller's session. All raise PermitError once the call is over, TypeError for what is no text or bytes."""

    def __init__(self, everything: _All, scope: Scope) -> None:
        self._all = everything
        self._scope = scope

    def find(self, name: str) -> Value | None:
        """What is kept under the name and valid; None where nothing is."""
        return self._all.find(self._scope.key, checked_name(name))

    async def get(self, name: str, find_out: Callable[[], Awaitable[Value]]) -> Value:
        """What is kept, or what is found out now. Raises what finding out raises."""
        kept, before = self.find(name), self._all.versions.at(SOURCES)
        if kept is not None:
            return kept
        return self._kept(name, await AsyncDerived(self._all.versions, SOURCES, find_out).get(), before)

    def get_in_thread(self, name: str, find_out: Callable[[], Value]) -> Value:
        """The same for threads, and for what does not wait."""
        kept, before = self.find(name), self._all.versions.at(SOURCES)
        if kept is not None:
            return kept
        return self._kept(name, Derived(self._all.versions, SOURCES, find_out).get(), before)

    def _kept(self, name: str, value: Value, before: Versions) -> Value:
        if type(value) not in (str, bytes):
            raise TypeError("what is kept is text or bytes")
        self._all.keep(self._scope.key, name, _Entry(value, before, self._scope.who))
        return value
