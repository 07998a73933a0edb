"""Findings for a person at a terminal: what, where with the text underlined, why, what to write instead.

In: diagnostics. Out: text.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.render.colour import Piece, paint
from policy_lang.render.excerpt import Mark, excerpt
from policy_lang.render.visible import visible

MAX_FINDINGS: Final = 1_000
"""Findings that are drawn for a person; the other renderings have all of them."""
MAX_PREVIEW: Final = 10
"""Lines of a fix that are shown."""
MAX_WIDTH: Final = 200
"""Characters of each."""


def human(diagnostics: Iterable[Diagnostic], *, colour: bool = False) -> str:
    """Each finding as a block, a blank line between them; ends with a newline unless there is none."""
    found = list(diagnostics)
    blocks = [paint(_block(finding), colour=colour) for finding in found[:MAX_FINDINGS]]
    if len(found) > MAX_FINDINGS:
        blocks.append(f"… and {count(len(found) - MAX_FINDINGS, 'finding')} more\n")
    return "\n".join(blocks)


def _block(finding: Diagnostic) -> Iterator[Piece]:
    yield Piece(f"{finding.severity}[{finding.code.id}]", finding.severity)
    yield Piece(f": {visible(finding.message)}\n", "strong")
    marks = [Mark(finding.source, finding.span, "", primary=True)]
    marks += [Mark(label.source, label.span, label.text, primary=False) for label in finding.labels]
    for line in excerpt(marks):
        yield from line
        yield Piece("\n")
    gutter = " " * max(len(str(mark.line)) for mark in marks)
    for word, text in _notes(finding):
        first, *rest = visible(text, keep="\n").split("\n")
        yield Piece(f"{gutter} = ", "frame")
        yield Piece(f"{word}: ", "strong")
        yield Piece(f"{first}\n")
        yield from (Piece(f"{gutter}   {' ' * len(word)}  {line}\n") for line in rest)


def _notes(finding: Diagnostic) -> Iterator[tuple[str, str]]:
    if finding.help:
        yield "help", finding.help
    if finding.fix:
        yield from _preview(finding.fix)
    if finding.witness:
        yield "witness", finding.witness


def _preview(fix: Fix) -> Iterator[tuple[str, str]]:
    """What the fix writes: for each edit the lines that it touches, as they will stand."""
    lines: list[str] = []
    for edit in fix.edits:
        lines += _removal(edit) if not edit.text else _lines_after(edit)
    shown = [line.rstrip()[:MAX_WIDTH] for line in lines]
    indent = min((len(line) - len(line.lstrip()) for line in shown if line), default=0)
    cut = [line[indent:] for line in shown[:MAX_PREVIEW]] + ["…"] * (len(shown) > MAX_PREVIEW)
    yield "fix" if fix.safe else "possible fix", "\n".join(cut)


def _removal(edit: Edit) -> list[str]:
    start, end = edit.span
    first, *rest = edit.source.text[start : min(end, start + MAX_WIDTH)].strip().split("\n")
    return [f"remove `{first.rstrip()}{' …' if rest or end - start > MAX_WIDTH else ''}`"]


def _lines_after(edit: Edit) -> list[str]:
    start, end = edit.source.position(edit.span.start), edit.source.position(edit.span.end)
    first, last = edit.source.line_span(start.line), edit.source.line_span(end.line)
    head = edit.source.text[max(first.start, edit.span.start - MAX_WIDTH) : edit.span.start]
    tail = edit.source.text[edit.span.end : min(last.end, edit.span.end + MAX_WIDTH)]
    if edit.text.endswith("\n") and end.column == 1:
        tail = ""  # whole lines are put before this one, which stays as it is
    return [line.expandtabs(4) for line in f"{head}{edit.text}{tail}".strip("\n").split("\n")]


def summary(diagnostics: Iterable[Diagnostic], files: int, *, colour: bool = False) -> str:
    """The last line: `2 errors, 1 warning in 3 files`."""
    found = list(diagnostics)
    errors = sum(finding.severity == "error" for finding in found)
    warnings = len(found) - errors
    counts = [Piece(count(errors, "error"), "error" if errors else "plain")] if errors else []
    counts += [Piece(count(warnings, "warning"), "warning")] if warnings else []
    words = counts or [Piece("no findings", "good")]
    between = list(chain.from_iterable((Piece(", "), piece) for piece in words))[1:]
    return paint([*between, Piece(f" in {count(files, 'file')}\n")], colour=colour)


def count(number: int, word: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
