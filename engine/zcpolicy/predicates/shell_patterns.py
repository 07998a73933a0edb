"""Command patterns: `"git log ..."`.

In: the text of a pattern. Out: its items, or why it cannot be used.
`...` stands for any number of words, `*` for any run of characters within a word. Quotes make both plain text.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from .shell_lexer import RESERVED

MAX_PATTERN: Final = 2000
"""Characters of one pattern."""
MAX_PATTERN_WORDS: Final = 64
"""Words of one pattern."""

UNGRANTABLE: Final = frozenset(
    "alias unalias set shopt enable hash export readonly declare typeset local read mapfile readarray getopts unset let "
    "bind complete compgen compopt fc history setvar".split()
)
"""Builtins that change how the shell reads or finds what follows, or that evaluate their words as code."""


class Item(NamedTuple):
    """One word of a pattern: the known text between its stars; `dots` is the word `...`."""

    pieces: tuple[str, ...]
    dots: bool = False

    @property
    def text(self) -> str | None:
        """The word, when it has no star."""
        return self.pieces[0] if len(self.pieces) == 1 and not self.dots else None


DOTS: Final = Item(("",), dots=True)

_WORD = re.compile(r"""(?:[^\s'"]++|'[^']*+'|"[^"]*+")++""")
_PIECE = re.compile(r"""'(?P<single>[^']*+)'|"(?P<double>[^"]*+)"|(?P<star>\*++)|(?P<plain>[^'"*]++)""")
_SYNTAX = re.compile(r"[;|&<>()$`\\]")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")


@lru_cache(maxsize=4096)
def parse_pattern(pattern: str) -> tuple[Item, ...] | str:
    """The items of a pattern, or the message why it is none."""
    if len(pattern) > MAX_PATTERN:
        return f"a command pattern has at most {MAX_PATTERN} characters"
    if _CONTROL.search(pattern):
        return "a command pattern holds no line breaks or control characters"
    items: list[Item] = []
    position = 0
    while position < len(pattern):
        if pattern[position].isspace():
            position += 1
            continue
        word = _WORD.match(pattern, position)
        if word is None or (word.end() < len(pattern) and not pattern[word.end()].isspace()):
            return "a quote in the command pattern is not closed"
        item = _item(word.group())
        if isinstance(item, str):
            return item
        items.append(item)
        position = word.end()
    if not items:
        return "the command pattern is empty"
    if len(items) > MAX_PATTERN_WORDS:
        return f"a command pattern has at most {MAX_PATTERN_WORDS} words"
    return tuple(items)


def _item(raw: str) -> Item | str:
    if raw == "...":
        return DOTS
    pieces = [""]
    for piece in _PIECE.finditer(raw):
        if piece.lastgroup == "star":
            pieces.append("")
            continue
        text = piece.group(piece.lastgroup or 0)
        syntax = _SYNTAX.search(text) if piece.lastgroup == "plain" else None
        if syntax:
            return f"`{syntax.group()}` is shell syntax: a command pattern is one command, in quotes it is text"
        pieces[-1] += text
    return Item(tuple(pieces))


def why_unusable(pattern: str, granting: bool) -> str | None:
    """Why a pattern cannot be used, in the words of a diagnostic, or `None`."""
    items = parse_pattern(pattern)
    if isinstance(items, str):
        return items
    first = items[0]
    if not granting:
        return "the command pattern has an empty command" if first.text == "" else None
    if first.text is None:
        return "the first word of a command pattern that grants is written out, without `*` or `...`"
    return _why_ungrantable(first.text)


def _why_ungrantable(name: str) -> str | None:
    if name in RESERVED:
        return f"`{name}` is a keyword of the shell and no command"
    if name in UNGRANTABLE:
        return f"`{name}` changes how the shell reads what follows and cannot be granted"
    if not name or "=" in name or name[0] in "-%":
        return f"`{name}` is not the name of a command"
    return None


def star_matches(pieces: Sequence[str], text: str) -> bool:
    """Whether `text` is the pieces in order with any run between them."""
    if len(pieces) == 1:
        return pieces[0] == text
    first, last = pieces[0], pieces[-1]
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in pieces[1:-1]:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True
