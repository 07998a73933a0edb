"""Rates, and how they are held against the moments when something was done.

In: rates as they are configured. Out: whether there is room now, and if not, when.
"""

from array import array
from collections.abc import Mapping
from math import isfinite
from typing import Final, NamedTuple

from zcpolicy.refusals import PermitError
from zcpolicy.state.handles.named import MAX_NAMES
from zcpolicy.texts import escaped

MAX_RATE_TIMES: Final = 1_000
"""Times in one window."""
MAX_RATE_SECONDS: Final = 86_400.0
"""Seconds of a window."""


class Rate(NamedTuple):
    """So many times in any window of so many seconds."""

    times: int
    seconds: float


class RateLimited(PermitError):
    """It is too often. `retry_after`: seconds until there is room, None where there never is."""

    def __init__(self, name: str, retry_after: float | None) -> None:
        super().__init__(f"too often for the rate `{escaped(name)}`")
        self.retry_after = retry_after


def ask(name: str, rate: Rate, moments: "array[float]", times: int, now: float) -> None:
    """Raises RateLimited."""
    before = rate.times - times
    if before < 0:
        raise RateLimited(name, None)
    if len(moments) > before:
        room = moments[-(before + 1)] + rate.seconds
        if room > now:
            raise RateLimited(name, room - now)


def add(moments: "array[float]", times: int, now: float) -> None:
    """Keeps as many as any rate could ask for."""
    moments.extend([now] * times)
    del moments[: max(0, len(moments) - MAX_RATE_TIMES)]


def is_past(moments: "array[float]", now: float) -> bool:
    return not moments or moments[-1] <= now - MAX_RATE_SECONDS


def checked(rates: Mapping[str, Rate]) -> dict[str, Rate]:
    """Raises ValueError."""
    if len(rates) > MAX_NAMES:
        raise ValueError(f"there are up to {MAX_NAMES} rates")
    for name, (times, seconds) in rates.items():
        if type(times) is not int or not 0 <= times <= MAX_RATE_TIMES:
            raise ValueError(f"rate `{escaped(name)}`: 0 to {MAX_RATE_TIMES:,} times")
        if not isfinite(seconds) or not 0 < seconds <= MAX_RATE_SECONDS:
            raise ValueError(f"rate `{escaped(name)}`: a window of up to {MAX_RATE_SECONDS:,.0f} seconds")
    return dict(rates)
