"""Reading policy files.

In: a path. Out: a `Source`, or a `Diagnostic` that says why there is none. Nothing here raises on bad input.
"""

import os
from collections.abc import Callable
from pathlib import Path

from policy_lang import codes
from policy_lang.diagnostics import Diagnostic
from policy_lang.source import Source, Span

MAX_FILE_BYTES = 8 * 1024 * 1024
"""The largest policy file that is read, in bytes (UTF-8)."""


ReadBytes = Callable[[Path, int], bytes | str]
"""`read_bytes`, or what stands in for it."""


def read_source(path: Path, name: str | None = None, read: ReadBytes | None = None) -> Source | Diagnostic:
    """The text of a policy file; `name` is what diagnostics call it, by default the path as given."""
    shown = name if name is not None else os.fspath(path)
    data = (read or read_bytes)(path, MAX_FILE_BYTES)
    if isinstance(data, str):
        return _unreadable(shown, data)
    return decode_source(data, shown)


def decode_source(data: bytes, shown: str) -> Source | Diagnostic:
    """The text of UTF-8 bytes; bytes that are not UTF-8 are an error at their place."""
    try:
        return Source(shown, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        source = Source(shown, before)
        line = source.position(len(before)).line
        return Diagnostic(
            codes.NOT_UTF8,
            f"byte {error.start} on line {line} is not UTF-8",
            source,
            Span(len(before), len(before)),
            help="save the file as UTF-8",
        )


def read_bytes(path: Path, limit: int) -> bytes | str:
    """The bytes of a regular file of at most `limit` bytes, or a phrase that says why not."""
    try:
        if not path.is_file():
            return (
                "is a folder" if path.is_dir() else "does not exist" if not path.exists() else "is not a regular file"
            )
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "not a usable file name"
        return f"cannot be read: {reason}"
    if len(data) > limit:
        return f"is larger than {limit} bytes"
    return data


def _unreadable(shown: str, phrase: str) -> Diagnostic:
    return Diagnostic(codes.UNREADABLE_FILE, f"`{shown}` {phrase}", Source(shown, ""), Span(0, 0))
