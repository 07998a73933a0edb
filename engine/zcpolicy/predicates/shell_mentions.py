"""What shell text mentions: the paths and URLs that its words may be.

In: shell text. Out: `Mentions`. Every word is taken for a path, whole and in the parts that programs cut out of it,
and once more from each directory that the text changes to before. A guard rail: what a program reads beside its
words is not seen here.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .refs import ANYWHERE, PathRef, UrlRef
from .shell_dress import see
from .shell_lexer import Command, Part, Word

MAX_DIRECTORIES: Final = 16
"""Directories that relative words are read from; a further one may be any."""
MAX_MENTIONS: Final = 8192
"""Paths and URLs of one text; with more the text is not readable."""
MAX_TAILS: Final = 16
"""Tails of one word that are read beside its pieces."""


class Mentions(NamedTuple):
    """What `paths` and `urls` see in a shell text; a text that is not readable may mention anything."""

    paths: tuple[PathRef, ...]
    urls: tuple[UrlRef, ...]
    readable: bool


_ANY_PATH: Final = PathRef((None,), ANYWHERE, False)
_ANY_URL: Final = UrlRef((None,))
_SCHEME: Final = re.compile(r"(?i:[a-z][a-z0-9+.-]*://|(?:https?|wss?|ftp|file):)")
_SCHEME_START: Final = re.compile(r"(?i:[a-z][a-z0-9+.-]*:?/?)?")
_CUT: Final = re.compile("[=:,]")

Parts = tuple[Part, ...]


def mentions_of(text: str) -> Mentions:
    """The paths and URLs of a text; unreadable text gives one path and one URL that may be any."""
    seen = see(text)
    paths: dict[PathRef, None] = {}
    urls: dict[UrlRef, None] = {}
    directories: dict[str | None, None] = {"": None}
    readable = seen.readable
    for command in seen.commands:
        for target in _own_directories(command.words):
            _change(directories, target)
        for word, is_name in _words(command):
            if not (is_name and word.text is not None and "/" not in word.text):
                _add(word, is_name, directories, paths)
                urls.update(dict.fromkeys(_urls(word)))
        if len(paths) + len(urls) > MAX_MENTIONS:
            readable = False
            break
        for target in _left_directories(command.words):
            _change(directories, target)
    if not readable:
        paths[_ANY_PATH] = None
        urls[_ANY_URL] = None
    return Mentions(tuple(paths), tuple(urls), readable)


_EASY: Final = re.compile(r"[A-Za-z0-9_./%+][A-Za-z0-9_./%+-]*")


def _add(word: Word, is_name: bool, directories: dict[str | None, None], paths: dict[PathRef, None]) -> None:
    """A word as a path, from every directory, with its parts."""
    if len(word.parts) == 1 and _EASY.fullmatch(word.head):  # no part to cut out: the common case
        for directory in ("",) if word.head[0] == "/" else directories:
            paths[PathRef(word.parts, directory, False)] = None
        return
    for parts, tilde in _pieces(word, is_name):
        paths.update(dict.fromkeys(_placed(parts, tilde, directories)))


def _words(command: Command) -> Iterator[tuple[Word, bool]]:
    """The words of a command, each with whether it is the command word."""
    for index, word in enumerate(command.words):
        yield word, index == 0
    for word in command.targets:
        yield word, False
    for _, word in command.assigns:
        yield word, False


def _pieces(word: Word, is_name: bool) -> Iterator[tuple[Parts, bool | None]]:
    """The word as a path, then the parts that programs cut out of it; each with how a leading `~` is meant."""
    parts, head = word.parts, word.head
    if is_name and not any("/" in part if isinstance(part, str) else part is None for part in parts):
        return
    is_option = head.startswith("-") and head != "-"
    if not is_option:
        yield parts, word.tilde
    elif not head.startswith("--") and (len(head) > 2 or len(parts) > 1):
        yield _known((head[2:], *parts[1:])), None
    if head.startswith("@"):
        yield _known((head[1:], *parts[1:])), None
    tails = 0
    for place, part in enumerate(parts):
        known = part if isinstance(part, str) else ""
        for cut in _CUT.finditer(known):
            following = _CUT.search(known, cut.end())
            if following and following.start() > cut.end():
                yield (known[cut.end() : following.start()],), None
            behind = parts[place + 1 :] if tails < MAX_TAILS else parts[place + 1 : place + 2] and (None,)
            if tails < MAX_TAILS or not following:
                tails += 1
                yield _known((known[cut.end() :], *behind)), None


def _known(parts: Parts) -> Parts:
    return parts[1:] if len(parts) > 1 and parts[0] == "" else parts


def _placed(parts: Parts, tilde: bool | None, directories: dict[str | None, None]) -> Iterator[PathRef]:
    """A path from every directory that may be current; an absolute one only once."""
    head = parts[0]
    if head == "" and len(parts) == 1:
        return
    if tilde is None and not (isinstance(head, str) and head.startswith("~")):
        tilde = False
    if isinstance(head, str) and (head.startswith("/") or tilde):
        yield PathRef(parts, "", tilde)
        return
    for directory in directories:
        yield PathRef(parts, directory, tilde)


def _urls(word: Word) -> Iterator[UrlRef]:
    """The word where it is a URL or may become one, and what follows a `=` or a leading `@` likewise."""
    head, rest = word.head, word.parts[1:]
    if not rest and ":" not in head and head:
        return
    candidates = [word.parts]
    if "=" in head:
        candidates.append(_known((head.partition("=")[2], *rest)))
    if head.startswith("@"):
        candidates.append(_known((head[1:], *rest)))
    for parts in candidates:
        first = parts[0]
        if not isinstance(first, str) or _SCHEME.match(first) or (len(parts) > 1 and _SCHEME_START.fullmatch(first)):
            yield UrlRef(tuple(part if isinstance(part, str) else None for part in parts))


def _left_directories(words: Sequence[Word]) -> Iterator[Word | None]:
    """The directory that a command changes to for those after it; `None`: one that is not known."""
    if not words or words[0].text not in {"cd", "pushd", "chdir"}:
        return
    operands = [word for word in words[1:] if not word.head.startswith("-") or word.text == "-"]
    yield from operands[:1]
    if len(operands) != 1:
        yield None


def _own_directories(words: Sequence[Word]) -> Iterator[Word | None]:
    """The directories that a command changes to itself before it reads its other words."""
    if not any(word.head.startswith(("-C", "--directory", "--chdir")) for word in words):
        return
    for word, following in zip(words[1:], (*words[2:], None), strict=False):
        if word.text in {"-C", "--directory", "--chdir"}:
            yield following
        elif word.head.startswith("-C"):
            yield Word(_known((word.head[2:], *word.parts[1:])), word.splits)
        elif word.head.startswith(("--directory=", "--chdir=")):
            yield Word(_known((word.head.partition("=")[2], *word.parts[1:])), word.splits)


def _change(directories: dict[str | None, None], target: Word | None) -> None:
    """Add the directory as seen from every directory that may be current."""
    text = None if target is None or target.tilde else target.text
    if text is None or text == "-" or text.startswith(("~", "+")):
        directories[ANYWHERE] = None
        return
    if not text:
        return
    for directory in tuple(directories):
        place = text if text.startswith("/") or not directory else f"{directory}/{text}"
        if directory is ANYWHERE or place in directories:
            continue
        if len(directories) > MAX_DIRECTORIES:
            directories[ANYWHERE] = None
            return
        directories[place] = None
