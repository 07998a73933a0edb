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
    drawn = cells(marks[0].source.line(number))
    whole = sum(cell.width for cell in drawn) <= MAX_COLUMNS
    shown: str | None = None
    for mark in marks:
        start, end = _columns(mark, number)
        text, before, under = _window(drawn, start, end, whole=whole)
        if text != shown:
            yield [Piece(f"{number:>{gutter}} |", "frame"), Piece(f" {text}" if text else "")]
            shown = text
        style = ("error" if mark.primary else "frame", "^" if mark.primary else "-")
        words = f" {visible(mark.text)}" if mark.text else ""
        yield [
            Piece(f"{' ' * gutter} | ", "frame"),
            Piece(f"{' ' * before}{style[1] * max(under, 1)}{words}", "error" if mark.primary else "frame"),
        ]


def _columns(mark: Mark, number: int) -> tuple[int, int]:
    """Where the mark begins and ends in its first line, in characters from 0."""
    start, end = mark.source.position(mark.span.start), mark.source.position(mark.span.end)
    last = end.column - 1 if end.line == number else len(mark.source.line(number))
    return start.column - 1, min(max(last, start.column - 1), start.column - 1 + MAX_MARKED)


def _window(drawn: list[Cell], start: int, end: int, *, whole: bool) -> tuple[str, int, int]:
    """The text to show, the columns before the mark, and the columns under it."""
    under = sum(cell.width for cell in drawn[start:end])
    if whole:
        return "".join(cell.text for cell in drawn), sum(cell.width for cell in drawn[:start]), under
    first, last = _reach(drawn, start, -1, _LEAD), _reach(drawn, start, 1, MAX_COLUMNS - _LEAD)
    head, tail = "…" if first > 0 else "", "…" if last < len(drawn) else ""
    before = len(head) + sum(cell.width for cell in drawn[first:start])
    under = sum(cell.width for cell in drawn[start : min(end, last)])
    return head + "".join(cell.text for cell in drawn[first:last]) + tail, before, under


def _reach(drawn: list[Cell], at: int, step: int, columns: int) -> int:
    """How far from `at` the cells fit into so many columns."""
    while columns > 0 and (at > 0 if step < 0 else at < len(drawn)):
        columns -= drawn[at - 1 if step < 0 else at].width
        at += step
    return at
