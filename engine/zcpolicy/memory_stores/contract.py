"""What `MemoryAccess` needs of a store, and how the stores here rank what they find.

In: sealed scopes, texts. Out: `MemoryStore`, words, ranked entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, Protocol
from unicodedata import category, normalize

from zcpolicy.memory import MemoryEntry, MemoryScope

MAX_QUERY_WORDS: Final = 32
"""Different words of a query that are looked for, the first ones."""
MAX_RANKED: Final = 1_000
"""Entries with some word of a query that are ranked, the newest ones."""


class MemoryUnavailable(Exception):
    """A store that cannot be reached, or does not hold what it should. The message quotes nothing that is stored."""


class MemoryStore(Protocol):
    """A place for memory. It asks `genuine_scope` about every scope it is handed, by way of the two functions below."""

    async def add(self, scope: MemoryScope, text: str) -> None:
        """Keeps `zcpolicy.memory.written(scope, text)`. Raises as that, and MemoryUnavailable."""
        ...

    async def search(self, scopes: Sequence[MemoryScope], query: str, limit: int) -> Sequence[MemoryEntry]:
        """`zcpolicy.memory.handed(scopes, …)` of the at most `limit` entries on these shelves that fit best.

        A query without a word: the newest entries. Raises as `handed`, and MemoryUnavailable.
        """
        ...


def words_of(text: str) -> list[str]:
    """The words of a text, folded: runs of letters, marks and digits; each letter of a script without blanks by itself."""
    apart: list[str] = []
    for letter in normalize("NFKC", text).casefold():
        if category(letter)[0] not in "LMN":
            apart.append(" ")
        else:
            apart.append(f" {letter} " if _stands_alone(letter) else letter)
    return "".join(apart).split()


def _stands_alone(letter: str) -> bool:
    return "\u3040" <= letter <= "\u9fff" or letter >= "\U00020000"


def asked_for(query: str) -> list[str]:
    """The words of a query that are looked for."""
    return list(dict.fromkeys(words_of(query)))[:MAX_QUERY_WORDS]


def ranked(
    newest_first: Iterable[tuple[MemoryEntry, frozenset[str]]], wanted: Sequence[str], limit: int
) -> list[MemoryEntry]:
    """The entries with most of the wanted words, the newest of equals first. Beside each entry stand its words."""
    if not wanted:
        return [entry for entry, _ in islice(newest_first, max(0, limit))]
    hits = ((len(words.intersection(wanted)), entry) for entry, words in newest_first)
    found = list(islice((hit for hit in hits if hit[0]), MAX_RANKED))
    found.sort(key=lambda hit: -hit[0])
    return [entry for _, entry in found[: max(0, limit)]]
