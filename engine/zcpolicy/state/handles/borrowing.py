"""The two ways to borrow a connection: in a task, and in a thread.

In: steps that a pool yields. Out: what it returns; `Borrowed`, for `async with` and `with`.
"""

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Final, Generic, NamedTuple, TypeVar

from zcpolicy.awaited import is_async
from zcpolicy.refusals import PermitError
from zcpolicy.state.handles.connections import Connection
from zcpolicy.state.handles.waiting import awaited, not_in_a_loop, waited

OUTSIDE_SECONDS: Final = 30.0
"""How long connecting, looking and closing may each take, where they are awaited."""

C = TypeVar("C")
R = TypeVar("R")


class Do(NamedTuple):
    """Something to do outside."""

    work: Callable[[], Any]


Step = Do | Future[None]
"""Something to do, or a place to wait for."""
Steps = Generator[Step, Any, R]


class Borrowed(Generic[C]):
    """One stay of a connection outside of its pool: for one `with`, or one `async with`."""

    __slots__ = ("_borrow", "_for_tasks", "_lent", "_return", "_seconds", "_used")

    def __init__(
        self,
        borrow: Callable[[], Steps[Connection[C]]],
        give_back: Callable[[Connection[C], bool], Steps[None]],
        seconds: float,
        *,
        for_tasks: bool,
    ) -> None:
        self._borrow = borrow
        self._return = give_back
        self._seconds = seconds
        self._for_tasks = for_tasks
        self._used = False
        self._lent: Connection[C] | None = None

    async def __aenter__(self) -> C:
        self._begin(for_tasks=True)
        self._lent = await in_task(self._borrow(), self._seconds)
        return self._lent.connection

    async def __aexit__(self, kind: object, *_raised: object) -> None:
        lent, self._lent = self._lent, None
        if lent is not None:
            await in_task(self._return(lent, kind is not None))

    def __enter__(self) -> C:
        self._begin(for_tasks=False)
        self._lent = in_thread(self._borrow(), self._seconds)
        return self._lent.connection

    def __exit__(self, kind: object, *_raised: object) -> None:
        lent, self._lent = self._lent, None
        if lent is not None:
            in_thread(self._return(lent, kind is not None))

    def _begin(self, *, for_tasks: bool) -> None:
        if self._for_tasks is not for_tasks:
            raise PermitError(
                "these connections are for tasks: write `async with`"
                if self._for_tasks
                else "these connections are for threads: write `with`, in a thread"
            )
        if self._used:
            raise PermitError("a connection is borrowed for one `with`: ask for another")
        self._used = True


async def in_task(steps: Steps[R], seconds: float | None = None) -> R:
    """Does them. `seconds`: to wait for a place. What is done outside is awaited, or done in a thread where it blocks."""
    answer: Any = None
    failed: BaseException | None = None
    while True:
        try:
            step = steps.send(answer) if failed is None else steps.throw(failed)
        except StopIteration as done:
            result: R = done.value
            return result
        answer, failed = None, None
        try:
            if not isinstance(step, Do):
                await awaited(step, seconds)
            elif is_async(step.work):
                async with asyncio.timeout(OUTSIDE_SECONDS):
                    answer = await step.work()
            else:
                answer = await asyncio.to_thread(step.work)
        except BaseException as error:  # noqa: BLE001 - the pool has to hear of it, and raises it again
            failed = error


def in_thread(steps: Steps[R], seconds: float | None = None) -> R:
    """Does them, in a thread. Raises PermitError in an event loop."""
    not_in_a_loop()
    answer: Any = None
    failed: BaseException | None = None
    while True:
        try:
            step = steps.send(answer) if failed is None else steps.throw(failed)
        except StopIteration as done:
            result: R = done.value
            return result
        answer, failed = None, None
        try:
            answer = step.work() if isinstance(step, Do) else waited(step, seconds)
        except BaseException as error:  # noqa: BLE001 - the pool has to hear of it, and raises it again
            failed = error
