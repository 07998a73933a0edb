"""Line continuations: a backslash before a line break, removed where every shell removes it.

In: shell text. Out: the text without them, or `None` when the text mixes them with constructs that this scanner
does not follow. It knows quotes, comments and parentheses, no more.
"""

import re
from typing import Final

_PLAIN = re.compile(r"[^\\'\"#()$`\n \t;&|<>]++")
_UNFOLLOWED: Final = re.compile(r"<<|`|\$'|\$\"|\bcase\b|\besac\b")
_BEFORE_COMMENT: Final = " \t\n;&|()<>"


def joined(text: str) -> str | None:
    """The text with its line continuations removed."""
    if "\\\n" not in text:
        return text
    if _UNFOLLOWED.search(text):
        return None
    kept: list[str] = []
    nest = ["("]  # "(": as outside of quotes, '"': inside double quotes
    position = 0
    while position < len(text):
        letter = text[position]
        step = 1
        if letter == "\\":
            step = 2
            kept.append("" if text[position + 1 : position + 2] == "\n" else text[position : position + 2])
        elif letter == "'" and nest[-1] == "(":
            end = text.find("'", position + 1)
            if end < 0:
                return None
            step = end + 1 - position
            kept.append(text[position : end + 1])
        elif letter == "#" and nest[-1] == "(" and (not kept or _last(kept) in _BEFORE_COMMENT):
            end = text.find("\n", position)
            step = (len(text) if end < 0 else end) - position
            kept.append(text[position : position + step])
        else:
            if not _nested(nest, letter, text, position):
                return None
            kept.append(letter)
        position += step
    return "".join(kept) if nest == ["("] else None


def _last(kept: list[str]) -> str:
    """The last character that was kept; a continuation keeps nothing."""
    return next((piece[-1] for piece in reversed(kept) if piece), "\n")


def _nested(nest: list[str], letter: str, text: str, position: int) -> bool:
    """Follow a quote or a parenthesis; False when it does not fit."""
    if letter == '"':
        if nest[-1] == '"':
            nest.pop()
        else:
            nest.append('"')
    elif letter == "(" and (nest[-1] == "(" or text[position - 1 : position] == "$"):
        nest.append("(")
    elif letter == ")" and nest[-1] == "(":
        nest.pop()
        return bool(nest)
    return True
