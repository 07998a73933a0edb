"""What a handle does with the outside for a tool: within a time, and without telling what the outside says when it fails.

In: a coroutine of the host's. Out: its result, or `Unreachable`, which quotes nothing: errors of channels, stores and servers
carry addresses, tokens and names of people.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, Final, TypeVar

from zcpolicy.refusals import PermitError
from zcpolicy.state.handles.waiting import not_in_a_loop
from zcpolicy.texts import escaped

T = TypeVar("T")

LATE_SECONDS: Final = 5.0
"""How much later than it should an event loop may answer a thread."""


class Unreachable(Exception):
    """Something outside failed, or took too long. The message names it, and the kind of failure."""


async def reached(what: str, work: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
    """Does it. Raises Unreachable, with nothing of the exception that it stands for."""
    try:
        async with asyncio.timeout(seconds):
            return await work()
    except Exception as error:  # noqa: BLE001 - the host's code
        failed = unreachable(what, error)
    raise failed


def reached_in_thread(
    what: str, work: Callable[[], Coroutine[Any, Any, T]], seconds: float, loop: asyncio.AbstractEventLoop
) -> T:
    """The same for threads: the event loop does it. Raises Unreachable, PermitError."""
    not_in_a_loop()
    if loop.is_closed() or not loop.is_running():
        raise PermitError(f"{what} is not there any more: its event loop has ended")
    future = asyncio.run_coroutine_threadsafe(reached(what, work, seconds), loop)
    try:
        return future.result(seconds + LATE_SECONDS)
    except (TimeoutError, CancelledError) as error:  # of the loop: it ends
        failed = unreachable(what, error)
    finally:
        future.cancel()
    raise failed


def unreachable(what: str, error: BaseException) -> Unreachable:
    """To be raised outside of the `except`: then the exception is not kept with it either."""
    return Unreachable(f"{escaped(what)} failed: {type(error).__name__}")
