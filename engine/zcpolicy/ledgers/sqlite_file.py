"""The file of an SQLite ledger: its tables, and how it is opened.

In: a path. Out: a connection to a file that has the tables of this edition. Raises LedgerUnavailable.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import Final
from urllib.parse import quote

from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.sqlite_files import BUSY_SECONDS, make, write_ahead

EDITION: Final = 1
"""Of the tables. A file of another edition is not touched."""
APPLICATION: Final = 0x7A637064
"""Marks the file as a ledger's (`zcpd`)."""
COLUMNS: Final = "r.seq, r.change, r.key, r.at, r.until, r.state, r.spender, r.charges"
"""Of a reservation, in the order of its fields."""

Place = tuple[int, int] | None
"""A file's device and number."""

TABLES: Final = """
CREATE TABLE clock (only INTEGER PRIMARY KEY CHECK (only = 1), latest REAL NOT NULL, change INTEGER NOT NULL,
    epoch INTEGER NOT NULL);
INSERT INTO clock VALUES (1, 0.0, 0, 1);
CREATE TABLE reservations (seq INTEGER PRIMARY KEY, change INTEGER NOT NULL, key TEXT NOT NULL, at REAL NOT NULL,
    until REAL NOT NULL, state TEXT NOT NULL CHECK (state IN ('reserved', 'dispatched', 'settled', 'released')),
    spender TEXT NOT NULL, charges TEXT NOT NULL);
CREATE UNIQUE INDEX reservations_by_key ON reservations (key, seq);
CREATE UNIQUE INDEX reservations_by_change ON reservations (change);
CREATE TABLE tags (tag TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (tag, seq)) WITHOUT ROWID;
CREATE TABLE yeses (id INTEGER PRIMARY KEY AUTOINCREMENT, binding TEXT NOT NULL, once INTEGER NOT NULL, use TEXT NOT NULL,
    expires REAL, by TEXT NOT NULL, taken TEXT, said REAL NOT NULL);
CREATE INDEX yeses_by_binding ON yeses (binding)
"""
"""`clock`: the latest time that was acted on; the number of the last change; it is another `epoch` after something was
forgotten. `tags`: which reservations a pot must look at, so that a process that starts reads those alone.
"""


def place_of(path: str) -> Place:
    """Which file a path leads to; None where there is none."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return (stat.st_dev, stat.st_ino)


def places_beside(real: str) -> tuple[Place, ...]:
    """Where the latest changes and the locks are: they belong to the file as long as it is open. `real`: no link."""
    return place_of(real + "-wal"), place_of(real + "-shm")


def opened(path: str, *, synced: bool) -> sqlite3.Connection:
    """A connection without a transaction. `synced`: it waits for the disk."""
    try:
        make(path)
        where = f"file:{quote(os.fsencode(path))}?mode=rw"  # never makes a file by itself
        db = sqlite3.connect(where, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    except OSError as error:
        raise LedgerUnavailable(f"the ledger's file `{path}` cannot be opened: {error.strerror}") from None
    try:
        if not write_ahead(db):
            raise LedgerUnavailable("the ledger's file system does not let processes share it")
        db.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
        _with_tables(db)
    except BaseException:
        db.close()
        raise
    return db


def _with_tables(db: sqlite3.Connection) -> None:
    if _edition(db) == EDITION:
        return
    with closing(db.cursor()) as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        found = _edition(db)
        if found == 0 and db.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
            for statement in TABLES.split(";"):
                cursor.execute(statement)
            cursor.execute(f"PRAGMA application_id = {APPLICATION}")
            cursor.execute(f"PRAGMA user_version = {EDITION}")
        elif found != EDITION:
            raise LedgerUnavailable("the file is no ledger of this edition")
        cursor.execute("COMMIT")


def _edition(db: sqlite3.Connection) -> int:
    """0 for a new file, and for one that is not ours."""
    mark, edition = (int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version"))
    return edition if mark == APPLICATION or edition == 0 else -1
