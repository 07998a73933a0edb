"""From a source to a program, made of files that belong together.

In: a source, a compiler. Out: `Found`. A policy is compiled from what was read, and counts only if, a moment later, all of it
lies there as it was: a file that is half written, or another folder's, makes it void, and it is read anew.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep, time
from typing import Final, NamedTuple

from zcpolicy.program import Program
from zcpolicy.reload.reading import Reading
from zcpolicy.reload.sources import Broken, Compile, PolicySource, Unreadable

SETTLE_SECONDS: Final = 0.25
"""How long files must lie still to count as written."""
PATIENCE_SECONDS: Final = 10.0
"""How long files that keep changing are read anew; then the source cannot be read."""
LONG_AGO_SECONDS: Final = 2.0
"""Files that were last touched longer ago are not waited for. Coarser than any file system's clock."""


class Found(NamedTuple):
    """What a source came to. `program`: or why there is none. `at`: on the monotonic clock, when all of it was seen to lie there."""

    program: Program | Broken | Unreadable
    reading: Reading
    at: float


class Settling(NamedTuple):
    """How long to wait for writers, and the clocks. `wait`: sleeps, or does not."""

    settle: float = SETTLE_SECONDS
    patience: float = PATIENCE_SECONDS
    wait: Callable[[float], object] = sleep
    ticks: Callable[[], float] = monotonic
    now: Callable[[], float] = time


def found_in(source: PolicySource, compiler: Compile, how: Settling) -> Found:
    """The program of a source as of now. Never raises for what a source or a compiler does; waits for writers."""
    end = how.ticks() + how.patience
    while True:
        reading = Reading()
        program = _compiled(source, compiler, reading)
        if not 0 < reading.newest_change() < how.now() - LONG_AGO_SECONDS:
            how.wait(how.settle)
        at = how.ticks()
        if reading.settled() and not _moved(source, reading):
            return Found(program, reading, at)
        if at >= end:
            return Found(
                Unreadable("the policy's files keep changing, or somebody holds them open to write"), reading, at
            )
        how.wait(how.settle)


def _compiled(source: PolicySource, compiler: Compile, reading: Reading) -> Program | Broken | Unreadable:
    """What the compiler makes of a source; where something could not be read, that is why there is none."""
    try:
        roots = source.roots()
        reading.roots = roots
        program: object = compiler(roots, reading.read)
        if type(program) is Program:
            return program
        broken = Broken("the compiler made no program")
    except Unreadable as error:
        return error
    except Broken as error:
        broken = error
    except Exception as fault:  # noqa: BLE001 - a fault of the compiler's leaves the old policy in force, and is told
        broken = Broken(f"the policy could not be compiled: {type(fault).__name__}")
    return Unreadable(broken.diagnostics) if reading.is_short else broken


def _moved(source: PolicySource, reading: Reading) -> bool:
    """Whether the roots are others by now."""
    try:
        return source.roots() != reading.roots
    except Unreadable:
        return reading.roots is not None
