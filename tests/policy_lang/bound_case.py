"""What the names and kinds stages say of a policy: for tests that read like a table.

In: policy text, other files by name. Out: `(code, underlined text, message, help)` of each finding.
"""

from pathlib import Path
from typing import NamedTuple

from policy_lang.bound import Bound
from policy_lang.diagnostics import Diagnostic, in_order
from policy_lang.gather import Root, gather
from policy_lang.kinds.check import check_kinds
from policy_lang.names.bind import bind
from policy_lang.source import Source


class Said(NamedTuple):
    """One finding as a reader sees it."""

    code: str
    underlined: str
    message: str
    help: str


def bound_of(
    folder: Path, files: dict[str, str], layers: tuple[str, ...] = ("main.zcpolicy",)
) -> tuple[Bound, tuple[Diagnostic, ...]]:
    """Write the files into a folder, then bind the layers, highest first."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    roots = [Root(Source(name, files[name]), folder, folder / name) for name in layers]
    gathered, found = gather(roots)
    bound, names = bind(gathered)
    return bound, in_order((*found, *names, *check_kinds(bound)))


def said(folder: Path, files: dict[str, str], layers: tuple[str, ...] = ("main.zcpolicy",)) -> list[Said]:
    """What the stages say, in order."""
    return [
        Said(d.code.id, d.source.text[d.span.start : d.span.end], d.message, d.help or "")
        for d in bound_of(folder, files, layers)[1]
    ]
