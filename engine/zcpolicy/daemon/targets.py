"""How what a daemon has beside its policy follows a new generation.

In: a host, the check of its settings against a program. Out: the targets that `Generations` tells of every generation. Decisions
need none: the resolver follows by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zcpolicy.daemon.host import Host
from zcpolicy.program import Program
from zcpolicy.reload.targets import AppliedLive, Event, Outcome, QueuedForReload, Rejected, Target


@dataclass(frozen=True, slots=True)
class Following:
    """One target. `answer`: how it follows the program that is in force."""

    name: str
    host: Host
    answer: Callable[[Program], Outcome]

    async def take(self, event: Event) -> Outcome:
        """Follows, unless a newer generation is in force by now, which it is told of next."""
        newest = self.host.resolver.newest
        if newest.generation != event.generation:
            return Rejected(f"generation {newest.generation} is in force")
        return self.answer(newest.program)


def targets_of(host: Host, amiss: Callable[[Program], Sequence[str]]) -> tuple[Target, ...]:
    """`amiss`: what is wrong with the settings under a program; the settings are read once, so that they cannot follow."""

    def turns(_program: Program) -> Outcome:
        under_way = host.doors.turns
        if not under_way:
            return AppliedLive()
        return QueuedForReload(
            f"turns under way: {under_way}; what was taken away is refused at their next call, what was added comes with their next turn"
        )

    def settings(program: Program) -> Outcome:
        wrong = amiss(program)
        return Rejected("; ".join(wrong)) if wrong else AppliedLive()

    return (Following("settings", host, settings), Following("turns", host, turns))
