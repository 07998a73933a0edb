"""Applying the fixes that diagnostics carry.

In: diagnostics. Out: the edited texts by file, and files rewritten whole or not at all.
"""

import os
import tempfile
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from policy_lang.diagnostics import Diagnostic, Fix


@dataclass(frozen=True, slots=True)
class Fixed:
    """A text with fixes applied: `before` is what it was, `count` how many fixes."""

    name: str
    before: str
    after: str
    count: int


def fixed_texts(diagnostics: Iterable[Diagnostic]) -> tuple[Fixed, ...]:
    """The texts that safe fixes change, by name. A fix is taken whole, and only if it touches no fix taken before it."""
    taken: dict[str, _Edits] = {}
    for finding in diagnostics:
        if finding.fix is not None and finding.fix.safe:
            _take(finding.fix, taken)
    return tuple(
        Fixed(name, edits.text, edits.applied(), edits.fixes) for name, edits in sorted(taken.items()) if edits.fixes
    )


def _take(fix: Fix, taken: dict[str, "_Edits"]) -> None:
    """Add the fix's edits, all of them or none; an edit that is already there is one edit."""
    files = {edit.source.name: taken.setdefault(edit.source.name, _Edits(edit.source.text)) for edit in fix.edits}
    added: list[tuple[_Edits, Place]] = []
    for edit in fix.edits:
        place = (edit.span.start, edit.span.end, edit.text)
        answer = files[edit.source.name].add(place)
        if answer == "clash":
            for edits, one in added:
                edits.places.remove(one)
            return
        if answer == "added":
            added.append((files[edit.source.name], place))
    for edits in files.values():
        edits.fixes += 1


Place = tuple[int, int, str]


class _Edits:
    """The edits of one text: sorted, none touching another, so only neighbours need comparing."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: list[Place] = []
        self.fixes = 0

    def add(self, place: Place) -> Literal["added", "there", "clash"]:
        at = bisect_left(self.places, place)
        neighbours = self.places[max(at - 1, 0) : at + 1]
        if place in neighbours:
            return "there"
        if any(_overlap(place, other) for other in neighbours):
            return "clash"
        self.places.insert(at, place)
        return "added"

    def applied(self) -> str:
        parts: list[str] = []
        at = 0
        for start, end, text in self.places:
            parts += [self.text[at:start], text]
            at = end
        return "".join([*parts, self.text[at:]])


def _overlap(one: Place, other: Place) -> bool:
    """Two that begin at one place clash as well: nothing says which comes first."""
    return one[0] == other[0] or (one[0] < other[1] and other[0] < one[1])


def rewrite(path: Path, before: str, after: str) -> None:
    """Replace the file's text in one step, keeping its mode; a link's target is rewritten, not the link.

    Raises:
        OSError: it cannot be written, or no longer holds `before`.
    """
    target = path.resolve()
    if target.read_bytes() != before.encode():
        raise OSError(f"`{path}` has changed meanwhile")
    replace_bytes(target, after.encode())


def replace_bytes(target: Path, data: bytes) -> None:
    """Write the bytes beside the target and move them over it: readers see the old file or the new one.

    Raises:
        OSError: the folder or the file cannot be written.
    """
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
