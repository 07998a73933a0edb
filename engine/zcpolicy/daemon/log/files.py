"""The files of a log that is being written: opened where it ended, grown line by line, exchanged when full.

In: members of lines. Out: lines in files, with the head beside them. Whoever calls has one thread at a time in here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from zcpolicy.daemon.log.line import FORMAT, START, Head, write
from zcpolicy.daemon.log.place import HEAD, name_of, read_head, write_head
from zcpolicy.daemon.log.rotate import NONE_GONE, gone_of, remove, will_be_gone
from zcpolicy.daemon.log.settings import Rotation
from zcpolicy.daemon.log.tail import End, Tail, end_of, flush, told
from zcpolicy.daemon.log.writer_lock import hold


class LogFiles:
    """`head`: the last line. Between `open` and `drop` it holds the lock, the newest file and the file of the head."""

    def __init__(self, folder: str, rotation: Rotation) -> None:
        self.head = START
        self._folder, self._rotation = folder, rotation
        self._tail: Tail | None = None
        self._descriptors: dict[str, int] = {}
        self._gone, self._day = NONE_GONE, ""

    @property
    def is_open(self) -> bool:
        """Whether lines can be written."""
        return self._tail is not None

    def open(self, now: str, again: Mapping[str, Any] | None = None) -> None:
        """Goes on where the log ends, and says what it found there. `again`: why it was let go of. Raises OSError, InUse."""
        self._descriptors["lock"] = hold(self._folder)
        anchored = read_head(self._folder)
        self._descriptors["head"] = os.open(
            os.path.join(self._folder, HEAD), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        end = end_of(self._folder)
        found = _found(end, anchored, self.head)
        known = max((anchored or START, self.head), key=lambda head: head.seq)
        self.head = known if known.seq > end.head.seq else end.head
        self._gone = gone_of(end.first)
        remove(self._folder, self._gone)
        said = {"did": "started" if again is None else "resumed", **(again or {}), **found}
        if not end.fresh:
            self._tail = Tail(os.path.join(self._folder, end.name))
            self._day = str(end.first.entry.get("at"))[:10] if end.first else ""
            self._tail.end_line()
        if end.fresh or self._is_full(now):
            self._begin(now, found)  # what was found is told by the very next line
            said = {name: one for name, one in said.items() if name not in found}
        self.append({"kind": "log", "data": said}, now)

    def append(self, members: Mapping[str, Any], now: str) -> None:
        """Puts a line at the end, in a new file if this one is full or of another day. `now`: its time. Raises OSError."""
        if os.fstat(self._descriptors["head"]).st_nlink == 0:
            raise OSError("the file of the head was removed")
        if self._is_full(now):
            self._begin(now, {})
        raw, head = write(self.head, {"at": now, **members})
        assert self._tail is not None
        self._tail.append(raw)
        self._anchor(head)

    def sync(self) -> None:
        """Returns once the disk has all lines. Raises OSError."""
        if self._tail is not None:
            flush(self._tail.descriptor)
            flush(self._descriptors["head"])

    def handles(self) -> tuple[int, ...]:
        """The open files once more, to be synced while others write, and closed. Raises OSError."""
        assert self._tail is not None
        return os.dup(self._tail.descriptor), os.dup(self._descriptors["head"])

    def drop(self) -> None:
        """Lets go of everything."""
        tail, self._tail = self._tail, None
        for descriptor in ([tail.descriptor] if tail else []) + list(self._descriptors.values()):
            with suppress(OSError):
                os.close(descriptor)
        self._descriptors.clear()

    def _is_full(self, now: str) -> bool:
        assert self._tail is not None
        return self._tail.size >= self._rotation.size or (self._rotation.daily and now[:10] > self._day)

    def _begin(self, now: str, found: Mapping[str, Any]) -> None:
        """Begins a new file, whose first line says what went before it; then removes what is on record as gone."""
        gone = will_be_gone(self._folder, self._gone, self.head, self._rotation.keep)
        old, new = self._tail, Tail(os.path.join(self._folder, name_of(self.head.seq + 1)))
        try:
            said = {"did": "file", "format": FORMAT, "gone": gone.to_json(), **found}
            raw, head = write(self.head, {"at": now, "kind": "log", "data": said})
            new.end_line()
            new.append(raw)
            if old is not None:
                flush(old.descriptor)
            flush(new.descriptor)
        except OSError:
            os.close(new.descriptor)
            raise
        if old is not None:
            os.close(old.descriptor)
        self._tail, self._day, self._gone = new, now[:10], gone
        self._anchor(head)
        self._sync_folder()
        remove(self._folder, gone)

    def _anchor(self, head: Head) -> None:
        """The line is there; now it is what the log ends in."""
        self.head = head
        write_head(self._descriptors["head"], head)

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _found(end: End, anchored: Head | None, known: Head) -> dict[str, Any]:
    """What the end of a log shows that a writer who stopped, or was killed, does not leave; and what one who was killed does."""
    found: dict[str, Any] = {"torn": told(end.torn)} if end.torn else {}
    expected = max((anchored or START, known), key=lambda head: head.seq)
    if end.head.seq < expected.seq:
        found["lost"] = {"from": end.head.seq + 1, "to": expected.seq}
    elif end.head.seq == expected.seq and end.head != expected:
        found["differs"] = {"line": end.head.seq, "head": expected.sha256}
    elif anchored is None and end.head.seq:
        found["unanchored"] = True
    elif end.head.seq > expected.seq + 1:
        found["ahead"] = {"from": expected.seq + 1, "to": end.head.seq}
    return found
