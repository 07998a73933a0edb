"""The matrix: which path enforces which setting, from nothing but what ran.

In: paths, settings, a compiler. Out: `Matrix`, whose cells hold what was seen.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from zcpolicy.parity.direct import ALONE
from zcpolicy.parity.drive import Observation, observe
from zcpolicy.parity.probe import ParityPath
from zcpolicy.parity.settings import SETTINGS
from zcpolicy.parity.settings.setting import Compile, Setting

Json = Any
Status = Literal["enforced", "partly", "not applied", "crashed"]

AT_ONCE: Final = 32
"""Drives at a time. Some wait for a second or two, and more of them would make each other late."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting on one path. `seen`, `expected`: the parts that show the setting. `note`: what is otherwise than it
    should be: `""` where it is enforced.

    `enforced`: what shows the setting is there, and everything else is as with the seam alone. `not applied`: it is as
    without the setting. `partly`: neither. `crashed`: the path raised, or returned no list of texts; `crash`: where.
    """

    path: str
    setting: str
    area: str
    status: Status
    expected: Mapping[str, Json]
    seen: Mapping[str, Json]
    note: str = ""
    crash: str = ""

    @property
    def id(self) -> str:
        """Of this drive: what ran is found under it."""
        return f"{self.path}-{self.setting}"


@dataclass(frozen=True, slots=True)
class Matrix:
    """`cells`: setting by setting, in the order of the paths."""

    paths: tuple[str, ...]
    settings: tuple[Setting, ...]
    cells: tuple[Cell, ...]

    @property
    def enforced(self) -> bool:
        """Whether every path enforces every setting."""
        return all(cell.status == "enforced" for cell in self.cells)

    def row(self, setting: str) -> tuple[Cell, ...]:
        """The cells of one setting."""
        return tuple(cell for cell in self.cells if cell.setting == setting)

    def count(self, status: Status) -> int:
        """How many cells have a status."""
        return sum(cell.status == status for cell in self.cells)


async def matrix(paths: Sequence[ParityPath], compiled: Compile, settings: Sequence[Setting] = SETTINGS) -> Matrix:
    """Drives every path with every setting."""
    slots = asyncio.Semaphore(AT_ONCE)
    rows = await asyncio.gather(*(row(setting, paths, compiled, slots) for setting in settings))
    return Matrix(tuple(path.name for path in paths), tuple(settings), tuple(cell for cells in rows for cell in cells))


async def row(setting: Setting, paths: Sequence[ParityPath], compiled: Compile, slots: asyncio.Semaphore) -> list[Cell]:
    """Drives every path with one setting, and the seam alone, which they are compared with. `slots`: for drives."""

    async def seen_on(path: ParityPath) -> Observation:
        async with slots:
            return await observe(path, setting, compiled)

    ours = [alone(path, setting) for path in paths]
    seams = [path for path in ALONE if path in ours]
    seen = await asyncio.gather(*map(seen_on, (*paths, *seams)))
    by_seam = dict(zip([path.name for path in seams], seen[len(paths) :], strict=True))
    return [judged(setting, path, one, by_seam[our.name]) for path, one, our in zip(paths, seen, ours, strict=False)]


def alone(path: ParityPath, setting: Setting) -> ParityPath:
    """The seam alone that a path is compared with. Whether a session lasts is seen from its second turn on."""
    session = "one" if len(setting.turns) == 1 or setting.lasts(path) else "each"
    return next(one for one in ALONE if one.attended == path.attended and one.session == session)


def judged(setting: Setting, path: ParityPath, seen: Observation, alone: Observation) -> Cell:
    """What an observation says of a setting. `alone`: the same of the seam with nothing around it."""
    expected = setting.expected(path)
    parts = {part: seen.summary[part] for part in expected}
    bare = {part: seen.summary[part] for part in setting.otherwise}
    status: Status = "partly"
    note = ""
    if seen.failure:
        status, note = "crashed" if seen.crash else "partly", seen.failure
    elif parts == expected:
        differs = seen.differs(alone)
        status = "partly" if differs else "enforced"
        note = f"otherwise than the seam alone: {', '.join(differs)}" if differs else ""
    else:
        status = "not applied" if bare == setting.otherwise else "partly"
        note = "as without it" if status == "not applied" else "neither as with it nor as without it"
        if parts == setting.apart:
            note = "as if each turn had a session of its own"
        note += f"; the turn {seen.ended}" if seen.ended else ""
    return Cell(path.name, setting.name, setting.area, status, expected, parts, note, seen.crash)
