"""The windows of limits: from when on charges count, and when a window ends (SPEC 8).

In: a window and a time in seconds. Out: times in seconds.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zcpolicy.shapes import Window


def starts_after(window: Window, now: float) -> float | None:
    """Charges count that are later than this; None for windows that are not of the clock."""
    if window["kind"] == "rolling":
        return now - float(window.get("seconds", "0"))
    if window["kind"] == "calendar":
        return calendar(window, now)[0] - 1e-6  # a charge at midnight is of the new day
    return None


def calendar(window: Window, now: float) -> tuple[float, float]:
    """Start and end of the day or month that it is, in the window's zone."""
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    try:
        zone: Any = ZoneInfo(window.get("zone", "UTC"))
    except (ValueError, OSError, KeyError):
        zone = UTC  # the checker knows the zone; a machine without the table still has days
    day = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    if window.get("calendar") == "month":
        start = day.replace(day=1)
        after = (start + timedelta(days=32)).replace(day=1)
    else:
        start, after = day, day + timedelta(days=1)
    return start.timestamp(), after.timestamp()
