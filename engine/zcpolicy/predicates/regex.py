"""Regular expressions over untrusted text: RE2, which never backtracks.

In: patterns at build time, a value of any kind at call time. Out: a `Truth`. RE2 is loaded when first needed.
The readings are those of `text`: TRUE if every one matches the whole text, FALSE if none does, else UNKNOWN.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Final, Protocol, TypeVar, cast

from zcpolicy.predicates.letters import LINE_BREAKS, visible
from zcpolicy.predicates.refs import Truth

MAX_REGEX_CHARACTERS: Final = 10_000
"""Characters of one regular expression."""
MAX_TEXT_CHARACTERS: Final = 4_000_000
"""Characters of a text that is matched at all; a longer one is UNKNOWN."""

_ODD_BREAK: Final = re.compile(f"[{LINE_BREAKS.replace(chr(10), '')}]")


class _Regex(Protocol):
    def fullmatch(self, text: bytes, /) -> object | None: ...


class _Options(Protocol):
    log_errors: bool
    case_sensitive: bool
    dot_nl: bool


class _Re2(Protocol):
    """The part of RE2's Python module that is used here; it has no types of its own."""

    error: type[Exception]

    def Options(self) -> _Options: ...  # noqa: N802 -- RE2's own name
    def compile(self, pattern: bytes, options: _Options) -> _Regex: ...


@cache
def _re2() -> _Re2:
    return cast("_Re2", import_module("re2"))


@cache
def _options(case: bool, crosses: bool) -> _Options:
    options = _re2().Options()
    options.log_errors = False
    options.case_sensitive = case
    options.dot_nl = crosses
    return options


def check_matches(text: str) -> str | None:
    """Why a regular expression is unusable (RE2's own words, lower case), or `None`."""
    if len(text) > MAX_REGEX_CHARACTERS:
        return f"the pattern is longer than {MAX_REGEX_CHARACTERS:_} characters"
    try:
        source = text.encode()
    except UnicodeEncodeError:
        return "the pattern holds half a character"
    try:
        for case, crosses in ((True, False), (False, False), (True, True), (False, True)):
            _re2().compile(source, _options(case, crosses))
    except _re2().error as error:
        reason = error.args[0] if error.args else "not a regular expression"
        return (reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)).lower()
    return None


class _Readings:
    """The patterns under each reading, compiled when a text first needs them."""

    __slots__ = ("_compiled", "_sources")

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._sources = patterns
        self._compiled: dict[tuple[bool, bool], tuple[_Regex, ...]] = {}

    def match(self, text: bytes, case: bool, crosses: bool = False) -> bool:
        """Whether one of the patterns matches under one reading."""
        regexes = self._compiled.get((case, crosses))
        if regexes is None:
            options = _options(case, crosses)
            regexes = tuple(_re2().compile(source.encode(), options) for source in self._sources)
            self._compiled[case, crosses] = regexes
        for regex in regexes:  # noqa: SIM110 -- a generator costs as much as a match
            if regex.fullmatch(text) is not None:
                return True
        return False

    def each(self, text: str) -> Iterator[bool]:
        """What each reading says; readings that cannot differ are asked once."""
        for reading in _texts(text):
            source = reading.encode()
            yield self.match(source, True)
            yield self.match(source, False)
            if b"\n" in source:
                yield self.match(source, True, True)
                yield self.match(source, False, True)

    def all_match(self, text: str) -> bool:
        """Whether every reading matches."""
        if _plain(text):
            source = text.encode()
            return self.match(source, True) and self.match(source, False)
        return all(self.each(text))

    def one_matches(self, text: str) -> bool:
        """Whether some reading matches."""
        if _plain(text):
            source = text.encode()
            return self.match(source, True) or self.match(source, False)
        return any(self.each(text))

    def truth(self, text: str) -> Truth:
        """Whether every reading matches, or none."""
        if _plain(text):
            source = text.encode()
            kept = self.match(source, True)
            return kept if kept is self.match(source, False) else None
        answers = set(self.each(text))
        return answers.pop() if len(answers) == 1 else None


def _plain(text: str) -> bool:
    """Whether only letter case is left to differ over."""
    return text.isascii() and text.isprintable()


def _texts(text: str) -> tuple[str, ...]:
    """The text with and without invisible characters; RE2's `.` stops at newlines only, which stand for other breaks."""
    texts = dict.fromkeys((text, visible(text)))
    return tuple(dict.fromkeys((*texts, *(_ODD_BREAK.sub("\n", t) for t in texts))))


_Answer = TypeVar("_Answer", bound=Truth)


def _guarded(ask: Callable[[str], _Answer], unknown: _Answer) -> Callable[[object], _Answer]:
    def guarded(value: object) -> _Answer:
        if not isinstance(value, str) or len(value) > MAX_TEXT_CHARACTERS:
            return unknown
        try:
            return ask(value)
        except (UnicodeEncodeError, _re2().error):
            return unknown

    return guarded


def matches(patterns: tuple[str, ...]) -> Callable[[object], Truth]:
    """A whole string against regular expressions; any of them will do."""
    return _guarded(_Readings(patterns).truth, None)


def must_match(patterns: tuple[str, ...]) -> Callable[[object], bool]:
    """Whether `matches` is TRUE."""
    return _guarded(_Readings(patterns).all_match, unknown=False)


def may_match(patterns: tuple[str, ...]) -> Callable[[object], bool]:
    """Whether `matches` is not FALSE."""
    return _guarded(_Readings(patterns).one_matches, unknown=True)
