"""Tests of plain text: `like`, `matches`, `contains`.

In: patterns at build time, a value of any kind at call time. Out: a `Truth`, or one of its two halves.

A text has several readings: with and without its invisible characters; `*`, `?` and `.` stopping at line breaks and
crossing them; letter case kept and ignored. TRUE if all of them match, FALSE if none does, else UNKNOWN.
A `must_…` says whether that is TRUE, a `may_…` whether it is not FALSE.

INVARIANT: a text of printable ASCII has no invisible character and no line break, so that only letter case is left.
"""

from __future__ import annotations

from zcpolicy.predicates.letters import visible
from zcpolicy.predicates.scalar import equal
from zcpolicy.predicates.wildcard import matcher, split

TYPE_CHECKING = False  # `typing` costs more than the tests of most policies
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, TypeGuard

    from zcpolicy.predicates.refs import Truth
    from zcpolicy.predicates.wildcard import Characters, Match


__all__ = [
    "MAX_PATTERN_CHARACTERS",
    "MAX_TEXT_CHARACTERS",
    "check_like",
    "check_matches",
    "contains",
    "like",
    "matches",
    "may_like",
    "may_match",
    "must_like",
    "must_match",
]

MAX_TEXT_CHARACTERS: Final = 4_000_000
"""Characters of a text with other than printable ASCII that is read at all; a longer one is UNKNOWN."""
MAX_PATTERN_CHARACTERS: Final = 10_000
"""Characters of one pattern."""


def _of_halves(must: Callable[[object], bool], may: Callable[[object], bool]) -> Callable[[object], Truth]:
    def test(value: object) -> Truth:
        return True if must(value) else None if may(value) else False

    return test


# --- like ------------------------------------------------------------------------------------------------------------


def check_like(text: str) -> str | None:
    """Why a `like` pattern is unusable, or `None`."""
    if len(text) > MAX_PATTERN_CHARACTERS:
        return f"the pattern is longer than {MAX_PATTERN_CHARACTERS:_} characters"
    rest = iter(text)
    for char in rest:
        if char == "\\":
            escaped = next(rest, None)
            if escaped is None:
                return "the pattern ends in a `\\` that escapes nothing"
            if escaped not in "*?\\":
                return f"`\\{escaped}` is no escape: `\\` stands only before `*`, `?` and `\\`"
    return None


def _quick(patterns: tuple[str, ...]) -> Match:
    """The patterns over printable ASCII with letter case kept. Exact there, whatever the form."""
    exact: set[str] = set()
    prefixes: list[str] = []
    suffixes: list[str] = []
    others: list[Match] = []
    for pattern in patterns:
        chunks = split(pattern, escapes=True)
        known = ["".join(c for c in chunk if c is not None) for chunk in chunks]
        if any(None in chunk for chunk in chunks) or len(chunks) > 2:
            others.append(matcher(chunks))
        elif len(chunks) == 1:
            exact.add(known[0])
        elif not known[1]:
            prefixes.append(known[0])
        elif not known[0]:
            suffixes.append(known[1])
        else:
            others.append(matcher(chunks))
    forms: list[Match] = []
    if exact:
        forms.append(frozenset(exact).__contains__)
    if prefixes:
        forms.append(_starts(tuple(prefixes)))
    if suffixes:
        forms.append(_ends(tuple(suffixes)))
    forms += others
    return forms[0] if len(forms) == 1 else _any(tuple(forms))


def _any(forms: tuple[Match, ...]) -> Match:
    def match(text: str) -> bool:
        for form in forms:  # noqa: SIM110 -- a generator costs more than all the forms
            if form(text):
                return True
        return False

    return match


def _starts(prefixes: tuple[str, ...]) -> Match:
    only = prefixes[0] if len(prefixes) == 1 else prefixes
    return lambda text: text.startswith(only)


def _ends(suffixes: tuple[str, ...]) -> Match:
    only = suffixes[0] if len(suffixes) == 1 else suffixes
    return lambda text: text.endswith(only)


def _without_invisible(chunks: tuple[Characters, ...]) -> tuple[Characters, ...]:
    """The chunks for text that has lost its invisible characters; one that is nothing else stays, and matches nothing."""

    def stripped(chunk: Characters) -> Characters:
        left = tuple(c for c in chunk if c is None or visible(c))
        return left or chunk

    return tuple(stripped(chunk) for chunk in chunks)


def _folded(chunks: tuple[Characters, ...]) -> tuple[Characters, ...]:
    def folded(chunk: Characters) -> Characters:
        return tuple(f for c in chunk for f in ((None,) if c is None else c.casefold()))

    return tuple(folded(chunk) for chunk in chunks)


