"""The index: who answers for which setting, and the test that shows it, which has to have run and passed just now.

In: a TOML file of rows, and how the tests of this run went. Out: what is wrong with the claim, line by line.

    [[row]]
    surface  = "tools"                       # the area of the setting
    setting  = "deny"
    owner    = "the maintainers of the seam"
    tracking = "docs/parity.md#tools"        # an https address, or a file beside the index or above it, where this is followed
    evidence = "tests/test_paths.py::test_every_path_agrees[deny]"
    diverges = "gateway"                     # optional: a known divergence; the test characterises it, and fails when it goes
"""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from tomllib import TOMLDecodeError, loads
from typing import Any, Final, Literal

from zcpolicy.exact import is_list, is_object

Outcome = Literal["passed", "failed", "skipped", "xfailed", "xpassed", "deselected"]

MAX_INDEX_BYTES: Final = 1_000_000
"""Bytes of an index file."""
NEEDED: Final = ("surface", "setting", "owner", "tracking", "evidence")


class IndexUnusable(ValueError):
    """A file that is no index. The message says why, lower case, no full stop."""


@dataclass(frozen=True, slots=True)
class Row:
    """One claim. `evidence`: the id of a test; `diverges`: the path that is known not to do as the others."""

    number: int
    surface: str
    setting: str
    owner: str
    tracking: str
    evidence: str
    diverges: str = ""

    def __str__(self) -> str:
        return f"row {self.number} ({self.surface}: {self.setting})"


def read_index(path: str) -> tuple[Row, ...]:
    """The rows of a file. Raises IndexUnusable, OSError."""
    with open(path, "rb") as file:
        data = file.read(MAX_INDEX_BYTES + 1)
    if len(data) > MAX_INDEX_BYTES:
        raise IndexUnusable(f"it has more than {MAX_INDEX_BYTES} bytes")
    try:
        found = loads(data.decode())
    except (UnicodeDecodeError, TOMLDecodeError) as error:
        raise IndexUnusable(f"it is no TOML: {error}") from None
    rows = found.get("row")
    if set(found) != {"row"} or not is_list(rows):
        raise IndexUnusable("it holds `[[row]]`s and nothing else")
    return tuple(_row(number, row) for number, row in enumerate(rows, 1))


def _row(number: int, row: Any) -> Row:
    said: dict[str, Any] = dict(row) if is_object(row) else {}
    for name in NEEDED:
        if not isinstance(said.get(name), str) or not said[name].strip():
            raise IndexUnusable(f"row {number} names no `{name}`")
    unknown = set(said) - {*NEEDED, "diverges"}
    if unknown:
        raise IndexUnusable(f"row {number} says `{min(unknown)}`, which means nothing")
    if not isinstance(said.get("diverges", ""), str):
        raise IndexUnusable(f"`diverges` of row {number} is the name of a path")
    return Row(number, **said)


def wrong(
    rows: Iterable[Row],
    outcomes: Mapping[str, Outcome],
    settings: Mapping[str, str],
    diverging: Collection[tuple[str, str]],
    folder: str,
) -> list[str]:
    """What does not hold, a line for each. `outcomes`: of every test of this run by its id. `settings`: those of the paths
    that this run knows, with their areas: each needs a row. `diverging`: (path, setting) of what is known to be otherwise:
    each needs a row of its own. `folder`: of the index file.
    """
    listed = list(rows)
    found = [f"{row}: {why}" for row in listed for why in _wrong(row, outcomes, settings, folder)]
    seen: dict[tuple[str, str, str], Row] = {}
    for row in listed:
        first = seen.setdefault((row.surface, row.setting, row.diverges), row)
        if first is not row:
            found.append(f"{row}: it says the same as row {first.number}")
    named = {(row.diverges, row.setting) for row in listed}
    found += [f"{area}: {name}: no row answers for it" for name, area in settings.items() if ("", name) not in named]
    found += [f"{path}: {name}: no row answers for this divergence" for path, name in sorted({*diverging} - named)]
    if settings:
        found += [
            f"{row}: `{row.diverges}` is not known to diverge there"
            for row in listed
            if row.diverges and (row.diverges, row.setting) not in diverging
        ]
    return found


def _wrong(row: Row, outcomes: Mapping[str, Outcome], settings: Mapping[str, str], folder: str) -> Iterable[str]:
    outcome = outcomes.get(row.evidence)
    if outcome is None:
        yield f"`{row.evidence}` is no test of this run: renamed, removed, or outside of what was run"
    elif outcome != "passed":
        yield f"`{row.evidence}` {_HAPPENED[outcome]}"
    if settings and row.setting not in settings:
        yield "there is no such setting"
    elif settings and settings[row.setting] != row.surface:
        yield f"this setting is of the surface `{settings[row.setting]}`"
    if not _can_be_followed(row.tracking, folder):
        yield f"`{row.tracking}` is neither an https address nor a file that is there"


_HAPPENED: Final[Mapping[Outcome, str]] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "was skipped",
    "xfailed": "failed, as it was marked to",
    "xpassed": "passed, though it was marked to fail",
    "deselected": "was deselected",
}


def _can_be_followed(tracking: str, folder: str) -> bool:
    """Whether there is something at the other end; of an address only its form can be told."""
    if tracking.startswith("https://"):
        return len(tracking) > len("https://") and not any(letter.isspace() for letter in tracking)
    file = tracking.partition("#")[0]
    here = os.path.abspath(folder)
    while file:
        if os.path.isfile(os.path.join(here, file)):
            return True
        if here == os.path.dirname(here):
            break
        here = os.path.dirname(here)
    return False
