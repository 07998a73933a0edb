"""One canvas: its last frames, and those who watch it.

In: frames. Out: what a watcher has not seen yet, or that it was dropped. Whoever owns it holds a lock meanwhile.
"""

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Scope
from zcpolicy.state.handles.waiting import settled

MAX_FRAMES: Final = 64
"""Frames of one canvas; the oldest makes room."""
MAX_FRAME_CHARACTERS: Final = 200_000
"""Characters of a frame, its kind included."""
MAX_CANVAS_CHARACTERS: Final = 1_000_000
"""Characters of all frames of one canvas; the oldest make room."""
MAX_BEHIND: Final = 32
"""Frames that a subscriber may be behind; then it is dropped."""


class Frame(NamedTuple):
    """`number`: from 1, none left out. `kind`: a media type."""

    number: int
    kind: str
    content: str


class Dropped(NamedTuple):
    """The last that a subscriber is told: why, and how many frames it has not seen."""

    why: str
    missed: int


@dataclass(slots=True, eq=False)
class Watcher:
    """Where a subscriber stands, and for whom."""

    scope: Scope
    behind: deque[Frame] = field(default_factory=deque[Frame])
    dropped: Dropped | None = None
    _waiting: list["Future[None]"] = field(default_factory=list["Future[None]"])

    def hand(self, frame: Frame) -> None:
        """One that is too far behind gets none of it, and no more."""
        if len(self.behind) >= MAX_BEHIND:
            self.drop("too slow", 1)
        elif self.dropped is None:
            self.behind.append(frame)
            self._wake()

    def drop(self, why: str, more: int = 0) -> None:
        """It is told nothing but that from now on. `more`: frames that it has not seen, besides those it was handed."""
        self.dropped = self.dropped or Dropped(why, len(self.behind) + more)
        self.behind.clear()
        self._wake()

    def next(self) -> "Frame | Dropped | Future[None]":
        """The next frame, or that it was dropped, or what is settled when it is worth asking again."""
        if self.behind:
            return self.behind.popleft()
        if self.dropped is not None:
            return self.dropped
        self._waiting = [one for one in self._waiting if not one.done()]
        waiting: Future[None] = Future()
        self._waiting.append(waiting)
        return waiting

    def _wake(self) -> None:
        for waiting in self._waiting:
            settled(waiting, None)
        self._waiting = []


@dataclass(slots=True, eq=False)
class Canvas:
    """`who`: whoever made it. `shown`: the number of its newest frame."""

    who: Who
    shown: int = 0
    frames: deque[Frame] = field(default_factory=deque[Frame])
    watchers: list[Watcher] = field(default_factory=list[Watcher])

    def show(self, kind: str, content: str) -> Frame:
        """A new frame, for all who keep up."""
        self.shown += 1
        frame = Frame(self.shown, kind, content)
        self.frames.append(frame)
        while len(self.frames) > MAX_FRAMES or sum(len(one.content) for one in self.frames) > MAX_CANVAS_CHARACTERS:
            self.frames.popleft()
        for watcher in self.watchers:
            watcher.hand(frame)
        return frame

    def watched(self) -> int:
        """How many watch it. Those that are dropped, or whose calls are over, are not kept any longer."""
        self.watchers = [one for one in self.watchers if one.dropped is None and not one.scope.is_over]
        return len(self.watchers)

    def drop_all(self, why: str) -> None:
        """Nobody watches it any more."""
        for watcher in self.watchers:
            watcher.drop(why)
        self.watchers = []
