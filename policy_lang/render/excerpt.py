"""The part of a source text that a finding is about, with its places underlined.

In: marks (a place, what to say of it, whether it is the primary one). Out: lines of styled pieces. Long lines are
clipped around the mark; of a place over several lines the first is underlined.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from policy_lang.render.colour import Piece
from policy_lang.render.visible import Cell, cells, visible
from policy_lang.source import Source, Span

MAX_COLUMNS: Final = 120
"""Columns of source text in an excerpt; a longer line is clipped."""
MAX_MARKED: Final = 80
"""Characters that are underlined at most."""
_LEAD: Final = 30
"""Columns kept before the mark in a clipped line."""
_NEAR: Final = 240
"""Characters before a mark that are looked at."""


class Mark(NamedTuple):
    """A place in a text and what to say of it."""

    source: Source
    span: Span
    text: str
    primary: bool

    @property
    def line(self) -> int:
        """The line that it begins on, from 1."""
        return self.source.position(self.span.start).line


Line = list[Piece]


def excerpt(marks: Sequence[Mark]) -> Iterator[Line]:
    """The primary mark's text first, then the other texts; in each the lines in order."""
    gutter = max(len(str(mark.line)) for mark in marks)
    sources = list(dict.fromkeys(mark.source.name for mark in marks))
    for number, name in enumerate(sources):
        here = sorted((mark for mark in marks if mark.source.name == name), key=lambda mark: (mark.line, mark.span))
        first = next((mark for mark in here if mark.primary), here[0])
        place = first.source.position(first.span.start)
        arrow = "-->" if number == 0 else ":::"
        yield [
            Piece(f"{' ' * gutter}{arrow} ", "frame"),
            Piece(f"{visible(first.source.name)}:{place.line}:{place.column}"),
        ]
        if any(mark.source.text for mark in here):
            yield from _lines(here, gutter)


def _lines(marks: Sequence[Mark], gutter: int) -> Iterator[Line]:
    empty = [Piece(f"{' ' * gutter} |", "frame")]
    yield empty
    before = 0
    for line, group in groupby(marks, key=lambda mark: mark.line):
        if before and line > before + 1:
            yield [Piece("...", "frame")]
        yield from _line(line, list(group), gutter)
        before = line
    yield empty


def _line(number: int, marks: Sequence[Mark], gutter: int) -> Iterator[Line]:
    """A line of the text and under it a line per mark; where it is clipped, it is shown for each mark."""
    shown: str | None = None
    for mark in marks:
        text, before, under = _window(mark, number)
        if text != shown:
            yield [Piece(f"{number:>{gutter}} |", "frame"), Piece(f" {text}" if text else "")]
            shown = text
        style = ("error" if mark.primary else "frame", "^" if mark.primary else "-")
        words = f" {visible(mark.text)}" if mark.text else ""
        yield [
            Piece(f"{' ' * gutter} | ", "frame"),
            Piece(f"{' ' * before}{style[1] * max(under, 1)}{words}", "error" if mark.primary else "frame"),
        ]


def _window(mark: Mark, number: int) -> tuple[str, int, int]:
    """The text to show, the columns before the mark, and the columns under it.

    Only what lies near the mark is looked at: thousands of findings may stand on one line of megabytes.
    """
    line = mark.source.line_span(number)
    first = max(line.start, mark.span.start - _NEAR)
    last = min(line.end, mark.span.start + MAX_COLUMNS + MAX_MARKED)
    drawn = cells(mark.source.text[first:last])
    start = min(mark.span.start, last) - first
    end = max(start, min(mark.span.end, last, mark.span.start + MAX_MARKED) - first)
    if (first, last) == line and _width(drawn) <= MAX_COLUMNS:
        return "".join(cell.text for cell in drawn), _width(drawn[:start]), _width(drawn[start:end])
    low, high = _reach(drawn, start, -1, _LEAD), _reach(drawn, start, 1, MAX_COLUMNS - _LEAD)
    head, tail = "…" if first + low > line.start else "", "…" if first + high < line.end else ""
    text = head + "".join(cell.text for cell in drawn[low:high]) + tail
    return text, len(head) + _width(drawn[low:start]), _width(drawn[start : min(end, high)])


def _width(drawn: Sequence[Cell]) -> int:
    return sum(cell.width for cell in drawn)


def _reach(drawn: Sequence[Cell], at: int, step: int, columns: int) -> int:
    """How far from `at` the cells fit into so many columns."""
    while columns > 0 and (at > 0 if step < 0 else at < len(drawn)):
        columns -= drawn[at - 1 if step < 0 else at].width
        at += step
    return at
