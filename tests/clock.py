"""What the tests know of time."""

from typing import Final

NOON: Final = 1_767_268_800.0
"""2026-01-01 12:00 UTC."""
SLOW_SECONDS: Final = 30.0
"""For which a busy machine may keep a server from answering."""


class Clock:
    """A host's clock that stands still until a test moves it."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
