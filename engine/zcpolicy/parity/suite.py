"""A host's paths as a test suite has them: driven once for all tests that ask, with what is known to be otherwise.

In: paths, a compiler, known divergences. Out: `Suite`, whose `Checked` cells are what tests assert.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from zcpolicy.parity.matrix import Cell, Matrix, Status, matrix
from zcpolicy.parity.probe import ParityPath
from zcpolicy.parity.settings import SETTINGS
from zcpolicy.parity.settings.setting import Compile, Setting


@dataclass(frozen=True, slots=True)
class Checked:
    """A cell, and what it is known to be."""

    cell: Cell
    known: Status

    def check(self) -> None:
        """Raises AssertionError, which names the path and the setting, where the cell is not what it is known to be: a
        setting that is not enforced, and as well a divergence that is gone.
        """
        cell = self.cell
        if cell.status == self.known:
            return
        where = f"setting `{cell.setting}` on path `{cell.path}`"
        if cell.status == "crashed":
            raise AssertionError(f"{where} crashed: {cell.note}\n{cell.crash}")
        if self.known != "enforced":
            raise AssertionError(
                f"{where} was known to be {self.known} and is {cell.status}: take it out of what diverges"
            )
        raise AssertionError(
            f"{where} is {cell.status} ({cell.note}): expected {dict(cell.expected)}, seen {dict(cell.seen)}"
        )


@dataclass(slots=True)
class Suite:
    """`diverging`: (path, setting) → what it is known to be, of those that are not enforced. `wanted`: names of settings
    that are driven together when the first is asked for; None: all.
    """

    paths: Sequence[ParityPath]
    compiled: Compile
    diverging: Mapping[tuple[str, str], Status] = field(default_factory=dict[tuple[str, str], Status])
    settings: Sequence[Setting] = SETTINGS
    wanted: Collection[str] | None = None
    _driven: dict[str, tuple[Cell, ...]] = field(default_factory=dict[str, tuple[Cell, ...]])

    def row(self, name: str) -> tuple[Checked, ...]:
        """One setting on every path. KeyError for one that there is not."""
        if name not in self._driven:
            self._drive(name)
        return tuple(self._checked(cell) for cell in self._driven[name])

    def cell(self, path: str, name: str) -> Checked:
        """One setting on one path. KeyError for what there is not."""
        for checked in self.row(name):
            if checked.cell.path == path:
                return checked
        raise KeyError(path)

    def matrix(self) -> Matrix:
        """Everything, from what was driven; what was not yet is driven now."""
        self.wanted = None
        cells = tuple(checked.cell for setting in self.settings for checked in self.row(setting.name))
        return Matrix(tuple(path.name for path in self.paths), tuple(self.settings), cells)

    def driven(self) -> dict[str, str]:
        """The settings that were driven, with their areas."""
        return {setting.name: setting.area for setting in self.settings if setting.name in self._driven}

    def _checked(self, cell: Cell) -> Checked:
        return Checked(cell, self.diverging.get((cell.path, cell.setting), "enforced"))

    def _drive(self, name: str) -> None:
        """Drives one setting, and with it all that are wanted: side by side they take as long as the slowest."""
        missing = [
            setting
            for setting in self.settings
            if setting.name not in self._driven
            and (setting.name == name or self.wanted is None or setting.name in self.wanted)
        ]
        made = asyncio.run(matrix(self.paths, self.compiled, missing))
        for setting in missing:
            self._driven[setting.name] = made.row(setting.name)
