"""Styled text → text, with or without colour.

In: pieces of text with the name of a style. Out: a string; escape sequences only where colour is asked for.
"""

import os
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TextIO

StyleName = Literal["plain", "error", "warning", "good", "frame", "strong", "faint"]

_STYLES: Final[dict[StyleName, str]] = {
    "error": "bold red",
    "warning": "bold yellow",
    "good": "bold green",
    "frame": "bold blue",
    "strong": "bold",
    "faint": "dim",
}


class Piece(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: StyleName = "plain"


def wants_colour(stream: TextIO) -> bool:
    """Whether colour helps there: a terminal, no `NO_COLOR`, a `TERM` that is not dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(pieces: Iterable[Piece], *, colour: bool) -> str:
    """The text of the pieces, in a row."""
    if not colour:
        return "".join(piece.text for piece in pieces)
    from rich.color import ColorSystem
    from rich.style import Style

    painted: list[str] = []
    for text, style in pieces:
        name = _STYLES.get(style)
        painted.append(text if name is None else Style.parse(name).render(text, color_system=ColorSystem.STANDARD))
    return "".join(painted)
