"""One path driven with one setting, and what became of it.

In: a `ParityPath`, a `Setting`, a compiler. Out: an `Observation`: what was seen, or why nothing was.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from traceback import format_exception
from typing import Any, Final

from zcpolicy.parity.probe import ParityPath
from zcpolicy.parity.settings.setting import Compile, Setting
from zcpolicy.parity.world import DONE

Json = Any

MAX_DRIVE_SECONDS: Final = 30.0
"""Seconds for which one drive of one path may run; one that runs longer has failed."""
MAX_TRACEBACK_CHARACTERS: Final = 20_000
"""Characters that are kept of the traceback of a path that crashed, from its end."""


@dataclass(frozen=True, slots=True)
class Observation:
    """`summary`: of `Seen`. `failure`: why the path did not come to its end, `""` if it did. `ended`: what the host has on
    record of a turn that was stopped or failed; it is told, and not compared. `crash`: of a path that is broken, rather than
    late: where it broke, as text.
    """

    summary: Mapping[str, Json]
    failure: str = ""
    ended: str = ""
    crash: str = ""

    def differs(self, other: "Observation") -> list[str]:
        """The parts that are not those of another observation. What is on record has a setting of its own, `record`."""
        ours, theirs = {"failure": self.failure, **self.summary}, {"failure": other.failure, **other.summary}
        return [part for part in ours if part != "recorded" and ours[part] != theirs.get(part)]


async def observe(path: ParityPath, setting: Setting, compiled: Compile, *, dropped: bool = False) -> Observation:
    """What is seen when a path is driven with a setting; `dropped`: with the same, but without the setting."""
    probe = setting.probe(compiled, dropped=dropped)
    failure = crash = ""
    try:
        async with asyncio.timeout(MAX_DRIVE_SECONDS):
            told = await path.drive(probe)
        probe.seen.told.extend(_texts(told))
    except TimeoutError:
        failure = f"it was not at its end after {MAX_DRIVE_SECONDS:.0f} seconds"
    except Exception as error:  # noqa: BLE001 - a path is the host's code: whatever it raises is what was seen
        failure = f"{type(error).__name__}: {error}"[:300]
        crash = "".join(format_exception(error))[-MAX_TRACEBACK_CHARACTERS:]
    return Observation(probe.seen.summary(DONE), failure, probe.seen.ending(), crash)


def _texts(told: object) -> Sequence[str]:
    """Raises TypeError for what no caller can have been told."""
    texts: list[Any] = [*told] if isinstance(told, (list, tuple)) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a path returns the texts that its caller was told, as a list")
    return texts
