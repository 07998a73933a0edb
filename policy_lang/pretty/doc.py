"""Text with places where it may break, and how it is laid out in so many columns.

In: `Doc`s. Out: lines. A group stands on one line if it fits, else breaks at all of its lines; a filling group breaks
only where the next piece does not fit. Comments always break. Linear in the text; no recursion.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

WIDTH: Final = 100
INDENT: Final = 4


@dataclass(frozen=True, slots=True)
class Line:
    """A place to break; `flat` stands there otherwise. With `blank` a broken line leaves one empty."""

    flat: str = " "
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    """Text that stands only in a group that is broken."""

    text: str


@dataclass(frozen=True, slots=True)
class Behind:
    """Text at a line's end that takes no room: a comment behind a statement breaks nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A comment. `alone`: on a line of its own; `blank`: an empty line follows it."""

    text: str
    alone: bool
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Notes:
    """Comments in place of a line: it breaks there. `last`: no line begins behind them."""

    notes: tuple[Note, ...]
    last: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Parts that stand on one line or break. `fill`: break only where needed; `forced`: whatever the width."""

    parts: tuple["Doc", ...]
    indent: int = 0
    fill: bool = False
    forced: bool = field(default=False)


@dataclass(frozen=True, slots=True)
class Nest:
    """Parts that are indented, and break where the group around them does."""

    parts: tuple["Doc", ...]
    indent: int = INDENT


Doc = str | Line | Broken | Behind | Notes | Group | Nest


def group(parts: Iterable[Doc], *, indent: int = 0, fill: bool = False, forced: bool = False) -> Group:
    """A group, forced to break where a part is (a filling one is never)."""
    kept = tuple(parts)
    return Group(kept, indent, fill, forced or any(map(has_to_break, kept)))


def has_to_break(doc: Doc) -> bool:
    """Whether a doc cannot stand on one line, whatever the width."""
    if isinstance(doc, Nest):
        return any(map(has_to_break, doc.parts))
    return isinstance(doc, Notes) or (isinstance(doc, Group) and doc.forced)


def flat(doc: Doc) -> str | None:
    """The text of a doc on one line; None where it has to break."""
    pieces: list[str] = []
    stack = [doc]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            pieces.append(one)
        elif isinstance(one, Line):
            pieces.append(one.flat)
        elif isinstance(one, Group):
            if one.forced:
                return None
            stack.extend(reversed(one.parts))
        elif isinstance(one, Nest):
            stack.extend(reversed(one.parts))
        elif isinstance(one, Notes):
            return None
    return "".join(pieces)


@dataclass(frozen=True, slots=True)
class _Rest:
    """What of a filling group is to be written, from a line on."""

    parts: tuple[Doc, ...]
    at: int


_Entry = tuple[int, bool, Doc | _Rest]
"""Indentation, whether the group is broken, the doc."""


class _Writer:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.column = 0
        self.stack: list[_Entry] = []

    def write(self, text: str) -> None:
        self.pieces.append(text)
        self.column += len(text)

    def newline(self, indent: int, *, blank: bool = False) -> None:
        self.pieces.append("\n\n" if blank else "\n")
        self.pieces.append(" " * indent)
        self.column = indent

    def notes(self, all_: Notes, indent: int) -> None:
        for note in all_.notes:
            if note.alone:
                self.newline(indent)
            else:
                self.write("  ")
            self.write(note.text)
            if note.blank:
                self.pieces.append("\n")
        if not all_.last:
            self.newline(indent)

    def fits(self, first: Doc) -> bool:
        """Whether a doc, unbroken, and what follows it up to the next break, stand on the rest of the line."""
        room = WIDTH - self.column
        ahead: list[tuple[bool, Doc | _Rest]] = [(False, first)]
        rest = len(self.stack)
        while room >= 0:
            if not ahead:
                if not rest:
                    return True
                rest -= 1
                _, broken, doc = self.stack[rest]
            else:
                broken, doc = ahead.pop()
            if isinstance(doc, str):
                room -= len(doc)
            elif isinstance(doc, Group):
                # No more parts than the line has room for are looked at.
                ahead.extend((False, part) for part in reversed(doc.parts[: 2 * WIDTH]))
            elif isinstance(doc, Nest):
                ahead.extend((broken, part) for part in reversed(doc.parts))
            elif isinstance(doc, Notes | Behind | _Rest) or (isinstance(doc, Line) and broken):
                return True
            elif isinstance(doc, Line):
                room -= len(doc.flat)
        return False


def lay_out(doc: Doc, indent: int = 0) -> str:
    """The text of a doc that begins at a column; without the indentation of its first line."""
    writer = _Writer()
    writer.column = indent
    stack = writer.stack
    stack.append((indent, True, doc))
    while stack:
        level, broken, one = stack.pop()
        if isinstance(one, str):
            writer.write(one)
        elif isinstance(one, Line):
            if broken:
                writer.newline(level, blank=one.blank)
            else:
                writer.write(one.flat)
        elif isinstance(one, Broken | Behind):
            writer.write(one.text if broken or isinstance(one, Behind) else "")
        elif isinstance(one, Notes):
            writer.notes(one, level)
        elif isinstance(one, Nest):
            stack.extend((level + one.indent, broken, part) for part in reversed(one.parts))
        elif isinstance(one, _Rest):
            _go_on(writer, level, one)
        elif one.fill:
            stack.extend([(level + one.indent, False, _Rest(one.parts, 1)), (level + one.indent, False, one.parts[0])])
        else:
            breaks = one.forced or not writer.fits(one)
            stack.extend((level + one.indent, breaks, part) for part in reversed(one.parts))
    return "\n".join(line.rstrip() for line in "".join(writer.pieces).split("\n"))


def _go_on(writer: _Writer, level: int, rest: _Rest) -> None:
    """Break a filling group here if the next piece does not fit, and go on with it."""
    if rest.at + 1 >= len(rest.parts):
        return
    line, piece = rest.parts[rest.at], rest.parts[rest.at + 1]
    writer.stack.append((level, False, _Rest(rest.parts, rest.at + 2)))
    if isinstance(line, Notes):
        writer.notes(line, level)
    elif isinstance(line, Line) and writer.fits(group([line.flat, piece])):
        writer.write(line.flat)
    else:
        writer.newline(level)
    writer.stack.append((level, False, piece))
