"""The file that is written to, and what stands at the end of a log that is gone on with.

In: a folder, bytes. Out: bytes at the end of a file, all or none as far as the disk lets us; where the last whole line is,
and what was left after it by a writer that was killed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOSPC, ESTALE
from hashlib import sha256
from typing import Any, Final

from zcpolicy.daemon.log.line import MAX_LINE_BYTES, START, Head, Line, NoLine, read
from zcpolicy.daemon.log.place import line_files

MAX_TORN_BYTES: Final = 8_000_000
"""Bytes after the last whole line of a log that are taken for what a killed writer left; with more, the log is not gone on with."""
MAX_TORN: Final = 50
"""Torn lines in a row, one for each writer that was killed; with more, the log is not gone on with."""
MAX_TORN_SHOWN: Final = 8_192
"""Bytes of torn lines that the next line repeats, altogether; their lengths and digests are told in any case."""

_FIRST_LOOK: Final = 262_144
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)

flush = getattr(os, "fdatasync", os.fsync)


class Tail:
    """A file that grows. `size`: its bytes, all of whole lines or of what a killed writer left."""

    __slots__ = ("_file", "descriptor", "path", "size")

    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self.path = path
        self.descriptor = os.open(path, _APPEND, 0o600)
        found = os.fstat(self.descriptor)
        self.size = found.st_size
        self._file = found.st_dev, found.st_ino

    def append(self, raw: bytes) -> None:
        """Writes all of it, or nothing. Raises OSError; also where the file was moved, cut or written to by somebody else."""
        found = os.stat(self.path)
        if (found.st_dev, found.st_ino, found.st_size) != (*self._file, self.size):
            raise OSError(ESTALE, "it was changed, or another file put in its place")
        written = os.write(self.descriptor, raw)
        if written != len(raw):
            with suppress(OSError):
                os.ftruncate(self.descriptor, self.size)  # or else the next start finds the rest, and says so
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        self.size += written

    def end_line(self) -> None:
        """Ends a line that a killed writer left without its break. Raises OSError."""
        with open(self.path, "rb") as file:
            file.seek(max(0, self.size - 1))
            if file.read(1) not in (b"", b"\n"):
                self.append(b"\n")


@dataclass(frozen=True, slots=True)
class End:
    """How a log ends. `head`: of the last whole line. `torn`: what stands after it, oldest first.

    `name`: the newest file that has a whole line, empty if there is none; `first`: its first. `fresh`: the next line begins a file.
    """

    head: Head = START
    torn: tuple[bytes, ...] = ()
    name: str = ""
    first: Line | None = None
    fresh: bool = True


def end_of(folder: str) -> End:
    """Looks at the end of a log. Raises OSError: it cannot be read, or has no end that a writer could have left."""
    names, torn = line_files(folder), list[bytes]()
    for name in reversed(names):
        path = os.path.join(folder, name)
        last, after = _last_line(path)
        torn[:0] = after
        if len(torn) > MAX_TORN:
            raise OSError(f"`{path}` does not end in lines of a log")
        if last is not None:
            return End(last.head, tuple(torn), name, first_line(path), name != names[-1])
    return End(torn=tuple(torn))


def first_line(path: str) -> Line | None:
    """The first whole line of a file, after what a killed writer may have left; None where there is none. Raises OSError."""
    with open(path, "rb") as file:
        while (raw := file.readline(MAX_LINE_BYTES + 1)) and file.tell() <= MAX_TORN_BYTES:
            try:
                return read(raw.removesuffix(b"\n"))
            except NoLine:
                continue
    return None


def _last_line(path: str) -> tuple[Line | None, list[bytes]]:
    """The last whole line of a file, and what stands after it."""
    size, look = os.path.getsize(path), _FIRST_LOOK
    while True:
        with open(path, "rb") as file:
            file.seek(max(0, size - look))
            pieces = file.read(size).split(b"\n")
        if not pieces[-1]:
            pieces.pop()
        torn: list[bytes] = []
        for piece in reversed(pieces if look >= size else pieces[1:]):
            try:
                return read(piece), torn
            except NoLine:
                torn.insert(0, piece)
        if look >= size:
            return None, torn
        if look > MAX_TORN_BYTES:
            raise OSError(f"`{path}` does not end in lines of a log")
        look = 2 * look


def told(torn: tuple[bytes, ...]) -> list[dict[str, Any]]:
    """What was left, as the next line tells it, which answers for it from then on."""
    shown = MAX_TORN_SHOWN // max(1, len(torn))
    return [
        {
            "bytes": len(one),
            "sha256": sha256(one).hexdigest(),
            "text": one[:shown].decode(errors="backslashreplace"),
        }
        for one in torn
    ]
