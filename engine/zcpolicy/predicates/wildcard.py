"""Patterns with `*` and `?` over one text, compiled once and matched in linear time.

In: a pattern as written. Out: its chunks, and a closure over one text.
A pattern is its chunks with a `*` between each two; a chunk has a fixed length, so the leftmost place of each is always
good enough and nothing is ever tried twice.
"""

from __future__ import annotations

from zcpolicy.predicates.letters import LINE_BREAKS, broken

TYPE_CHECKING = False  # `typing` and `re` cost more than the tests of most policies
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    Characters = tuple[str | None, ...]
    """A chunk: characters as they are, and `None` for `?`."""

    Match = Callable[[str], bool]


def split(pattern: str, *, escapes: bool) -> tuple[Characters, ...]:
    r"""The chunks of a pattern: between and around its `*`, at least one. With `escapes`, `\` takes the next literally."""
    chunks: list[Characters] = []
    chunk: list[str | None] = []
    rest = iter(pattern)
    for char in rest:
        if char == "*":
            chunks.append(tuple(chunk))
            chunk = []
        elif char == "?":
            chunk.append(None)
        elif char == "\\" and escapes:
            chunk.append(next(rest, "\\"))
        else:
            chunk.append(char)
    return (*chunks, tuple(chunk))


class Chunk:
    """One chunk, ready to be looked for; `regex` only where it has a `?`."""

    __slots__ = ("length", "regex", "text")

    def __init__(self, length: int, text: str, regex: re.Pattern[str] | None) -> None:
        self.length = length
        self.text = text
        self.regex = regex

    def at(self, text: str, start: int) -> bool:
        """Whether the chunk stands in `text` at `start`."""
        if self.regex is None:
            return text.startswith(self.text, start)
        return self.regex.match(text, start) is not None

    def find(self, text: str, start: int, end: int) -> int:
        """The leftmost place of the chunk between `start` and `end`, or -1."""
        if self.regex is None:
            return text.find(self.text, start, end)
        found = self.regex.search(text, start, end)
        return -1 if found is None else found.start()


def _chunk(characters: Characters, stops: bool) -> Chunk:
    if None not in characters:
        return Chunk(len(characters), "".join(c or "" for c in characters), None)
    import re

    one = f"[^{LINE_BREAKS}]" if stops else "."
    # a chunk has no repetition in it: this regex cannot backtrack
    source = "".join(one if c is None else re.escape(c) for c in characters)
    return Chunk(len(characters), "", re.compile(source, re.DOTALL))


def matcher(chunks: tuple[Characters, ...], *, stops: bool = False) -> Match:
    """Whether a whole text matches. With `stops`, `*` and `?` do not cross a line break."""
    first, *others = (_chunk(c, stops) for c in chunks)
    if not others:
        return lambda text: len(text) == first.length and first.at(text, 0)
    *middle, last = others
    middle = [chunk for chunk in middle if chunk.length]

    def matches(text: str) -> bool:
        place, end = first.length, len(text) - last.length
        if end < place or not first.at(text, 0) or not last.at(text, end):
            return False
        for chunk in middle:
            found = chunk.find(text, place, end)
            # the leftmost place is right also when `*` stops: what it jumps over is what every other place would too
            if found < 0 or (stops and broken(text, place, found)):
                return False
            place = found + chunk.length
        return not (stops and broken(text, place, end))

    return matches
