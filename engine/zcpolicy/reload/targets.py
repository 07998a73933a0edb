"""Who has to follow a new generation, and what became of it.

In: `Event`s: that there is a generation, and which files changed; no copy of the policy. Out: each target's answer to the
newest generation that it was told of, for `status`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import time
from typing import Any, Final, Protocol

from zcpolicy.reload.moments import moment

MAX_TARGETS: Final = 1_000
"""Targets of one policy."""
ANSWER_SECONDS: Final = 30.0
"""How long a target may take for one generation; then it counts as one that rejected it, until it answers after all."""

CLOSE_SECONDS: Final = 2.0
"""For which targets that were given up on may still end; then they are left alone."""


@dataclass(frozen=True, slots=True)
class Event:
    """There is a generation. `changed`: the paths of the files that are not what they were. A target that needs the policy takes
    it from the resolver, and only if that one's generation is still this.
    """

    generation: int
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AppliedLive:
    """The target lives by the generation."""


@dataclass(frozen=True, slots=True)
class QueuedForReload:
    """The target will live by it once it is made anew, and says why not before."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The target does not live by it."""

    reason: str


Outcome = AppliedLive | QueuedForReload | Rejected

_NAMES: Final[dict[type[Any], str]] = {
    AppliedLive: "applied-live",
    QueuedForReload: "queued-for-reload",
    Rejected: "rejected",
}


class Target(Protocol):
    """What a host has derived from its policy. Decisions need none: the resolver follows by itself."""

    @property
    def name(self) -> str:
        """Among the targets, its own."""
        ...

    async def take(self, event: Event) -> Outcome:
        """Follows. One that raises, or answers what is no outcome, has rejected it. May be called again before it has answered,
        where it took too long.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Answer:
    generation: int
    outcome: Outcome
    at: float


class _Line:
    """One target: the newest event that it has not been told of, and its latest answer."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.next: Event | None = None
        self.told = 0
        self.answer: _Answer | None = None
        self.worker: asyncio.Task[None] | None = None

    def answered(self, generation: int, outcome: Outcome, at: float) -> None:
        """INVARIANT: the answer to an older generation never takes the place of one to a newer."""
        if self.answer is None or self.answer.generation <= generation:
            self.answer = _Answer(generation, outcome, at)

    @property
    def is_idle(self) -> bool:
        return self.next is None and (
            self.told == 0 or (self.answer is not None and self.answer.generation >= self.told)
        )

    def to_json(self) -> dict[str, Any]:
        told = max(self.told, 0 if self.next is None else self.next.generation)
        found: dict[str, Any] = {"told": told or None, "generation": None, "outcome": None}
        if self.answer is not None:
            outcome = self.answer.outcome
            found |= {
                "generation": self.answer.generation,
                "outcome": _NAMES[type(outcome)],
                "at": moment(self.answer.at),
            }
            if not isinstance(outcome, AppliedLive):
                found["reason"] = outcome.reason
        return found


class Targets:
    """Tells each target the newest generation, one after the other; events that were passed while it was busy are skipped.

    `seconds`: for one answer. Used from one event loop.
    """

    def __init__(self, seconds: float = ANSWER_SECONDS, now: Callable[[], float] = time) -> None:
        self._seconds = seconds
        self._now = now
        self._lines: dict[str, _Line] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._latest = 0
        self._idle = asyncio.Condition()

    def add(self, target: Target) -> None:
        """Tells it of every generation that is published from now on. Raises ValueError for a name that is taken."""
        if target.name in self._lines:
            raise ValueError(f"there is a target `{target.name}` already")
        if len(self._lines) >= MAX_TARGETS:
            raise ValueError(f"there are {MAX_TARGETS} targets, and no more")
        self._lines[target.name] = _Line(target)

    def remove(self, name: str) -> None:
        """It is told nothing any more; what it does just now is given up."""
        line = self._lines.pop(name, None)
        if line is not None and line.worker is not None:
            line.worker.cancel()

    def tell(self, event: Event) -> None:
        """There is a newer generation. One that is not newer than what was told is passed over."""
        if event.generation <= self._latest:
            return
        self._latest = event.generation
        for line in self._lines.values():
            line.next = event
            if line.worker is None or line.worker.done():
                line.worker = self._start(self._work(line))

    async def answered(self) -> None:
        """Returns once every target has answered, or was given up on."""
        async with self._idle:
            await self._idle.wait_for(lambda: all(line.is_idle for line in self._lines.values()))

    def status(self) -> dict[str, Any]:
        """By name: the newest generation that it was told, the one that it answered, with what, when (JSON)."""
        return {name: line.to_json() for name, line in sorted(self._lines.items())}

    async def close(self) -> None:
        """Gives up on all that is under way."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=CLOSE_SECONDS) if running else None

    async def _work(self, line: _Line) -> None:
        while line.next is not None:
            event, line.next = line.next, None
            line.told = event.generation
            await self._one(line, event)
            async with self._idle:
                self._idle.notify_all()

    async def _one(self, line: _Line, event: Event) -> None:
        """One event, until it is answered or its time is over."""
        taking = self._start(_taken(line.target, event))
        taking.add_done_callback(lambda task: self._late(line, event, task))
        try:
            done, _ = await asyncio.wait((taking,), timeout=self._seconds)
        except asyncio.CancelledError:
            taking.cancel()
            raise
        if not done:
            line.answered(event.generation, Rejected(f"it has not answered for {self._seconds:g} seconds"), self._now())
            taking.cancel()

    def _late(self, line: _Line, event: Event, task: asyncio.Task[Outcome]) -> None:
        if not task.cancelled():
            line.answered(event.generation, task.result(), self._now())
        elif line.answer is None or line.answer.generation < event.generation:
            line.answered(event.generation, Rejected("it was cut off"), self._now())

    def _start(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task


async def _taken(target: Target, event: Event) -> Outcome:
    try:
        outcome: Any = await target.take(event)
    except Exception as fault:  # noqa: BLE001 - whatever it is, the target did not follow
        return Rejected(f"it raised {type(fault).__name__}")
    if type(outcome) not in _NAMES:
        return Rejected("it answered what is no outcome")
    answer: Outcome = outcome
    return answer
