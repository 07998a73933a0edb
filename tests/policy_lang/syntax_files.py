"""Chunked files: one case a chunk, its name, its text, what is expected of it behind `> `."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import NamedTuple, cast

from policy_lang.diagnostics import Diagnostic
from policy_lang.source import Span

FOLDER = Path(__file__).parent / "syntax"


class Chunk(NamedTuple):
    name: str
    text: str
    expected: str


def chunks(file: str) -> list[Chunk]:
    """The chunks of a file in `tests/policy_lang/syntax`."""
    found: list[Chunk] = []
    for part in (FOLDER / file).read_text("utf-8").split("---\n"):
        title, _, rest = part.partition("\n")
        lines = rest.split("\n")
        first = next((number for number, line in enumerate(lines) if line.startswith(">")), len(lines))
        found.append(Chunk(title.removeprefix("## "), "\n".join(lines[:first]), "\n".join(lines[first:]).strip("\n")))
    return found


def finding(found: Diagnostic) -> str:
    """A finding as the files write it: place, code, message, then its help and what its fix puts there."""
    place = found.source.position(found.span.start)
    text = found.source.text[found.span.start : found.span.end]
    lines = [f"> {place.line}:{place.column} {found.code.id} {found.message}", f">   at {text!r}"]
    lines += [f">   help: {found.help}"] if found.help else []
    lines += (
        [f">   fix: {edit.text!r}{'' if found.fix.safe else ' (not safe)'}" for edit in found.fix.edits]
        if found.fix
        else []
    )
    return "\n".join(lines)


def shape(node: object) -> str:
    """A tree in one line: types and values, without places."""
    if isinstance(node, tuple):
        return "[" + ", ".join(map(shape, cast("tuple[object, ...]", node))) + "]"
    if not is_dataclass(node):
        return repr(node)
    inner = [
        f"{field.name}={shape(value)}"
        for field in fields(node)
        if not isinstance(value := getattr(node, field.name), Span)
        and not (value is None or value is False or value == ())
    ]
    return f"{type(node).__name__}({', '.join(inner)})"
