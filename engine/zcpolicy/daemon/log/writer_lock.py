"""One writer per log: a lock that ends with the process that holds it, however that ends.

In: the folder of a log. Out: a descriptor to keep open; or `InUse`.
"""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from time import sleep
from typing import Final

from zcpolicy.daemon.log.place import LOCK

_TRIES: Final = 10


class InUse(Exception):
    """Another writer holds the log; the message says which process."""


def hold(folder: str) -> int:
    """Takes the lock. Raises InUse, OSError."""
    held = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(held)
        os.ftruncate(held, 0)
        os.pwrite(held, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError:
        who = os.pread(held, 20, 0).decode(errors="replace").strip()
        os.close(held)
        raise InUse(
            f"the log in `{folder}` is being written by process {who or 'unknown'}: one daemon has a folder at a time"
        ) from None
    except OSError:
        os.close(held)
        raise
    return held


def _take(held: int) -> None:
    """Waits a little for readers that look whether there is a writer. Raises BlockingIOError."""
    for _ in range(_TRIES):
        try:
            return flock(held, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            sleep(0.02)
    return flock(held, LOCK_EX | LOCK_NB)


def is_held(folder: str) -> bool:
    """Whether a writer is at work; False also where that cannot be told."""
    try:
        held = os.open(os.path.join(folder, LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        flock(held, LOCK_SH | LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(held)
    return False
