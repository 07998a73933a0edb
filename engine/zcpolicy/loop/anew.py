"""A call whose decision does not hold any more when it is sent is admitted anew: decided, asked about, reserved.

In: what the gate said of a call, how to admit it anew, how to send it. Out: its result, or what stands in its way.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from zcpolicy.loop.gate import Admitted, Lapsed, Paused, Refused

T = TypeVar("T")
Outcome = Admitted | Refused | Paused

MAX_ADMISSIONS: Final = 3
"""Times that one call is admitted, because what it was decided on changed before it was sent."""

CHANGED: Final = (
    "The call was not made: the rules or the session changed before it was sent. Make it again if it is still of use."
)


async def sent(
    outcome: Outcome, again: Callable[[], Awaitable[Outcome]], send: Callable[[Admitted], Awaitable[T]]
) -> T | Refused | Paused | None:
    """The result of a call, or why it is not made; None where what it was decided on never stands still."""
    for left in reversed(range(MAX_ADMISSIONS)):
        if not isinstance(outcome, Admitted):
            return outcome
        try:
            async with outcome:
                return await send(outcome)
        except Lapsed:
            if left:
                outcome = await again()
    return None
