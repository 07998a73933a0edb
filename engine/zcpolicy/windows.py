"""The windows of limits: from when on charges count, and when a window ends (SPEC 8).

In: a window and a time in seconds. Out: times in seconds.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from zcpolicy.shapes import Window

LAST_SECOND: Final = 250_000_000_000
"""Seconds since the epoch before which a clock stands: calendars end soon after."""


class NoTime(Exception):
    """A host's clock that fails, or tells what is no time."""


def told(clock: Any) -> float:
    """What a host's clock says, seconds since the epoch. Raises NoTime."""
    try:
        now = float(clock())
    except Exception:  # noqa: BLE001 - the host's code: however it fails, the time is not known
        raise NoTime from None
    if not 0 <= now < LAST_SECOND:
        raise NoTime
    return now


def calendar(window: Window, now: float) -> tuple[float, float]:
    """Start and end of the day or month that it is, in the window's zone."""
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    try:
        zone: Any = ZoneInfo(window.get("zone", "UTC"))
    except (ValueError, OSError, KeyError):
        zone = UTC  # the checker knows the zone; a machine without the table still has days
    # a midnight that comes twice, when clocks go back, begins the day once
    day = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if window.get("calendar") == "month":
        start = day.replace(day=1)
        after = (start + timedelta(days=32)).replace(day=1)
    else:
        start, after = day, day + timedelta(days=1)
    return start.timestamp(), after.timestamp()
