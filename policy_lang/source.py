"""Places in policy text.

In: the bytes of a file, or a string. Out: a `Source` (name and text), and `Span`s: half-open ranges of
characters in it. Lines and columns are counted from 1, in characters.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple


class Span(NamedTuple):
    """A half-open range of characters `[start, end)` in one source text."""

    start: int
    end: int


class Position(NamedTuple):
    """A line and a column, both from 1; columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Source:
    """One policy text and the name it is reported under (a path as the user wrote it, or `<text>`)."""

    name: str
    text: str
    _starts: list[int] = field(default_factory=list[int], init=False, repr=False, compare=False, hash=False)

    def at(self, span: Span) -> str:
        """The text of a place."""
        return self.text[span.start : span.end]

    def position(self, offset: int) -> Position:
        """The line and column of a character offset; offsets past the end are those of the end."""
        starts = self._line_starts()
        offset = min(max(offset, 0), len(self.text))
        row = bisect_right(starts, offset) - 1
        return Position(row + 1, offset - starts[row] + 1)

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its line break."""
        start, end = self.line_span(number)
        return self.text[start:end]

    def line_span(self, number: int) -> Span:
        """Where a line, counted from 1, stands, without its line break."""
        starts = self._line_starts()
        end = starts[number] if number < len(starts) else len(self.text)
        while end > starts[number - 1] and self.text[end - 1] in "\r\n":
            end -= 1
        return Span(starts[number - 1], end)

    def _line_starts(self) -> list[int]:
        if not self._starts:
            self._starts.append(0)
            at = self.text.find("\n")
            while at >= 0:
                self._starts.append(at + 1)
                at = self.text.find("\n", at + 1)
        return self._starts
