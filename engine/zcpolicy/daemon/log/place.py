"""Where a log lies: one folder, with the files of lines, the head, the lock and the key of the fingerprints.

In: a folder. Out: paths; the head that was written beside the lines, whole or not at all.
"""

from __future__ import annotations

import json
import os
import re
from secrets import token_bytes
from typing import Any, Final

from zcpolicy.daemon.log.line import Head, is_hash
from zcpolicy.exact import is_object

HEAD: Final = "head"
LOCK: Final = "lock"
KEY: Final = "key"
_NAME: Final = re.compile(r"decisions-([0-9]{12,15})\.jsonl")
_SLOT: Final = 128


def files(folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """What a resolver protects (`Resolver(…, protected=…)`): the folder with all below it, absolute, links also as resolved."""
    return tuple(dict.fromkeys((os.path.abspath(folder), os.path.realpath(folder))))


def name_of(seq: int) -> str:
    """The file whose first line has this number."""
    return f"decisions-{seq:012}.jsonl"


def first_of(name: str) -> int | None:
    """The number of the first line of a file, by its name; None: it is no file of lines."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def line_files(folder: str) -> list[str]:
    """The names of the files of lines, the oldest first. Raises OSError."""
    return sorted(
        (name for name in os.listdir(folder) if first_of(name) is not None), key=lambda name: first_of(name) or 0
    )


def key_of(folder: str) -> bytes:
    """The key of this log's fingerprints, made when it is first asked for; its owner alone can read it. Raises OSError."""
    path = os.path.join(folder, KEY)
    try:
        with open(path, "rb") as file:
            found = file.read(64)
        if len(found) == 32:
            return found
    except FileNotFoundError:
        pass
    made = token_bytes(32)
    beside = f"{path}.{os.getpid()}"
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(made)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    return made


def write_head(descriptor: int, head: Head) -> None:
    """Writes the head over the older one of the two that a file of heads holds: of a write that is cut short, the other is left.

    Raises OSError.
    """
    slot = f'{{"seq":{head.seq},"sha256":"{head.sha256}"}}'.ljust(_SLOT - 1) + "\n"
    if os.pwrite(descriptor, slot.encode(), _SLOT * (head.seq % 2)) != _SLOT:
        raise OSError("the head was written in part")


def read_head(folder: str) -> Head | None:
    """The newest head beside the lines; None: there is none that can be read. Raises OSError."""
    try:
        with open(os.path.join(folder, HEAD), "rb") as file:
            raw = file.read(2 * _SLOT)
    except FileNotFoundError:
        return None
    return max(filter(None, map(_slot, (raw[:_SLOT], raw[_SLOT:]))), key=lambda head: head.seq, default=None)


def _slot(raw: bytes) -> Head | None:
    try:
        found: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return _head(found) if is_object(found) else None


def _head(found: dict[str, Any]) -> Head | None:
    seq, digest = found.get("seq"), found.get("sha256")
    return Head(seq, digest) if type(seq) is int and seq >= 0 and isinstance(digest, str) and is_hash(digest) else None
