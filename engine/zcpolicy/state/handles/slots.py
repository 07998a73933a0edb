"""So many at a time, first come, first served, threads and tasks in one queue.

In: how many. Out: `Slots`: a place now, or a `Future` that is settled when there is one.
"""

from collections import deque
from concurrent.futures import Future
from threading import Lock
from typing import Final

from zcpolicy.state.handles.apart import Full
from zcpolicy.state.handles.waiting import settled

MAX_WAITING: Final = 256
"""How many wait for a place in one queue."""


class Slots:
    """Whoever asked holds a place once the future is settled, and gives it back; whoever waits no longer calls `leave`."""

    def __init__(self, size: int) -> None:
        self._lock = Lock()
        self._size = size
        self._taken = 0
        self._queue: deque[Future[None]] = deque()

    def ask(self) -> "Future[None]":
        """Raises Full where too many wait."""
        asked: Future[None] = Future()
        with self._lock:
            if self._taken < self._size:
                self._taken += 1
                settled(asked, None)
                return asked
            self._queue = deque(one for one in self._queue if not one.cancelled())
            if len(self._queue) >= MAX_WAITING:
                raise Full(f"{MAX_WAITING} wait already")
            self._queue.append(asked)
        return asked

    def leave(self, asked: "Future[None]") -> None:
        """Waits no longer, or gives the place back."""
        if asked.cancel():
            return
        with self._lock:
            while self._queue:
                if settled(self._queue.popleft(), None):
                    return
            self._taken -= 1

    @property
    def is_idle(self) -> bool:
        """Whether nobody has a place."""
        return self._taken == 0
