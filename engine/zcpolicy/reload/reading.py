"""The files of one compilation: what was read, and whether it is still what lies there.

In: paths. Out: `Reading`: bytes, each file's once, kept until it is known whether they belong together. A file that
changed, or that somebody has open for writing, makes the whole reading void: no policy is made of halves.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from errno import EAGAIN
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from zcpolicy.reload.sources import reason

MAX_FILES: Final = 10_000
"""Files of one compilation, those included that are not there."""
MAX_BYTES: Final = 256 * 1024 * 1024
"""Bytes of all files of one compilation."""
MAX_LINKS: Final = 40
"""Symbolic links on the way to one file."""

Signature = tuple[int, int, int, int, int]
"""Of a file: device, number, size, times of its last change in content and in state, in nanoseconds."""


class Seen(NamedTuple):
    """One file as it was. `digest`: of its bytes; "" where `phrase` says why there are none. `limit`: bytes asked for."""

    signature: Signature | None
    digest: str
    phrase: str
    limit: int


class Reading:
    """Reads for a compiler, and remembers. `torn`: a file changed while it was read, or is being written. `roots`: those that
    it began with; None: they could not be told.
    """

    def __init__(self) -> None:
        self.roots: tuple[Path, ...] | None = None
        self.files: dict[str, Seen] = {}
        self.torn = False
        self._data: dict[str, bytes] = {}
        self._bytes = 0

    def read(self, path: Path, limit: int) -> bytes | str:
        """The bytes of a regular file of at most `limit` bytes, or a phrase that says why not."""
        key = os.fspath(path)  # `..` stays: behind a link it leads elsewhere than the text says
        if not os.path.isabs(key):
            key = os.path.join(os.getcwd(), key)
        known = self.files.get(key)
        if known is None:
            if len(self.files) >= MAX_FILES:
                return f"is one more than the {MAX_FILES} files that a policy may be made of"
            known, data = self._look(key, limit)
            self.files[key] = known
            self._data[key] = data
        if known.phrase:
            return known.phrase
        data = self._data[key]
        return data if len(data) <= limit else _too_large(limit)

    def _look(self, key: str, limit: int) -> tuple[Seen, bytes]:
        data, seen, torn = _read(key, min(limit, MAX_BYTES - self._bytes))
        self.torn = self.torn or torn
        self._bytes += len(data)
        return seen, data

    def settled(self) -> bool:
        """Whether every file is, read once more, what it was. What was read is let go: only what is known of it stays."""
        self._data.clear()
        return not self.torn and all(
            not torn and now == seen
            for key, seen in self.files.items()
            for _, now, torn in (_read(key, seen.limit),)
        )  # fmt: skip

    def unchanged(self) -> bool:
        """Whether no file was touched since, as far as their times and sizes tell."""
        return all(_signature_of(key) == seen.signature for key, seen in self.files.items())

    def is_there(self) -> bool:
        """Whether every file that was read can be reached still, whatever it holds by now."""
        return all(_signature_of(key) is not None for key, seen in self.files.items() if not seen.phrase)

    def newest_change(self) -> float:
        """When a file was last touched, in seconds of the file system's clock; 0 where there is none."""
        return max((max(seen.signature[3:]) / 1e9 for seen in self.files.values() if seen.signature), default=0.0)

    @property
    def is_short(self) -> bool:
        """Whether something that was asked for could not be read."""
        return any(seen.phrase for seen in self.files.values())

    def changed(self, before: Reading | None) -> tuple[str, ...]:
        """The files whose content is another than before, those that came, and those that went."""
        old = {} if before is None else before.files
        both = sorted({*self.files, *old})
        return tuple(key for key in both if _digest(self.files.get(key)) != _digest(old.get(key)))

    def places(self) -> tuple[str, ...]:
        """All that decides what is read: the files by name, the links on the way to them, and where these lead."""
        return tuple(dict.fromkeys(place for key in self.files for place in places_of(key)))


def places_of(path: str) -> Iterator[str]:
    """A path, every symbolic link on the way to it by its own place, and what is there in the end."""
    yield os.path.normpath(path)
    todo, at, links = path.split(os.sep)[1:], os.sep, 0
    while todo:
        part = todo.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            at = os.path.dirname(at)
            continue
        at = os.path.join(at, part)
        try:
            target = os.readlink(at)
        except (OSError, ValueError):
            continue
        yield at
        links += 1
        if links > MAX_LINKS:
            return
        at = os.sep if target.startswith(os.sep) else os.path.dirname(at)
        todo = [*target.split(os.sep), *todo]
    yield at


def _read(key: str, limit: int) -> tuple[bytes, Seen, bool]:
    """The bytes, what is remembered of them, and whether they are a half."""
    try:
        file = os.open(key, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        return b"", Seen(_signature_of(key), "", _why(error), limit), False
    try:
        before = _signature(os.fstat(file))
        if not stat.S_ISREG(os.fstat(file).st_mode):
            kind = "is a folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "is not a regular file"
            return b"", Seen(before, "", kind, limit), False
        with os.fdopen(os.dup(file), "rb") as stream:
            data = stream.read(limit + 1)
        torn = before != _signature(os.fstat(file)) or _is_being_written(file)
    except OSError as error:
        return b"", Seen(_signature_of(key), "", _why(error), limit), False
    finally:
        os.close(file)
    if len(data) > limit:
        return b"", Seen(before, "", _too_large(limit), limit), torn
    return data, Seen(before, sha256(data).hexdigest(), "", limit), torn


def _is_being_written(file: int) -> bool:
    """Whether some process has the file open for writing; False where that cannot be told.

    Linux gives the owner of a file a lease on it only while nobody can write to it. It is handed back at once; SIGURG, which
    nobody hears unless they ask to, stands for SIGIO in between, which would end the process.
    """
    if sys.platform != "linux":
        return False
    import fcntl
    import signal

    try:
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == EAGAIN
    return False


def _signature(found: os.stat_result) -> Signature:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _signature_of(key: str) -> Signature | None:
    try:
        return _signature(os.stat(key))
    except (OSError, ValueError):
        return None


def _digest(seen: Seen | None) -> str:
    return "" if seen is None else seen.digest


def _too_large(limit: int) -> str:
    return f"is larger than {limit} bytes"


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    return f"cannot be read: {reason(error) if isinstance(error, OSError) else 'not a usable file name'}"
