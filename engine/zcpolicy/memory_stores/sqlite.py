"""Memory in a SQLite file, shared by all processes that open it.

In: a path, sealed scopes, texts. Out: what was remembered, after any restart. Words are kept as hexadecimal text, so that
no word can be read as a part of a query.
"""

from __future__ import annotations

import json
import os
import sqlite3
from asyncio import to_thread
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from zcpolicy.exact import is_list
from zcpolicy.memory import MemoryEntry, MemoryScope, Shelf, genuine_scope, handed, written
from zcpolicy.memory_stores.contract import MAX_RANKED, MemoryUnavailable, asked_for, ranked, words_of
from zcpolicy.sqlite_files import BUSY_SECONDS, files_of, make, write_ahead

VERSION: Final = 1
"""Of the tables; a file of another one is refused."""

_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, shelf TEXT NOT NULL, text TEXT NOT NULL, words TEXT NOT NULL, labels TEXT NOT NULL,
    agent TEXT NOT NULL, session TEXT NOT NULL, at REAL NOT NULL
)
"""
_BY_SHELF = "CREATE INDEX IF NOT EXISTS entries_by_shelf ON entries (shelf, id)"
_INDEX = "CREATE VIRTUAL TABLE IF NOT EXISTS found USING fts5 (shelf, words, content='', tokenize='ascii')"
_CATCH_UP = """
INSERT INTO found (rowid, shelf, words)
SELECT id, lower(hex(shelf)), words FROM entries WHERE id NOT IN (SELECT rowid FROM found)
"""
_ADD = "INSERT INTO entries (shelf, text, words, labels, agent, session, at) VALUES (?, ?, ?, ?, ?, ?, ?)"
_ADD_WORDS = "INSERT INTO found (rowid, shelf, words) VALUES (?, lower(hex(?)), ?)"

_COLUMNS = "SELECT e.shelf, e.text, e.labels, e.agent, e.session, e.at, e.words"
_ON_SHELVES = "e.shelf IN (SELECT value FROM json_each(:shelves)) ORDER BY e.id DESC LIMIT :most"
_HAS_ONE = "EXISTS (SELECT 1 FROM json_each(:wanted) WHERE instr(' ' || e.words || ' ', ' ' || value || ' '))"
_ALL = f"{_COLUMNS} FROM entries AS e WHERE {_ON_SHELVES}"
_BY_READING = f"{_COLUMNS} FROM entries AS e WHERE {_HAS_ONE} AND {_ON_SHELVES}"
_BY_INDEX = f"{_COLUMNS} FROM found JOIN entries AS e ON e.id = found.rowid WHERE found MATCH :match AND {_ON_SHELVES}"


class SqliteMemory:
    """A `MemoryStore` in a file. `path`: of the file, which is made if it is not there. `files`: all that it may write,
    absolute: for the resolver's protected files.

    `full_text=False`: without SQLite's index of words, as where its build has none; the answers are the same. Safe to
    use from many threads. Raises MemoryUnavailable.
    """

    def __init__(self, path: str | os.PathLike[str], *, full_text: bool = True) -> None:
        file = os.path.realpath(path)
        self.files = files_of(path)
        self._lock = Lock()
        try:
            make(file)
            self._connection = sqlite3.connect(
                file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise MemoryUnavailable(f"the memory file cannot be opened: {type(error).__name__}") from None
        try:
            with self._reached():
                if not write_ahead(self._connection):
                    raise MemoryUnavailable("the memory's file system does not let processes share it")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.execute("PRAGMA trusted_schema = OFF")
                self._indexed = self._prepare(full_text)
        except MemoryUnavailable:
            self.close()
            raise

    def _prepare(self, full_text: bool) -> bool:
        """Makes the tables that are missing. Whether there is an index of words."""
        with self._changing():
            found = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, VERSION):
                raise MemoryUnavailable("the memory file is of another version")
            self._connection.execute(f"PRAGMA user_version = {VERSION}")
            self._connection.execute(_TABLES)
            self._connection.execute(_BY_SHELF)
            if not full_text:
                return False
            try:
                self._connection.execute(_INDEX)
            except sqlite3.OperationalError:  # this build of SQLite has no fts5
                return False
            self._connection.execute(_CATCH_UP)
            return True

    @contextmanager
    def _changing(self) -> Generator[None]:
        """All of it, or nothing."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    async def add(self, scope: MemoryScope, text: str) -> None:
        """Puts a text on a shelf. Raises as `zcpolicy.memory.written`, and MemoryUnavailable."""
        await to_thread(self._add, written(scope, text))

    def _add(self, entry: MemoryEntry) -> None:
        shelf, words, labels = _key(entry.shelf), _spelt(words_of(entry.text)), json.dumps(sorted(entry.labels))
        row = (shelf, entry.text, words, labels, entry.agent, entry.session, entry.at)
        with self._reached(), self._changing():
            number = self._connection.execute(_ADD, row).lastrowid
            if self._indexed:
                self._connection.execute(_ADD_WORDS, (number, shelf, words))

    async def search(self, scopes: Sequence[MemoryScope], query: str, limit: int) -> Sequence[MemoryEntry]:
        """The entries that fit best. Raises as `zcpolicy.memory.handed`, and MemoryUnavailable."""
        shelves = {genuine_scope(scope, "read")[1] for scope in scopes}
        return handed(scopes, await to_thread(self._search, shelves, asked_for(query), limit))

    def _search(self, shelves: set[Shelf], wanted: list[str], limit: int) -> list[MemoryEntry]:
        by_key = {_key(shelf): shelf for shelf in shelves}
        words = [_hex(word) for word in wanted]
        given = {"shelves": json.dumps(list(by_key)), "most": MAX_RANKED}
        with self._reached():
            if not words:
                rows = self._connection.execute(_ALL, given).fetchall()
            elif self._indexed:
                match = f"shelf : ({_any(map(_hex, by_key))}) AND words : ({_any(words)})"
                rows = self._connection.execute(_BY_INDEX, {**given, "match": match}).fetchall()
            else:
                rows = self._connection.execute(_BY_READING, {**given, "wanted": json.dumps(words)}).fetchall()
            read = [(_entry(by_key, row), frozenset(str(row[6]).split())) for row in rows]
        return ranked(read, words, limit)

    @contextmanager
    def _reached(self) -> Generator[None]:
        """One thread at a time; what goes wrong is told without a word of what is stored."""
        with self._lock:
            try:
                yield
            except (sqlite3.Error, ValueError, KeyError) as error:
                raise MemoryUnavailable(f"the memory file cannot be used: {type(error).__name__}") from None

    def close(self) -> None:
        """Lets go of the file. Further calls raise MemoryUnavailable."""
        with self._lock:
            self._connection.close()


def _key(shelf: Shelf) -> str:
    return json.dumps(list(shelf))


def _hex(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").hex()


def _spelt(words: list[str]) -> str:
    return " ".join(map(_hex, dict.fromkeys(words)))


def _any(words: Iterable[str]) -> str:
    """Any of these words, for the index: they are hexadecimal, so that none can be a part of the query's own."""
    return " OR ".join(f'"{word}"' for word in words)


def _entry(shelves: dict[str, Shelf], row: tuple[Any, ...]) -> MemoryEntry:
    """Raises ValueError, KeyError for what was never written so: without its labels no entry is handed out."""
    shelf, text, labels, agent, session, at = row[:6]
    found = json.loads(labels)
    if not is_list(found) or not all(type(label) is str for label in found):
        raise ValueError
    return MemoryEntry(shelves[shelf], text, frozenset(found), agent, session, float(at))
