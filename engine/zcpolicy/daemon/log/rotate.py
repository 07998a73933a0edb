"""Which files of a log go, and what its newest file says of those that went.

In: a folder, how many files are kept. Out: names, and `Gone`, which is on record before anything is removed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from zcpolicy.daemon.log.line import NOTHING_BEFORE, Head, is_hash
from zcpolicy.daemon.log.place import first_of, line_files
from zcpolicy.daemon.log.tail import first_line
from zcpolicy.exact import is_object

if TYPE_CHECKING:
    from zcpolicy.daemon.log.line import Line


@dataclass(frozen=True, slots=True)
class Gone:
    """`files` that were removed, with all lines up to number `lines`, the last of which has the hash `head`."""

    files: int = 0
    lines: int = 0
    head: str = NOTHING_BEFORE

    def to_json(self) -> dict[str, Any]:
        """As the first line of a file has it."""
        return {"files": self.files, "lines": self.lines, "head": self.head}


NONE_GONE: Final = Gone()


def gone_of(line: Line | None) -> Gone:
    """What the first line of a file says of files before it."""
    found: Any = line.said.get("gone") if line is not None and line.own == "file" else None
    if not is_object(found):
        return NONE_GONE
    files, lines, head = found.get("files"), found.get("lines"), found.get("head")
    return Gone(files, lines, head) if type(files) is int and type(lines) is int and is_hash(head) else NONE_GONE


def will_be_gone(folder: str, gone: Gone, head: Head, keep: int | None) -> Gone:
    """What will be gone once a new file follows `head`, and `keep` files are left. Raises OSError."""
    names = line_files(folder)
    stay = len(names) if keep is None else keep - 1
    going = names[: max(0, len(names) - stay)]
    first = first_line(os.path.join(folder, names[len(going)])) if len(going) < len(names) else None
    if not going or (first is None and len(going) < len(names)):
        return gone  # what cannot be read stays, to be looked at
    last = Head(first.seq - 1, first.prev) if first is not None else head
    more = sum((first_of(name) or 0) > gone.lines for name in going)
    return Gone(gone.files + more, last.seq, last.sha256)


def remove(folder: str, gone: Gone) -> None:
    """Removes the files that are on record as gone; one that cannot be removed goes another time."""
    names = line_files(folder)
    for name, after in pairwise(names):
        if (first_of(after) or 0) <= gone.lines + 1:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))
