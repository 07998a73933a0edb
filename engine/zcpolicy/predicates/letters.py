"""What different programs take for the same text: letter case, composed letters, characters that nobody sees.

In: text. Out: the text as one of them reads it.
"""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False  # `typing` and `re` cost more than the tests of most policies
if TYPE_CHECKING:
    import re
    from typing import Final

LINE_BREAKS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""What `str.splitlines` takes for the end of a line."""

_INVISIBLE: Final = (
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)
"""Format characters, what Unicode says to ignore by default, and controls that are neither a blank nor a line break."""


def visible(text: str) -> str:
    """The text without its invisible characters."""
    return _regex(_INVISIBLE).sub("", text)


def broken(text: str, start: int, end: int) -> bool:
    """Whether there is a line break between two places of a text."""
    return _regex(f"[{LINE_BREAKS}]").search(text, start, end) is not None


@cache
def _regex(source: str) -> re.Pattern[str]:
    import re

    return re.compile(source)


def fold(text: str) -> str:
    """The text with letter case folded and composed (NFC): what file systems without letter case compare."""
    if text.isascii():
        return text.lower()
    import unicodedata

    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
