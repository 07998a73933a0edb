"""What tools remember of one session while it lasts: text or bytes that cost something to find out again.

In: a name, and how to find out. Out: what was found, while nothing that it may depend on has changed.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from threading import Lock
from typing import Final, NamedTuple

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Handle, Held, Scope, key_of, owners
from zcpolicy.state.handles.apart import Apart, Full
from zcpolicy.state.handles.named import checked_name
from zcpolicy.state.sources import SOURCES
from zcpolicy.state.versions import AsyncDerived, Derived, SourceVersions, Versions

MAX_ENTRIES: Final = 256
"""Entries of one session; the one that was not asked for longest makes room."""
MAX_ENTRY_SIZE: Final = 1_000_000
"""Characters or bytes of one entry; what is larger is not kept."""
MAX_SESSION_SIZE: Final = 10_000_000
"""Characters and bytes of all entries of one session; those that were not asked for longest make room."""

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
        self._lock = Lock()
        self._versions = versions
        self._entries: Apart[OrderedDict[str, _Entry]] = Apart(OrderedDict, self._is_over)

    @owners
    def end(self, who: Who) -> None:
        """The session has ended: nothing of it is left."""
        with self._lock:
            self._entries.drop(key_of(self.contract.isolation, who))

    def _view(self, scope: Scope) -> "OwnCache":
        return OwnCache(self, self._versions, scope)

    def _held(self) -> Iterable[Held]:
        with self._lock:
            return [Held(name, one.who) for entries in self._entries.all() for name, one in entries.items()]

    def _is_over(self, entries: "OrderedDict[str, _Entry]") -> bool:
        return not any(self._versions.hold(one.versions) for one in entries.values())

    def find(self, scope: Scope, name: str) -> Value | None:
        """For its view."""
        key = scope.key
        with self._lock:
            entries = self._entries.find(key)
            found = entries.get(name) if entries is not None else None
            if entries is None or found is None:
                return None
            if not self._versions.hold(found.versions):
                del entries[name]
                return None
            entries.move_to_end(name)
            return found.value

    def keep(self, scope: Scope, name: str, value: Value, as_of: Versions) -> None:
        """For its view. What there is no room for is not kept."""
        checked_name(name)
        if type(value) not in (str, bytes):
            raise TypeError("what is kept is text or bytes")
        key, who = scope.key, scope.who
        if len(value) > MAX_ENTRY_SIZE or not self._versions.hold(as_of):
            return
        with self._lock:
            try:
                entries = self._entries.of(key)
            except Full:
                return
            entries[name] = _Entry(value, as_of, who)
            entries.move_to_end(name)
            while len(entries) > MAX_ENTRIES or sum(len(one.value) for one in entries.values()) > MAX_SESSION_SIZE:
                entries.popitem(last=False)


class OwnCache:
    """That of one caller's session. All raise PermitError once the call is over, TypeError for what is no text or bytes."""

    def __init__(self, cache: SessionCache, versions: SourceVersions, scope: Scope) -> None:
        self._cache = cache
        self._versions = versions
        self._scope = scope

    def find(self, name: str) -> Value | None:
        """What is kept under the name and valid; None where nothing is."""
        return self._cache.find(self._scope, name)

    async def get(self, name: str, find_out: Callable[[], Awaitable[Value]]) -> Value:
        """What is kept, or what is found out now. Raises what finding out raises."""
        kept, before = self.find(name), self._versions.at(SOURCES)
        if kept is not None:
            return kept
        found = await AsyncDerived(self._versions, SOURCES, find_out).get()
        self._cache.keep(self._scope, name, found, before)
        return found

    def get_in_thread(self, name: str, find_out: Callable[[], Value]) -> Value:
        """The same for threads, and for what does not wait."""
        kept, before = self.find(name), self._versions.at(SOURCES)
        if kept is not None:
            return kept
        found = Derived(self._versions, SOURCES, find_out).get()
        self._cache.keep(self._scope, name, found, before)
        return found
