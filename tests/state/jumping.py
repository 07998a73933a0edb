"""An event loop whose clock jumps to the next timer when there is nothing else to do: time-outs are exact, and take no time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

STUCK = 10_000
"""How often nothing may happen, with no timer to wait for, before a story is taken to be stuck."""


class _Jumping(selectors.DefaultSelector):
    now = 0.0
    idle = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        self.idle = self.idle + 1 if timeout is None and not found else 0
        assert self.idle < STUCK, "nothing will ever happen"
        if timeout is not None and not found:
            self.now += max(timeout, 0.0)
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(story: Coroutine[Any, Any, None]) -> None:
    """As `asyncio.run`. For stories without threads."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        runner.run(story)
