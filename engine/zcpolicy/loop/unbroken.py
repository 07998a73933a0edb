"""Steps at a ledger that are never left half done.

In: a ledger, a function. Out: what it gives. A ledger that waits is called in a thread; being cancelled meanwhile, the
caller hears of it only when the step stands, so that it knows what there is to give back.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import Final, TypeVar

from zcpolicy.ledgers.contract import Ledger

T = TypeVar("T")

MAX_LEDGER_THREADS: Final = 8
"""Threads in which ledgers that wait are called; tools that keep other threads busy hold up no lease."""


async def unbroken(ledger: Ledger, step: Callable[[], T]) -> T:
    """Does the step whole. Raises what it raises; CancelledError only after it has ended."""
    if not ledger.blocking:
        return step()
    work = asyncio.get_running_loop().run_in_executor(_threads(), copy_context().run, step)
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        work.exception()  # it is heard, so that nobody warns of it
        raise cancelled
    return work.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_LEDGER_THREADS, "zcpolicy ledger")


if hasattr(os, "register_at_fork"):  # a child process has none of its parent's threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
