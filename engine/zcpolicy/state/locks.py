"""A fair lock for readers and writers, of threads and of event loops alike.

In: nothing. Out: `ReadWriteLock`: `with lock.reading():`, `async with lock.writing():`, any number of readers or one writer.

INVARIANT: whoever asked first is let in first; readers that stand one behind the other go in together. Nobody overtakes, so
that neither readers nor writers starve. Whoever stops waiting (a task that is cancelled, a loop that is closed) leaves no trace.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, Self

Kind = Literal["reading", "writing"]
Owner = Any  # the task that asks, or the number of the thread, where there is no task


class LockMisused(RuntimeError):
    """Whoever asks would wait for ever: for itself, or in an event loop, without awaiting, for a task of that loop."""


class ReadWriteLock:
    """Not re-entrant: whoever holds it and asks again gets a LockMisused.

    In an event loop `async with` waits without holding up the loop. `with` is there for sections that do not await: it waits for
    threads, and raises LockMisused where it would have to wait for a task of its own loop.
    """

    __slots__ = ("_guard", "_holders", "_queue", "_writer")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queue: deque[_Waiter] = deque()
        self._holders: set[Owner] = set()
        self._writer = False

    def reading(self) -> "Hold":
        """For one `with` or `async with`."""
        return Hold(self, "reading")

    def writing(self) -> "Hold":
        """For one `with` or `async with`."""
        return Hold(self, "writing")

    # --- for `Hold` ----------------------------------------------------------------------------------------------

    def ask(self, waiter: "_Waiter") -> None:
        """Lets it in, or puts it into the queue. Raises LockMisused."""
        with self._guard:
            if waiter.owner in self._holders:
                raise LockMisused("the lock is not re-entrant: whoever asks holds it")
            if not self._queue and self._has_room_for(waiter.kind):
                self._let_in(waiter)
            elif waiter.blocks is not None and self._waits_for(waiter.blocks):
                raise LockMisused("this would hold up the event loop that it waits for: write `async with`")
            else:
                self._queue.append(waiter)

    def leave(self, waiter: "_Waiter") -> None:
        """It holds the lock no longer, or waits for it no longer."""
        with self._guard:
            if waiter.inside:
                self._put_out(waiter)
            elif waiter in self._queue:
                self._queue.remove(waiter)
            while self._queue and self._has_room_for(self._queue[0].kind):
                first = self._queue.popleft()
                self._let_in(first)
                if not first.wake():
                    self._put_out(first)

    def _has_room_for(self, kind: Kind) -> bool:
        return not self._holders or (kind == "reading" and not self._writer)

    def _let_in(self, waiter: "_Waiter") -> None:
        self._holders.add(waiter.owner)
        self._writer = waiter.kind == "writing"
        waiter.inside = True

    def _put_out(self, waiter: "_Waiter") -> None:
        self._holders.discard(waiter.owner)
        self._writer = False
        waiter.inside = False

    def _waits_for(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether somebody who holds it, or stands before, is a task of this loop."""
        before = (*self._holders, *(one.owner for one in self._queue))
        return any(isinstance(one, asyncio.Task) and one.get_loop() is loop for one in before)


class _Waiter:
    """Somebody who asks. `wake`: tells them that they are in; False: nobody is there to be told. `blocks`: the event loop
    that stands still while they wait.
    """

    __slots__ = ("blocks", "inside", "kind", "owner", "wake")

    def __init__(
        self, kind: Kind, owner: Owner, wake: Callable[[], bool], blocks: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.kind: Final[Kind] = kind
        self.owner: Final[Owner] = owner
        self.wake: Final = wake
        self.blocks: Final = blocks
        self.inside = False


class Hold:
    """One stay in the lock. Made by `reading` and `writing`."""

    __slots__ = ("_kind", "_lock", "_waiter")

    def __init__(self, lock: ReadWriteLock, kind: Kind) -> None:
        self._lock = lock
        self._kind: Kind = kind
        self._waiter: _Waiter | None = None

    def __enter__(self) -> Self:
        there = threading.Event()

        def wake() -> bool:
            there.set()
            return True

        waiter = self._asks(_Waiter(self._kind, _owner(), wake, _running()))
        try:
            if not waiter.inside:
                there.wait()
        except BaseException:  # an interrupt: it waits no longer, or has been let in meanwhile
            self._lock.leave(waiter)
            raise
        return self

    def __exit__(self, *_raised: object) -> None:
        self._over()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        there = loop.create_future()

        def wake() -> bool:
            try:
                loop.call_soon_threadsafe(_settle, there)
            except RuntimeError:  # the loop is closed, and its tasks with it
                return False
            return True

        waiter = self._asks(_Waiter(self._kind, _owner(), wake))
        try:
            if not waiter.inside:
                await there
        except BaseException:  # cancelled: it waits no longer, or has been let in meanwhile
            self._lock.leave(waiter)
            raise
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self._over()

    def _asks(self, waiter: _Waiter) -> _Waiter:
        if self._waiter is not None:
            raise LockMisused("a stay in the lock is for one `with`: ask for another")
        self._lock.ask(waiter)
        self._waiter = waiter
        return waiter

    def _over(self) -> None:
        assert self._waiter is not None
        self._lock.leave(self._waiter)


def _settle(there: "asyncio.Future[None]") -> None:
    if not there.done():
        there.set_result(None)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _owner() -> Owner:
    task = None if _running() is None else asyncio.current_task()
    return threading.get_ident() if task is None else task
