"""Memory in this process.

In: sealed scopes, texts. Out: what was remembered since the process began.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from heapq import merge
from itertools import count
from threading import Lock
from typing import Final

from zcpolicy.memory import MemoryEntry, MemoryScope, Shelf, genuine_scope, handed, written
from zcpolicy.memory_stores.contract import asked_for, ranked, words_of

MAX_SHELF_ENTRIES: Final = 10_000
"""Entries of one shelf of a memory in the process; the oldest go first."""


class InMemoryStore:
    """A `MemoryStore` that ends with its process. Safe to use from many threads."""

    def __init__(self) -> None:
        self._shelves: dict[Shelf, deque[tuple[int, MemoryEntry, frozenset[str]]]] = defaultdict(
            lambda: deque(maxlen=MAX_SHELF_ENTRIES)
        )
        self._numbers = count()
        self._lock = Lock()

    async def add(self, scope: MemoryScope, text: str) -> None:
        """Puts a text on a shelf. Raises as `zcpolicy.memory.written`."""
        entry = written(scope, text)
        words = frozenset(words_of(text))
        with self._lock:
            self._shelves[entry.shelf].append((next(self._numbers), entry, words))

    async def search(self, scopes: Sequence[MemoryScope], query: str, limit: int) -> Sequence[MemoryEntry]:
        """The entries that fit best. Raises as `zcpolicy.memory.handed`."""
        shelves = {genuine_scope(scope, "read")[1] for scope in scopes}
        with self._lock:
            kept = [list(self._shelves[shelf]) for shelf in shelves if shelf in self._shelves]
        newest_first = merge(*map(reversed, kept), key=lambda one: -one[0])
        return handed(scopes, ranked(((entry, words) for _, entry, words in newest_first), asked_for(query), limit))
