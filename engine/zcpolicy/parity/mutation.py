"""Whether the harness would notice: takes one setting away from a path, as if the path had forgotten it.

In: paths, settings, a compiler. Out: the cells that still look enforced, of which there must be none.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from zcpolicy.parity.matrix import AT_ONCE, Cell, row
from zcpolicy.parity.probe import ParityPath, Probe
from zcpolicy.parity.settings import SETTINGS
from zcpolicy.parity.settings.setting import Compile, Setting


def forgetful(path: ParityPath, setting: Setting, compiled: Compile) -> ParityPath:
    """The path as it would be if this one setting did not reach it, and everything else did."""

    async def drive(probe: Probe) -> Sequence[str]:
        bare = setting.probe(compiled, dropped=True)
        probe.seen = bare.seen
        return await path.drive(bare)

    return replace(path, drive=drive)


async def unnoticed(
    paths: Sequence[ParityPath], compiled: Compile, settings: Sequence[Setting] = SETTINGS
) -> list[Cell]:
    """Every path without every setting, one at a time for each cell: a cell is judged by its own drive and by that of
    the seam alone, so that one run tells it of all paths. Returns the cells that are enforced all the same.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def without(setting: Setting) -> list[Cell]:
        return await row(setting, [forgetful(path, setting, compiled) for path in paths], compiled, slots)

    rows = await asyncio.gather(*map(without, settings))
    return [cell for cells in rows for cell in cells if cell.status == "enforced"]
