"""How long a policy is good for without a word from its source.

In: confirmations that the source was read. Out: why the policy may not decide any more, as the note of the denies.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, time
from typing import Final, NamedTuple

from zcpolicy.reload.moments import moment

MIN_STALENESS_SECONDS: Final = 1.0
"""The shortest time after which a policy may be stale: less would be shorter than reading it takes."""


class Heard(NamedTuple):
    """When the source was last read, on both clocks."""

    now: float
    ticks: float


class Staleness:
    """Asked by every call that is to be permitted, from any thread: nothing here waits.

    `limit`: seconds; None: a policy never grows stale. Both clocks count, whichever says more: the monotonic one may stand
    still while the machine sleeps, and the other may be set back.
    """

    def __init__(
        self,
        limit: float | None,
        now: Callable[[], float] = time,
        ticks: Callable[[], float] = monotonic,
    ) -> None:
        if limit is not None and not limit >= MIN_STALENESS_SECONDS:
            raise ValueError(f"`max_staleness` is at least {MIN_STALENESS_SECONDS:g} seconds")
        self.limit = limit
        self._now = now
        self._ticks = ticks
        self._heard = Heard(now(), ticks())

    def confirm(self, ticks: float | None = None, now: float | None = None) -> None:
        """The source was read: just now, or at a time of either clock."""
        at_ticks, at_now = self._ticks(), self._now()
        ago = max(0.0, 0.0 if ticks is None else at_ticks - ticks, 0.0 if now is None else at_now - now)
        self._heard = Heard(at_now - ago, at_ticks - ago)

    @property
    def heard(self) -> float:
        """When the source was last read, in seconds since 1970."""
        return self._heard.now

    def age(self) -> float:
        """Seconds since then."""
        return max(0.0, self._now() - self._heard.now, self._ticks() - self._heard.ticks)

    def left(self) -> float | None:
        """Seconds until the policy is stale; None: it never is."""
        return None if self.limit is None else max(0.0, self.limit - self.age())

    def why(self) -> str:
        """Why no call may be permitted; "" as long as the policy is good."""
        if self.limit is None or self.age() <= self.limit:
            return ""
        return f"the policy's source could not be read since {moment(self._heard.now)}"
