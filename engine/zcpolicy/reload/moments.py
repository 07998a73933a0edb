"""A time, written down.

In: seconds since 1970. Out: `2026-01-01T12:00:00Z`.
"""

from __future__ import annotations

from datetime import UTC, datetime


def moment(at: float) -> str:
    """In UTC, to the second; what no calendar has is written as the number that it is."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return repr(at)
