"""What a log says, chosen by who did it, what it is about, and when.

In: the folder of a log, or one of its files; a `Wanted`. Out: entries, oldest first. Whether they are true is `verify`'s question.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from zcpolicy.daemon.log.line import Line, NoLine, read
from zcpolicy.daemon.log.place import line_files
from zcpolicy.daemon.log.verify import Place, lines_of


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


def show(path: str | os.PathLike[str], wanted: Wanted = ALL) -> Iterator[tuple[Place, Line | None]]:
    """The lines that are wanted; None for what is no line, or was altered. Raises OSError."""
    folder = os.fspath(path)
    files = [os.path.join(folder, name) for name in line_files(folder)] if os.path.isdir(folder) else [folder]
    for file in files:
        for place, raw in lines_of(file):
            try:
                line = read(raw)
            except NoLine:
                yield place, None
                continue
            if wanted.has(line):
                yield Place(file, place.line, line.seq), line
