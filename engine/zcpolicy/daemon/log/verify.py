"""Whether a log is what was written: nothing altered, put in, taken out, reordered or cut off.

In: the folder of a log, or one of its files; a hash that was kept elsewhere. Out: `Verified`: what is wrong, and where.

Whoever may write the folder can write the whole log anew, with the head beside it: then only a hash that was kept elsewhere tells.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, NamedTuple

from zcpolicy.daemon.log.line import START, Head, Line, NoLine, raw_lines, read
from zcpolicy.daemon.log.place import first_of, line_files, read_head
from zcpolicy.daemon.log.rotate import NONE_GONE, Gone, gone_of
from zcpolicy.daemon.log.writer_lock import is_held
from zcpolicy.exact import is_list, is_object

MAX_FINDINGS: Final = 100
"""Problems that are told of one log, and notes; more problems are counted."""


class Place(NamedTuple):
    """A line: `file` as its path, `line` from 1 (0: the whole file), `seq` as the line says (0: it says none)."""

    file: str
    line: int = 0
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and where."""

    place: Place
    text: str


@dataclass(slots=True)
class Verified:
    """`head`: the last line. `first`: the number of the first line that is there. `gone`: what rotation removed, as on record.

    `whole`: a folder was looked at, not one file. `more`: problems beyond those told.
    """

    files: int = 0
    lines: int = 0
    first: int = 0
    head: Head = START
    gone: Gone = NONE_GONE
    whole: bool = True
    more: int = 0
    problems: list[Finding] = field(default_factory=list[Finding])
    notes: list[Finding] = field(default_factory=list[Finding])

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def problem(self, place: Place, text: str) -> None:
        """Puts down what is wrong."""
        if len(self.problems) < MAX_FINDINGS:
            self.problems.append(Finding(place, text))
        else:
            self.more += 1

    def note(self, place: Place, text: str) -> None:
        """Puts down what is worth knowing."""
        if len(self.notes) < MAX_FINDINGS:
            self.notes.append(Finding(place, text))


class Torn(NamedTuple):
    """What is no line, and why not. `open`: it has no line break, as a writer that is killed leaves it."""

    place: Place
    raw: bytes
    open: bool
    why: str


def verify(path: str | os.PathLike[str], head: str | None = None) -> Verified:
    """Looks at every line. `head`: a hash that one of them has to have. Raises OSError: the log cannot be read."""
    found = Verified(whole=os.path.isdir(path))
    folder = os.fspath(path) if found.whole else os.path.dirname(path) or "."
    names = line_files(folder) if found.whole else [os.path.basename(path)]
    anchored = read_head(folder) if found.whole else None
    if found.whole and not names and anchored is None:
        raise FileNotFoundError(2, "there is no log in it", os.fspath(path))
    walk = _Walk(found, head)
    for name in names:
        walk.file(os.path.join(folder, name), name)
    walk.end(folder, anchored)
    return found


