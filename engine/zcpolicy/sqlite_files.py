"""Files that processes share through SQLite: how one is made, which others stand beside it, how writers wait.

In: paths, connections. Out: files that only their owner can read.
"""

from __future__ import annotations

import os
import sqlite3
from time import monotonic, sleep
from typing import Final

BUSY_SECONDS: Final = 5.0
"""Seconds to wait for others that write; then a ledger or a memory is unavailable."""


def files_of(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """All that SQLite may write for a file, absolute, for a resolver's protected files: where the path is a link, also
    beside the file that it leads to.
    """
    names = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    return tuple(f"{name}{end}" for name in names for end in ("", "-wal", "-shm", "-journal"))


def make(path: str) -> None:
    """Makes a file that others cannot read. One that is there is not touched: to close it would drop SQLite's locks on it.

    Raises OSError.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return


def write_ahead(db: sqlite3.Connection) -> bool:
    """Lets readers and a writer work side by side; False where the file system lets no processes share a file. SQLite does
    not wait for those that set the same mode at the same time, so we do. Raises sqlite3.Error.
    """
    end = monotonic() + BUSY_SECONDS
    while True:
        try:
            mode: object = db.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError:
            if monotonic() > end:
                raise
            sleep(0.01)
        else:
            return mode == ("wal",)
