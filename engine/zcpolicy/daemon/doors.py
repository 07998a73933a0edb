"""Whether a turn may begin now: how many a client has at a time, and that none begins once the host is to stop.

In: the client of a turn. Out: `NotNow`, which says when to come again; turns that are cut off when their time is over. What a
running turn starts below itself is part of it.
"""

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from zcpolicy.approvals.asking import at_work
from zcpolicy.daemon.order import TurnRefused
from zcpolicy.daemon.schedule import SURFACES

MAX_TURNS: Final = 10_000
"""Turns of a host at a time."""
BUSY_SECONDS: Final = 1.0
"""After which a client that is refused for its number of turns may try again."""
MAX_CUT_SECONDS: Final = 10.0
"""Seconds in which turns that are cut off have to end."""


class NotNow(TurnRefused):
    """A turn that cannot begin at the moment. `retry_after`: seconds. `for_all`: this host begins nobody's. `why`: what its operator
    is told besides, and no client.
    """

    def __init__(self, message: str, retry_after: float, *, for_all: bool, why: str = "") -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.for_all = for_all
        self.why = why


class Doors:
    """`of_client`: turns that one client may have at a time. `drain`: seconds that a host which stops waits for turns."""

    def __init__(self, *, of_client: int = MAX_TURNS, drain: float = 0.0) -> None:
        self._of_client = of_client
        self._drain = drain
        self._clients: Counter[str] = Counter()
        self._tasks: dict[object, asyncio.Task[Any] | None] = {}
        self._cut: set[asyncio.Task[Any]] = set()
        self._changed = asyncio.Event()
        self.closing = False

    @property
    def turns(self) -> int:
        """Turns that are under way, those below others not counted."""
        return len(self._tasks)

    @contextmanager
    def turn(self, client: str, *, surface: str = "") -> Generator[None]:
        """While a turn runs. How many scheduled ones there are is the schedule's to bound: they could not come again.

        Raises NotNow, also out of a turn that was cut off.
        """
        if at_work():
            yield
            return
        if self.closing:
            raise NotNow("the host is about to stop", max(1.0, self._drain), for_all=True)
        if len(self._tasks) >= MAX_TURNS or (surface not in SURFACES and self._clients[client] >= self._of_client):
            raise NotNow("there are as many turns under way as there may be", BUSY_SECONDS, for_all=False)
        here, task = object(), asyncio.current_task()
        self._tasks[here] = task
        self._clients[client] += 1
        try:
            yield
        except asyncio.CancelledError:
            if task is None or task not in self._cut or task.uncancel() > 0:
                raise
            raise NotNow("the host has stopped before the turn was done", max(1.0, self._drain), for_all=True) from None
        finally:
            del self._tasks[here]
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
            self._changed.set()

    async def close(self) -> int:
        """Begins no turn any more, waits for those under way, and cuts off those that are still there in the end: how many."""
        self.closing = True
        await self._empty(self._drain)
        for task in self._tasks.values():
            if task is not None:
                self._cut.add(task)
                task.cancel()
        cut = len(self._cut)
        await self._empty(MAX_CUT_SECONDS)
        return cut

    async def _empty(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while self._tasks:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return
