"""Text of users, made safe to print: what cannot be seen is spelled out.

In: any string. Out: text without control, bidirectional and invisible characters, and the columns that it fills.
"""

import unicodedata
from typing import Final, NamedTuple

TAB: Final = 4
"""Columns between tab stops in excerpts."""

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x00": "\\0", "\x1b": "\\e"}
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class Cell(NamedTuple):
    """What stands for one character, and how many columns it fills."""

    text: str
    width: int


def visible(text: str, *, keep: str = "") -> str:
    """The text with every unseen character but those in `keep` spelled out by its number."""
    if text.isprintable():
        return text
    return "".join(character if character in keep else _spelled(character) for character in text)


def cells(line: str) -> list[Cell]:
    """One cell per character of a line: tabs go to the next stop, wide characters fill two columns, marks none."""
    made: list[Cell] = []
    column = 0
    for character in line:
        if character == "\t":
            width = TAB - column % TAB
            cell = Cell(" " * width, width)
        elif character.isascii() and character.isprintable():
            cell = Cell(character, 1)
        else:
            cell = _cell(character)
        made.append(cell)
        column += cell.width
    return made


def _cell(character: str) -> Cell:
    text = _spelled(character)
    if text != character:
        return Cell(text, len(text))
    if unicodedata.category(character) in {"Mn", "Me"}:
        return Cell(character, 0)
    return Cell(character, 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1)


def _spelled(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if unicodedata.category(character) in _UNSEEN or (character.isspace() and character != " "):
        return f"\\u{{{ord(character):x}}}"
    return character
