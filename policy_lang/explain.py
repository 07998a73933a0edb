"""The page of a diagnostic: what to avoid, what to prefer, why.

In: a code. Out: the text of its page, from the project's `docs/codes` or from where the wheel put it.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from policy_lang.codes import ALL, Code

_INSTALLED = Path(__file__).parent / "codes_pages"
_CHECKED_OUT = Path(__file__).parent.parent / "docs" / "codes"


@dataclass(frozen=True, slots=True)
class Page:
    """What there is to say about a code; `text` is Markdown."""

    code: Code
    text: str


def explain(code: str) -> Page | None:
    """The page of `ZC2101`, however its letters are written; None for a code that does not exist."""
    known = ALL.get(normal(code))
    if known is None:
        return None
    path = pages() / f"{known.id}.md"
    if path.is_file():
        return Page(known, path.read_text(encoding="utf-8"))
    return Page(known, f"# {known.id}: {known.title}\n")


def pages() -> Path:
    """The folder of the pages."""
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKED_OUT


def nearest(code: str) -> str | None:
    """The code that was perhaps meant."""
    near = get_close_matches(normal(code), ALL, n=1)
    return near[0] if near else None


def normal(code: str) -> str:
    """`zc2101` and `2101` as `ZC2101`."""
    word = code.strip().upper()
    return f"ZC{word}" if word.isascii() and word.isdecimal() else word
