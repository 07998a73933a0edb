"""What a log says, chosen by who did it, what it is about, and when.

In: the folder of a log, or one of its files; a `Wanted`. Out: entries, oldest first. Whether they are true is `verify`'s question.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from zcpolicy.daemon.log.line import Line, NoLine, raw_lines, read
from zcpolicy.daemon.log.place import first_of, line_files
from zcpolicy.daemon.log.verify import Place


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a line has to be; None: anything. `channel`: the surface that the turn came by. `since`, `until`: as lines tell time;
    `until` itself is out. Client, agent, session and channel are those of the execution that acted.
    """

    client: str | None = None
    agent: str | None = None
    channel: str | None = None
    session: str | None = None
    kind: str | None = None
    since: str | None = None
    until: str | None = None

    def has(self, line: Line) -> bool:
        """Whether a line is wanted."""
        at, who = str(line.entry.get("at", "")), line.who
        asked = (("client", self.client), ("agent", self.agent), ("surface", self.channel), ("session", self.session))
        return (
            (self.kind is None or line.entry.get("kind") == self.kind)
            and all(wanted is None or who.get(name) == wanted for name, wanted in asked)
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
        )


ALL: Final = Wanted()


class Reader:
    """Reads a log from its beginning, and on from where it stopped, files that begin meanwhile included."""

    def __init__(self, path: str | os.PathLike[str], wanted: Wanted = ALL) -> None:
        self._path, self._wanted = os.fspath(path), wanted
        self._file, self._offset, self._line = "", 0, 0

    def more(self, *, whole: bool = False) -> Iterator[tuple[Place, Line | None]]:
        """The lines that are wanted, up to now; None for what is no line, or was altered. `whole`: a last line without its break
        is one as well, since nobody is writing it. Raises OSError.
        """
        for file in self._files():
            if file != self._file:
                self._file, self._offset, self._line = file, 0, 0
            with open(file, "rb") as lines:
                lines.seek(self._offset)
                for raw in raw_lines(lines):
                    if not raw.endswith(b"\n") and not whole:
                        break
                    self._offset, self._line = lines.tell(), self._line + 1
                    yield from self._one(raw.removesuffix(b"\n"))

    def _files(self) -> list[str]:
        if not os.path.isdir(self._path):
            return [self._path]
        now = first_of(os.path.basename(self._file)) or 0
        return [os.path.join(self._path, name) for name in line_files(self._path) if (first_of(name) or 0) >= now]

    def _one(self, raw: bytes) -> Iterator[tuple[Place, Line | None]]:
        try:
            line = read(raw)
        except NoLine:
            yield Place(self._file, self._line), None
            return
        if self._wanted.has(line):
            yield Place(self._file, self._line, line.seq), line