class _Walk:
    """The chain so far: the last line, what may be left of killed writers since, whether the wanted hash came by."""

    def __init__(self, found: Verified, wanted: str | None) -> None:
        self._found, self._wanted, self._met = found, wanted, wanted is None
        self._last: Line | None = None
        self._torn: list[Torn] = []
        self._altered = 0
        self._before = ""
        self._at = Place("")

    def file(self, path: str, name: str) -> None:
        """The lines of one file, the next in order."""
        self._found.files += 1
        self._at, starts, last_torn = Place(path), True, len(self._torn)
        with open(path, "rb") as file:
            for number, raw in enumerate(raw_lines(file), 1):
                starts = self._raw(Place(path, number), raw, name if starts else "") and starts
        if starts and len(self._torn) == last_torn:
            self._found.note(Place(path), "it is empty: its writer was killed, or the disk was full, when it was begun")

    def _raw(self, place: Place, raw: bytes, begins: str) -> bool:
        """One line, or what stands in place of one. `begins`: the file's name, before its first line. Whether it is no line."""
        self._at = place
        try:
            line = read(raw.removesuffix(b"\n"))
        except NoLine as error:
            self._torn.append(Torn(place, raw.removesuffix(b"\n"), not raw.endswith(b"\n"), str(error)))
            return True
        place = Place(place.file, place.line, line.seq)
        if begins and self._found.whole:
            self._header(place, begins, line)
        self._line(place, line)
        return False

    def _header(self, place: Place, name: str, line: Line) -> None:
        if line.own != "file":
            self._found.problem(
                place, "it does not begin as a file of a log does: lines are missing, or the file was renamed"
            )
        elif first_of(name) not in (None, line.seq):
            self._found.problem(place, f"its first line is {line.seq}: the file was renamed")
        self._found.gone = gone_of(line) if line.own == "file" else self._found.gone

    def _line(self, place: Place, line: Line) -> None:
        self._torn_before(place, line)
        if self._last is None:
            self._found.first, self._before = line.seq, line.prev
        elif self._altered and line.seq == self._last.seq + 1 + self._altered:
            pass  # those between are told already
        elif line.seq != self._last.seq + 1 or line.prev != self._last.sha256:
            self._found.problem(place, _broken(self._last.head, line))
        self._told(place, line)
        self._met = self._met or self._wanted in (line.sha256, line.prev)
        self._last, self._at = line, place
        self._found.lines += 1

    def _torn_before(self, place: Place, line: Line) -> None:
        """What is no line has to be what the next line tells, in its own words, that a killed writer left."""
        told: Any = line.said.get("torn") if line.own else None
        known = [one.get("sha256") for one in told if is_object(one)] if is_list(told) else []
        self._altered, last = 0, self._last.seq if self._last is not None else line.seq - len(self._torn) - 1
        for torn in self._torn:
            if sha256(torn.raw).hexdigest() in known:
                self._found.note(torn.place, f"torn by a writer that was killed; line {line.seq} tells it")
            else:
                self._altered += 1
                self._found.problem(torn.place._replace(seq=last + self._altered), torn.why)
        self._torn = []

    def _told(self, place: Place, line: Line) -> None:
        """What a writer found when it opened the log."""
        if line.own not in ("started", "resumed", "file"):
            return
        for name, text in _WRITERS_FINDINGS.items():
            said = line.said.get(name)
            if said:
                at = said if is_object(said) else {}
                self._found.problem(place, text.format(*(at.get(one) for one in ("from", "to", "line"))))

    def end(self, folder: str, anchored: Head | None) -> None:
        """What the end, and the beginning, say."""
        last = self._last.head if self._last is not None else START
        self._found.head = last
        if not self._met:
            self._found.problem(
                self._at, "no line has the hash that was given: lines were cut off, or all was written anew"
            )
        if not self._found.whole:
            self._leave_torn()
            self._found.note(self._at, "one file alone: what stands before and after it was not looked at")
            return
        self._beginning(folder)
        self._ending(folder, last, anchored)

    def _beginning(self, folder: str) -> None:
        gone, first = self._found.gone, self._found.first
        if first > gone.lines + 1:
            missing = f"{_lines(gone.lines + 1, first - 1)} missing, and not on record as removed"
            self._found.problem(Place(folder), missing)
        elif first == gone.lines + 1 and self._before != gone.head:
            self._found.problem(Place(folder), "the first line does not follow what is on record as removed")

    def _ending(self, folder: str, last: Head, anchored: Head | None) -> None:
        place, alive = self._at, is_held(folder)
        if anchored is None:
            self._found.problem(
                Place(os.path.join(folder, "head")), "the head is missing: whether lines were cut off cannot be told"
            )
        elif last.seq < anchored.seq:
            self._found.problem(place, f"{_lines(last.seq + 1, anchored.seq)} missing at the end")
        elif last.seq == anchored.seq and last != anchored:
            self._found.problem(place, f"line {last.seq} is not the one that the head names: it was written anew")
        elif last.seq > anchored.seq + 1 and not alive:
            self._found.problem(
                place,
                f"lines {anchored.seq + 1} to {last.seq} are not known to the head: added by another than the writer, or written shortly before the power failed",
            )
        if alive or (anchored is not None and last.seq >= anchored.seq):
            for torn in [one for one in self._torn if one.open]:
                self._found.note(torn.place, "torn: its writer was killed, or is writing it; the next start tells it")
                self._torn.remove(torn)
        self._leave_torn()

    def _leave_torn(self) -> None:
        for torn in self._torn:
            self._found.problem(torn.place, torn.why)


_WRITERS_FINDINGS: Final = {
    "lost": "when the log was opened, lines {0} to {1} were missing",
    "differs": "when the log was opened, line {2} was not the one that the head named",
    "unanchored": "when the log was opened, the head was missing",
    "ahead": "when the log was opened, lines {0} to {1} were not known to the head",
}


def _broken(last: Head, line: Line) -> str:
    if line.seq > last.seq + 1:
        return f"{_lines(last.seq + 1, line.seq - 1)} missing before it"
    if line.seq <= last.seq:
        return f"it stands after line {last.seq}: out of order, or put in"
    return f"it does not follow line {last.seq} as that is: one of them was written anew"


def _lines(first: int, last: int) -> str:
    return f"line {first} is" if first == last else f"lines {first} to {last} are"
