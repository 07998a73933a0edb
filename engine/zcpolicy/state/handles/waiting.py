"""Waiting for what another thread or task does, from either.

In: a `Future` of `concurrent.futures`. Out: its result.
"""

import asyncio
from concurrent.futures import Future
from typing import Final, TypeVar

from zcpolicy.refusals import PermitError

T = TypeVar("T")

MAX_WAIT_SECONDS: Final = 86_400.0
"""How long anything is waited for."""


async def awaited(future: "Future[T]", seconds: float | None = None) -> T:
    """For tasks. Raises TimeoutError, and what the future raises."""
    return await asyncio.wait_for(asyncio.wrap_future(future), seconds)


def waited(future: "Future[T]", seconds: float | None = None) -> T:
    """For threads. Raises TimeoutError, PermitError in an event loop, and what the future raises."""
    not_in_a_loop()
    return future.result(seconds)


def settled(future: "Future[T]", result: T) -> bool:
    """Gives whoever waits the result. False: nobody waits any more."""
    if not future.set_running_or_notify_cancel():
        return False
    future.set_result(result)
    return True


def within(seconds: float) -> float:
    """A time to wait. Raises ValueError for one that is none."""
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise ValueError(f"one waits from 0 to {MAX_WAIT_SECONDS:,.0f} seconds")
    return seconds


def not_in_a_loop() -> None:
    """Raises PermitError where waiting would hold up an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise PermitError("this would hold up the event loop: await it, or do it in a thread")
