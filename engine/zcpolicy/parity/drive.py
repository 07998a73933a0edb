"""One path driven with one setting, and what became of it.

In: a `Path`, a `Setting`, a compiler. Out: an `Observation`: what was seen, or why nothing was.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from zcpolicy.parity.probe import Path
from zcpolicy.parity.settings.setting import Compile, Setting
from zcpolicy.parity.world import DONE

Json = Any

MAX_DRIVE_SECONDS: Final = 30.0
"""Seconds for which one drive of one path may run; one that runs longer has failed."""


@dataclass(frozen=True, slots=True)
class Observation:
    """`summary`: of `Seen`. `failure`: why the path did not come to its end, `""` if it did. `ended`: what the host has on
    record of a turn that was stopped or failed; it is told, and not compared.
    """

    summary: Mapping[str, Json]
    failure: str = ""
    ended: str = ""

    def differs(self, other: "Observation") -> list[str]:
        """The parts that are not those of another observation."""
        ours, theirs = {"failure": self.failure, **self.summary}, {"failure": other.failure, **other.summary}
        return [part for part in ours if ours[part] != theirs.get(part)]


async def observe(path: Path, setting: Setting, compiled: Compile, *, dropped: bool = False) -> Observation:
    """What is seen when a path is driven with a setting; `dropped`: with the same, but without the setting."""
    probe = setting.probe(compiled, dropped=dropped)
    failure = ""
    try:
        async with asyncio.timeout(MAX_DRIVE_SECONDS):
            told = await path.drive(probe)
        probe.seen.told.extend(told)
    except TimeoutError:
        failure = f"it was not at its end after {MAX_DRIVE_SECONDS:.0f} seconds"
    except Exception as error:  # noqa: BLE001 - a path is the host's code: whatever it raises is what was seen
        failure = f"{type(error).__name__}: {error}"[:300]
    return Observation(probe.seen.summary(DONE), failure, probe.seen.ending())
