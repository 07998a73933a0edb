"""Steps at a ledger that are never left half done.

In: a ledger, a function. Out: what it gives. A ledger that waits is called in a thread; being cancelled meanwhile, the
caller hears of it only when the step stands, so that it knows what there is to give back.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from zcpolicy.ledgers.contract import Ledger

T = TypeVar("T")


async def unbroken(ledger: Ledger, step: Callable[[], T]) -> T:
    """Does the step whole. Raises what it raises; CancelledError only after it has ended."""
    if not ledger.blocking:
        return step()
    work = asyncio.ensure_future(asyncio.to_thread(step))
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
