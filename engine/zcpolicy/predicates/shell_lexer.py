"""The closed subset of shell text that every POSIX shell reads alike.

In: shell text. Out: a `Script` of simple commands, or `None` when one character of the text is outside the subset.
What this lexer accepts means the same to dash and bash: words of plain characters and of quoted text without
expansion, the joints `;` `&&` `||` `|` and newline, `>/dev/null`, duplication among the descriptors 0 to 2, and
here-documents that end at a line equal to their delimiter and hold nothing to expand.

INVARIANT: every character of an accepted text belongs to exactly one token; there is no "skip" and no default.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from .refs import WITHIN, Within

MAX_TEXT: Final = 64 * 1024
"""Characters of one shell text that are read at all; longer text is UNKNOWN for every test."""
MAX_COMMANDS: Final = 1024
"""Simple commands in one text; with more the text is UNKNOWN."""

RESERVED: Final = frozenset(
    "if then else elif fi do done case esac while until for in select function time coproc { } ! [[ ]] namespace".split()
)
"""Words that some shell reads as syntax where a command may start; a command of that name cannot be granted."""


Part = str | Within | None
"""Known text, or what an expansion puts there: `WITHIN` for a pattern of file names, `None` for anything."""


class Word(NamedTuple):
    """One shell word after quotes are removed: known text and holes, as in `PathRef`.

    `splits`: an unquoted expansion may make it any number of words, also none. `tilde`: begins with an unquoted `~`,
    which is kept in the text.
    """

    parts: tuple[Part, ...]
    splits: bool = False
    tilde: bool = False

    @property
    def text(self) -> str | None:
        """The whole word, or `None` when a part of it is unknown."""
        first = self.parts[0]
        return first if len(self.parts) == 1 and isinstance(first, str) else None

    @property
    def head(self) -> str:
        """The known text that the word is sure to begin with."""
        first = self.parts[0]
        return first if isinstance(first, str) else ""


class Command(NamedTuple):
    """One simple command. `stdin` is the text of its here-document or here-string, `None` when it reads anything else
    or the text is not known; `targets` are the words that it redirects from or to, `assigns` the values it assigns.
    """

    words: tuple[Word, ...]
    stdin: str | None = None
    targets: tuple[Word, ...] = ()
    assigns: tuple[tuple[str, Word], ...] = ()


Span = tuple[int, int, str]
"""A token that the shell parser must see too: its bytes in the UTF-8 text, and `name`, `word`, `redirect` or `end`."""


class Script(NamedTuple):
    """A text of the closed subset: its commands in order and the tokens that make it up."""

    commands: tuple[Command, ...]
    spans: tuple[Span, ...]


_NULL: Final = (Word(("/dev/null",)),)
_DELIMITED = r"(?=[ \t\n;|&]|\Z)"
_TOKEN = re.compile(
    r"[ \t]*+(?:"
    rf"(?P<null>[0-2]?>[ \t]*+/dev/null{_DELIMITED})"
    rf"|(?P<dup>[0-2]?[<>]&[0-2]{_DELIMITED})"
    rf"|(?P<here><<[ \t]*+(?:(?P<bare>[A-Za-z0-9_]{{1,64}}+)|'(?P<single>[A-Za-z0-9_]{{1,64}}+)'|\"(?P<double>[A-Za-z0-9_]{{1,64}}+)\"){_DELIMITED})"
    r"|(?P<joint>&&|\|\||[;|])"
    r"|(?P<line>\n)"
    # A word that touches `<` or `>` may be a descriptor for one shell and an argument for the other.
    r"""|(?P<word>(?:[A-Za-z0-9_./:,+@%^=*?-]++|'[^']*+'|"[^"$`\\]*+")++)(?=[ \t\n;|&]|\Z)"""
    r"|(?P<stop>\Z))"
)
_PIECE = re.compile(r"""(?P<plain>[^'"*?]++)|'(?P<single>[^']*+)'|"(?P<double>[^"]*+)"|(?P<glob>[*?]++)""")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_EXPANDS = re.compile(r"[$`\\]")


SHORT: Final = 2000
"""Characters of a text that counts as short: many of these are remembered, and few longer ones."""


def lex(text: str) -> Script | None:
    """The commands of a text that lies in the closed subset, else `None`; recent texts are remembered."""
    return (_lex_short if len(text) <= SHORT else _lex_long)(text)


@lru_cache(maxsize=128)
def _lex_short(text: str) -> Script | None:
    return _lex(text)


@lru_cache(maxsize=2)
def _lex_long(text: str) -> Script | None:
    return _lex(text)


def _lex(text: str) -> Script | None:
    if len(text) > MAX_TEXT or _CONTROL.search(text):
        return None
    # One character per byte: offsets are the parser's, and bytes above 127 are accepted inside quotes only.
    return _Lexer(text.encode().decode("latin-1")).run()