class _Readings:
    """The same patterns for any text, built when such a text first comes."""

    __slots__ = ("_loose", "_patterns", "_strict", "_strict_visible")

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._patterns = patterns
        self._strict: list[Match] = []

    def _build(self) -> None:
        written = [split(pattern, escapes=True) for pattern in self._patterns]
        seen = [_without_invisible(chunks) for chunks in written]
        self._strict_visible = [matcher(chunks, stops=True) for chunks in seen]
        self._loose = [
            (matcher(a), matcher(_folded(a)), matcher(b), matcher(_folded(b)))
            for a, b in zip(written, seen, strict=True)
        ]
        self._strict = [matcher(chunks, stops=True) for chunks in written]

    def all_match(self, text: str) -> bool:
        if len(text) > MAX_TEXT_CHARACTERS:
            return False
        if not self._strict:
            self._build()
        if not any(match(text) for match in self._strict):
            return False
        seen = visible(text)
        return any(match(seen) for match in self._strict_visible)

    def one_matches(self, text: str) -> bool:
        if len(text) > MAX_TEXT_CHARACTERS:
            return True
        if not self._strict:
            self._build()
        seen = visible(text)
        folded, seen_folded = text.casefold(), seen.casefold()
        return any(a(text) or b(folded) or c(seen) or d(seen_folded) for a, b, c, d in self._loose)


def must_like(patterns: tuple[str, ...]) -> Callable[[object], bool]:
    """Whether every reading matches one of the patterns; `False` for what is no string."""
    quick, readings = _quick(patterns), _Readings(patterns)

    def must(value: object) -> bool:
        if not isinstance(value, str):
            return False
        if value.isascii() and value.isprintable():
            return quick(value)
        return readings.all_match(value)

    return must


def may_like(patterns: tuple[str, ...]) -> Callable[[object], bool]:
    """Whether some reading matches one of the patterns; `True` for what is no string."""
    quick = _quick(tuple(pattern.casefold() for pattern in patterns))
    readings = _Readings(patterns)

    def may(value: object) -> bool:
        if not isinstance(value, str):
            return True
        if value.isascii() and value.isprintable():
            return quick(value.lower())
        return readings.one_matches(value)

    return may


def like(patterns: tuple[str, ...]) -> Callable[[object], Truth]:
    r"""A whole string against patterns: `*` any run, `?` one character, `\` escapes; any of them will do."""
    return _of_halves(must_like(patterns), may_like(patterns))


# --- matches ---------------------------------------------------------------------------------------------------------


def check_matches(text: str) -> str | None:
    """Why a regular expression is unusable, or `None`: see `regex`."""
    from zcpolicy.predicates import regex

    return regex.check_matches(text)


def matches(patterns: tuple[str, ...]) -> Callable[[object], Truth]:
    """A whole string against regular expressions: see `regex`."""
    from zcpolicy.predicates import regex

    return regex.matches(patterns)


def must_match(patterns: tuple[str, ...]) -> Callable[[object], bool]:
    """Whether `matches` is TRUE."""
    from zcpolicy.predicates import regex

    return regex.must_match(patterns)


def may_match(patterns: tuple[str, ...]) -> Callable[[object], bool]:
    """Whether `matches` is not FALSE."""
    from zcpolicy.predicates import regex

    return regex.may_match(patterns)


# --- contains --------------------------------------------------------------------------------------------------------


class _Piece:
    """One string that is looked for, under each reading."""

    __slots__ = ("folded", "seen", "seen_folded", "written")

    def __init__(self, written: str) -> None:
        self.written = written
        self.folded = written.casefold()
        # what is nothing but invisible characters is not to be found where there are none
        self.seen = visible(written) or written
        self.seen_folded = self.seen.casefold()


def _inside(pieces: tuple[_Piece, ...], text: str) -> Truth:
    if len(text) > MAX_TEXT_CHARACTERS:
        return None
    seen = text if text.isascii() and text.isprintable() else visible(text)
    if any(piece.written in text for piece in pieces) and any(piece.seen in seen for piece in pieces):
        return True
    folded, seen_folded = text.casefold(), seen.casefold()
    may = any(piece.folded in folded or piece.seen_folded in seen_folded for piece in pieces)
    return None if may else False


def _same_text(piece: _Piece, text: str) -> Truth:
    seen = visible(text)
    if piece.written == text and piece.seen == seen:
        return True
    return None if piece.folded == text.casefold() or piece.seen_folded == seen.casefold() else False


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def contains(items: tuple[object, ...]) -> Callable[[object], Truth]:
    """A string that contains one of the items, or a list that has one of them as an element."""
    pieces = tuple(_Piece(item) for item in items if isinstance(item, str))
    others = tuple(item for item in items if not isinstance(item, str))

    def element(value: object) -> Truth:
        answers: list[Truth] = [equal(value, item) for item in others]
        answers += [_same_text(piece, value) if isinstance(value, str) else None for piece in pieces]
        return True if True in answers else None if None in answers else False

    def test(value: object) -> Truth:
        if isinstance(value, str):
            inside = _inside(pieces, value) if pieces else None
            return None if inside is False and others else inside
        if not _is_list(value):
            return None
        unknown = False
        for item in value:
            found = element(item)
            if found:
                return True
            unknown = unknown or found is None
        return None if unknown else False

    return test
