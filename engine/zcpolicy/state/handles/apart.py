"""State that each has for itself, so that what one client holds is in no other's way.

In: keys (the ids that a contract's isolation names, the client's first), and what a new one begins with. Out: `Apart`.
Whoever owns it holds a lock meanwhile.
"""

from collections.abc import Callable
from itertools import islice
from typing import Final, Generic, TypeVar

from zcpolicy.refusals import PermitError

T = TypeVar("T")
Key = tuple[str, ...]

MAX_CLIENTS: Final = 10_000
"""Clients for which one handle holds something; for one more nothing is kept, and those that are there lose nothing."""
MAX_PER_CLIENT: Final = 256
"""Agents or sessions of one client for which one handle holds something."""
_LOOKED_AT: Final = 32
"""Clients that are looked at, when there is no room, for some that hold nothing any more."""


class Full(PermitError):
    """There is no room for more. The message says of what."""


class Apart(Generic[T]):
    """`make`: what a key begins with. `is_over`: whether it holds nothing that would be missed."""

    def __init__(self, make: Callable[[], T], is_over: Callable[[T], bool]) -> None:
        self._make = make
        self._is_over = is_over
        self._clients: dict[str, dict[Key, T]] = {}

    def find(self, key: Key) -> T | None:
        """What stands under the key, None where nothing does."""
        return self._clients.get(_client(key), {}).get(key)

    def of(self, key: Key) -> T:
        """What stands under the key, made where nothing does. Raises Full."""
        found = self.find(key)
        return self._added(key) if found is None else found

    def drop(self, key: Key) -> T | None:
        """Takes out what stands under the key."""
        of_client = self._clients.get(_client(key), {})
        found = of_client.pop(key, None)
        if not of_client:
            self._clients.pop(_client(key), None)
        return found

    def all(self) -> list[T]:
        """What stands under any key, now."""
        return [one for of_client in self._clients.values() for one in of_client.values()]

    def beside(self, key: Key) -> list[T]:
        """What stands under this key and the other keys of the same client."""
        return [*self._clients.get(_client(key), {}).values()]

    def _added(self, key: Key) -> T:
        client = _client(key)
        if client not in self._clients and len(self._clients) >= MAX_CLIENTS:
            self._sweep()
            if len(self._clients) >= MAX_CLIENTS:
                raise Full(f"there is room for {MAX_CLIENTS:,} clients, and no more")
        if len(self._clients.get(client, ())) >= MAX_PER_CLIENT:
            self._clean(client)
            if len(self._clients.get(client, ())) >= MAX_PER_CLIENT:
                raise Full(f"there is room for {MAX_PER_CLIENT} of one client, and no more")
        return self._clients.setdefault(client, {}).setdefault(key, self._make())

    def _sweep(self) -> None:
        """Looks at a few clients, those next time that were not looked at: whoever knocks costs little."""
        for client in list(islice(self._clients, _LOOKED_AT)):
            self._clean(client)
            if client in self._clients:
                self._clients[client] = self._clients.pop(client)

    def _clean(self, client: str) -> None:
        for key, one in list(self._clients[client].items()):
            if self._is_over(one):
                self.drop(key)


def _client(key: Key) -> str:
    return key[0] if key else ""
