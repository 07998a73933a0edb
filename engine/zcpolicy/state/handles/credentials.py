"""Credentials of clients: loaded when they are used, and again after every rotation.

In: a function of the host's that loads one. Out: `Secret`s, to the client whose they are.

INVARIANT: a `get` that begins after `bump("credentials")` has returned never gives what was loaded before it.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from threading import Lock
from typing import Final, NamedTuple

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Handle, Held, Scope, key_of, owners
from zcpolicy.state.handles.apart import Apart, Full
from zcpolicy.state.handles.named import Missing, checked_name
from zcpolicy.state.handles.outside import unreachable
from zcpolicy.state.handles.waiting import not_in_a_loop
from zcpolicy.state.secret import Secret, secret
from zcpolicy.state.versions import Derived, SourceVersions
from zcpolicy.texts import escaped

MAX_CREDENTIALS: Final = 64
"""Credentials of one client that are held at once."""

Load = Callable[[str, str], str | Secret]
"""Loads the credential of a client (its id) by its name. It may block. Raises LookupError where there is none."""


class _Loaded(NamedTuple):
    value: Derived[Secret]
    who: Who


class Credentials(Handle["OwnCredentials"]):
    """Loads at first use, not before."""

    contract = Contract(
        holds="credentials of clients",
        owner="daemon",
        concurrency="lock",
        isolation="client",
        reload="re-resolved",
        depends=frozenset({"credentials", "config"}),
    )

    def __init__(self, versions: SourceVersions, load: Load) -> None:
        self._all = _All(versions, self.contract, load)

    @owners
    def forget(self, who: Who) -> None:
        """Takes out what is a client's; its next use loads it again."""
        with self._all.lock:
            self._all.loaded.drop(key_of(self.contract.isolation, who))

    def _view(self, scope: Scope) -> "OwnCredentials":
        return OwnCredentials(self._all, scope)

    def _held(self) -> Iterable[Held]:
        with self._all.lock:
            return [Held(name, one.who) for loaded in self._all.loaded.all() for name, one in loaded.items()]


class _All:
    """All credentials. Nothing is loaded while the lock is held."""

    def __init__(self, versions: SourceVersions, contract: Contract, load: Load) -> None:
        self.lock: Final = Lock()
        self.loaded: Final[Apart[dict[str, _Loaded]]] = Apart(dict, lambda loaded: not loaded)
        self._versions = versions
        self._depends = contract.depends
        self._load = load

    def get(self, scope: Scope, name: str) -> Secret:
        """Raises Missing, Unreachable, Full, TypeError, ValueError, PermitError."""
        checked_name(name)
        while True:
            found = self._entry(scope, name)
            try:
                value = found.value.get()
            except BaseException:
                self._is_kept(name, found, failed=True)
                raise
            kept = self._is_kept(name, found)
            scope.who  # noqa: B018 - it asks: the call may have ended while it was loaded
            if kept:  # else it was forgotten while it was loaded
                return value

    def _entry(self, scope: Scope, name: str) -> _Loaded:
        """What stands under the name; put there before it is loaded, so that it can be forgotten meanwhile."""
        key, who = scope.key, scope.who
        with self.lock:
            loaded = self.loaded.of(key)
            if name not in loaded:
                if len(loaded) >= MAX_CREDENTIALS:
                    raise Full(f"there is room for {MAX_CREDENTIALS} credentials of one client, and no more")
                load = partial(_loaded, self._load, who.client, name)
                loaded[name] = _Loaded(Derived(self._versions, self._depends, load), who)
            return loaded[name]

    def _is_kept(self, name: str, one: _Loaded, *, failed: bool = False) -> bool:
        """Whether it still stands under the name; what `failed` is taken out."""
        with self.lock:
            loaded = self.loaded.find(key_of("client", one.who)) or {}
            kept = loaded.get(name) is one
            if failed and kept:
                del loaded[name]
            return kept


class OwnCredentials:
    """Those of one caller's client. All raise Missing, Unreachable where loading fails, and PermitError once the call is over."""

    def __init__(self, credentials: _All, scope: Scope) -> None:
        self._credentials = credentials
        self._scope = scope

    async def get(self, name: str) -> Secret:
        """The credential as of now, loaded in a thread where it has to be. Ask for it at each use, and do not keep it."""
        return await asyncio.to_thread(self.get_in_thread, name)

    def get_in_thread(self, name: str) -> Secret:
        """The same for threads."""
        not_in_a_loop()
        return self._credentials.get(self._scope, name)


def _loaded(load: Load, client: str, name: str) -> Secret:
    """Whatever goes wrong, nothing of it is kept: what a loader raises may quote what it has read."""
    failed: Exception
    try:
        found = load(client, name)
        return found if isinstance(found, Secret) else secret(found)
    except LookupError:
        failed = Missing(f"there is no credential `{escaped(name)}`")
    except Exception as error:  # noqa: BLE001 - the host's code
        failed = unreachable(f"loading credential `{name}`", error)
    raise failed
