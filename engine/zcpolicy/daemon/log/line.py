"""A line of the log: canonical JSON that names the line before, and ends in its own hash.

In: a number, the hash of the line before, and what is to be said; or the bytes of a line. Out: bytes; or a `Line`.

A line is `{…,"prev":"…","seq":7,"sha256":"…"}`: RFC 8785 text, whose last member is the SHA-256 of the same line without that member. Whoever
has a hash tool can check it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from errno import EMSGSIZE
from hashlib import sha256
from typing import Any, BinaryIO, Final, TypeGuard

from zcpolicy.exact import canonical, is_object, number_text

MAX_LINE_BYTES: Final = 262_144
"""Bytes of one line of the log; what is longer was not written by it."""
MAX_SAFE_INTEGER: Final = 2**53 - 1
"""Whole numbers up to it are written as numbers; others as text, since readers of JSON would round them."""
FORMAT: Final = "zcpolicy-log 1"
"""Named in the first line of every file."""
NOTHING_BEFORE: Final = "0" * 64
"""What the first line of all names as the hash of the line before."""

KINDS: Final = (
    "turn", "model", "call", "approval", "delegation", "skill", "memory", "stopped", "failed", "host", "log",
)  # fmt: skip
"""Of lines: those of events, of the host itself, and of the log about itself."""

_END: Final = len(',"sha256":"') + 64 + len('"}')
_LATEST: Final = 253_402_300_799.0
_SMALLEST: Final = 1e-4  # below, Python and RFC 8785 spell numbers differently


@dataclass(frozen=True, slots=True)
class Head:
    """The last line of a log, or one that was: its number, from 1, and its hash. 0 and zeros where there is none."""

    seq: int = 0
    sha256: str = NOTHING_BEFORE


START: Final = Head()
"""Before the first line."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line whose hash is right. `entry`: all its members. `prev`: the hash that it names of the line before."""

    seq: int
    prev: str
    sha256: str
    entry: Mapping[str, Any]

    @property
    def head(self) -> Head:
        """The line as the end of a chain."""
        return Head(self.seq, self.sha256)

    @property
    def said(self) -> Mapping[str, Any]:
        """What it says, in `data`."""
        found: Any = self.entry.get("data")
        return found if is_object(found) else {}

    @property
    def who(self) -> Mapping[str, Any]:
        """Whose execution acted, as `Identity.to_json` tells it; empty for lines of the host and of the log itself."""
        found: Any = self.entry.get("identity")
        return found if is_object(found) else {}

    @property
    def own(self) -> str:
        """For a line of the log about itself, what it tells: started, file, …; empty for all others."""
        did = self.said.get("did") if self.entry.get("kind") == "log" else ""
        return did if isinstance(did, str) else ""


class NoLine(ValueError):
    """Bytes that are no line of a log; the message says why."""


def write(head: Head, members: Mapping[str, Any]) -> tuple[bytes, Head]:
    """The line after `head`, with its line break, and the head that it makes. `members`: JSON values; numbers from `number`.

    Raises OSError: it would be too long to be read again.
    """
    body = canonical({**members, "prev": head.sha256, "seq": head.seq + 1})
    digest = sha256(body.encode()).hexdigest()
    raw = f'{body[:-1]},"sha256":"{digest}"}}\n'.encode()
    if len(raw) > MAX_LINE_BYTES:
        raise OSError(EMSGSIZE, "the line is too long")
    return raw, Head(head.seq + 1, digest)


def read(raw: bytes) -> Line:
    """A line without its line break. Raises NoLine: its hash is wrong, or it is nothing that `write` makes."""
    if len(raw) > MAX_LINE_BYTES:
        raise NoLine(f"it is longer than {MAX_LINE_BYTES:_} bytes")
    body, end = raw[:-_END], raw[-_END:]
    if not body or not end.startswith(b',"sha256":"') or not end.endswith(b'"}'):
        raise NoLine("it is no line of a log")
    told, digest = end[len(b',"sha256":"') : -len(b'"}')], sha256(body + b"}").hexdigest()
    if told != digest.encode():
        raise NoLine("its hash does not fit: it was altered")
    try:
        entry: Any = json.loads(body + b"}")
    except (ValueError, RecursionError):
        raise NoLine("it is no JSON") from None
    seq, prev = entry.get("seq"), entry.get("prev")
    if type(seq) is not int or seq < 1 or not is_hash(prev):
        raise NoLine("it has no place in a chain")
    return Line(seq, prev, digest, entry)


def raw_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file from where it is, with their breaks; of one that is too long to be a line, the beginning. Raises OSError."""
    while raw := file.readline(MAX_LINE_BYTES + 1):
        rest = raw
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE_BYTES)
        yield raw + b"\n" if rest and rest is not raw else raw


def is_hash(text: object) -> TypeGuard[str]:
    """Whether it is a SHA-256 as lines name it: 64 hexadecimal digits, small."""
    return isinstance(text, str) and len(text) == 64 and not text.strip("0123456789abcdef")


def number(value: int | float | Decimal) -> int | float | str:
    """A number as a line has it: text where readers of JSON would read another number, or spell it otherwise."""
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else _digits(value)
    try:
        exact, near = Decimal(repr(value)) if isinstance(value, float) else value, float(value)
        if not exact.is_finite() or Decimal(repr(near)) != exact:
            return str(value)
    except (ArithmeticError, ValueError):
        return str(value)
    if near.is_integer():
        return int(near) if abs(near) <= MAX_SAFE_INTEGER else number_text(exact)
    return near if abs(near) >= _SMALLEST else number_text(exact)


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python spells no number of more than some thousand digits
        return hex(value)


def moment(at: float) -> str:
    """Seconds since the epoch as lines tell time: `2026-11-30T21:08:09.123456Z`. Such texts sort by time."""
    when = datetime.fromtimestamp(min(max(at, 0.0), _LATEST), UTC)
    return when.isoformat(timespec="microseconds").replace("+00:00", "Z")