class _Lexer:
    """One pass over one text. `words` are those of the command that is being read."""

    __slots__ = ("commands", "may_end", "pending", "spans", "targets", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = []
        self.commands: list[list[Word]] = []
        self.pending: list[tuple[str, bool, int]] = []
        self.spans: list[Span] = []
        self.targets: dict[int, tuple[Word, ...]] = {}
        self.may_end = True  # nothing is owed: no `&&`, `||` or `|` waits for a command

    def run(self) -> Script | None:
        text, position, end = self.text, 0, len(self.text)
        bodies: dict[int, str] = {}
        while position < end:
            token = _TOKEN.match(text, position)
            if token is None:
                return None
            kind, position = token.lastgroup, token.end()
            if kind == "word":
                ok = self._word(token)
            elif kind == "stop":
                break
            elif kind == "joint":
                ok = self._joint(token.group("joint"))
            elif kind == "line":
                ok = self._line()
                if ok and self.pending:
                    after = self._bodies(position, bodies)
                    ok, position = after is not None, after or position
            else:
                ok = self._redirect(token)
            if not ok:
                return None
        self._close()
        if not self.may_end or self.pending or not 0 < len(self.commands) <= MAX_COMMANDS:
            return None
        return Script(
            tuple(
                Command(tuple(words), bodies.get(index), self.targets.get(index, ()))
                for index, words in enumerate(self.commands)
            ),
            tuple(sorted(self.spans)),
        )

    def _word(self, token: re.Match[str]) -> bool:
        raw = token.group("word")
        if self.pending and "\n" in raw:
            return False  # shells differ on where the here-document starts
        word = _word(raw)
        if word is None:
            return False
        first = not self.words
        if first and not _names_command(raw, word):
            return False
        self.words.append(word)
        self.spans.append((token.start("word"), token.end(), "name" if first else "word"))
        return True

    def _redirect(self, token: re.Match[str]) -> bool:
        if not self.words:
            return False
        if token.group("null") is not None:
            self.targets[len(self.commands)] = _NULL
        if token.group("here") is None:
            self.spans.append((token.start(token.lastgroup or 0), token.end(), "redirect"))
            return True
        bare = token.group("bare")
        delimiter: str = bare or token.group("single") or token.group("double")
        self.pending.append((delimiter, bare is not None, len(self.commands)))
        return True

    def _joint(self, joint: str) -> bool:
        if not self.words:
            return False
        self._close()
        self.may_end = joint == ";"
        return True

    def _line(self) -> bool:
        self._close()
        return True

    def _close(self) -> None:
        if self.words:
            self.commands.append(self.words)
            self.words, self.may_end = [], True

    def _bodies(self, position: int, bodies: dict[int, str]) -> int | None:
        """Read the here-documents that start at `position`: where the next line begins, `None` if one does not end."""
        for delimiter, expands, command in self.pending:
            end = _end_line(self.text, position, delimiter)
            if end is None:
                return None
            body = self.text[position:end]
            if expands and _EXPANDS.search(body):
                return None
            bodies[command] = body.encode("latin-1").decode()
            position = end + len(delimiter)
            self.spans.append((end, position, "end"))
            position = min(position + 1, len(self.text))
        self.pending = []
        return position


def _end_line(text: str, position: int, delimiter: str) -> int | None:
    """The start of the first line from `position` on that is exactly `delimiter`."""
    start = position
    while True:
        found = text.find(delimiter, start)
        if found < 0:
            return None
        after = found + len(delimiter)
        if (found == position or text[found - 1] == "\n") and (after == len(text) or text[after] == "\n"):
            return found
        start = found + 1


def _word(raw: str) -> Word | None:
    """A raw word without its quotes; `None` for a pattern character where it could make an option."""
    if "'" not in raw and '"' not in raw and "*" not in raw and "?" not in raw:
        return Word((raw,))
    known = ""
    parts: list[Part] = []
    for piece in _PIECE.finditer(raw):
        if piece.lastgroup == "glob":
            if not parts and (not known or known[0] == "-"):
                return None
            parts += [_decoded(known), WITHIN]
            known = ""
        else:
            known += piece.group(piece.lastgroup or 0)
    if not parts:
        return Word((_decoded(known),))
    return Word((*parts, _decoded(known)) if known else tuple(parts), splits=True)


def _decoded(text: str) -> str:
    return text if text.isascii() else text.encode("latin-1").decode()


def _names_command(raw: str, word: Word) -> bool:
    """Whether every shell takes the word for the name of a command: no assignment, keyword, pattern or job."""
    return word.text is not None and "=" not in raw and raw[0] not in "%-" and raw not in RESERVED
