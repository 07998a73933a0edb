"""The first generation of a process: of the source, or where that has none, of what was kept.

In: what the source came to, what was kept. Out: a resolver, and what is known of the policy that is in force.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from zcpolicy.program import Program
from zcpolicy.reload.kept import Kept, LastGood
from zcpolicy.reload.outcomes import Failure, why_of
from zcpolicy.reload.reading import Reading, places_of
from zcpolicy.reload.settling import Found, Settling
from zcpolicy.reload.sources import ROOT, PolicySource, Unreadable
from zcpolicy.reload.staleness import Staleness
from zcpolicy.resolver import Resolver

Make = Callable[[Program, int, tuple[str, ...]], Resolver]
"""The host's resolver, from a program, the number of its generation, and the files of the policy, to be protected."""


class InForce(NamedTuple):
    """What the newest generation was made of. `print`: of the compiled policy with its origins. `kept`: False: the next reload has
    to make a generation of it, although it is the same.
    """

    print: str
    reading: Reading | None
    files: tuple[str, ...]
    since: float
    kept: bool


def begin(
    source: PolicySource,
    found: Found,
    store: LastGood,
    kept: Kept | None,
    make: Make,
    staleness: Staleness,
    how: Settling,
) -> tuple[Resolver, InForce, Failure | None]:
    """The first resolver: of the source, under the number of before if it is the policy of before; or of what was kept."""
    if isinstance(found.program, Program):
        files, print_ = files_of(source, found.reading, store), print_of(found.program)
        same = (
            kept is not None and kept.program is not None and print_of(kept.program) == print_ and kept.files == files
        )
        number, since = (kept.generation, kept.since) if kept is not None and same else (store.latest + 1, how.now())
        made = make(found.program, number, files)
        staleness.confirm(ticks=found.at)
        if same:
            store.confirm(staleness.heard)
        else:
            store.save(number, found.program, files, since, staleness.heard)
        return made, InForce(print_, found.reading, files, since, kept=True), None
    kind, why = why_of(found.program)
    if kept is None or kept.program is None:
        raise found.program if kept is None else Unreadable(f"{why}\nand {kept.why}")
    if kind == "broken":
        staleness.confirm(ticks=found.at)
    else:
        now = how.now()  # a file of the future is as strange as it is far from now
        staleness.confirm(now=now - abs(now - kept.heard))
    made = make(kept.program, kept.generation, kept.files)
    failure = Failure(kind, why, kept.generation, how.now())
    return made, InForce(print_of(kept.program), None, kept.files, kept.since, kept=True), failure


def print_of(program: Program) -> str:
    """What two policies have in common that are the same in every word that a decision can quote."""
    return sha256(program.dump()).hexdigest()


def files_of(source: PolicySource, reading: Reading, store: LastGood) -> tuple[str, ...]:
    """What no tool may write: the files, what leads to them, and the folder where the policy is one."""
    of_source = [place for path in source.paths for place in places_of(path)]
    return tuple(dict.fromkeys((*of_source, *reading.places(), *store.files)))


def watched(source: PolicySource, *readings: Reading | None) -> tuple[str, ...]:
    """Whose folders are watched: of what was read last, also where no policy came of it, and of what is in force."""
    inside = [os.path.join(path, ROOT) for path in source.paths] if source.is_folder else []
    read = [place for reading in readings if reading is not None for place in reading.places()]
    return tuple(dict.fromkeys((*inside, *source.paths, *read)))
