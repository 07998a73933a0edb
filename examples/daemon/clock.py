"""A tool of the operator's own: what a daemon takes by `factories`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from zcpolicy import HostTool, ToolContext


class Clock:
    """It needs nothing at construction, and has nothing to release."""

    def tools(self) -> Sequence[HostTool]:
        """One tool."""
        return [HostTool("clock", "Tells the time.", {"type": "object", "properties": {}}, tell)]


async def tell(_arguments: dict[str, Any], _context: ToolContext) -> str:
    """The time in UTC."""
    return datetime.now(UTC).strftime("%H:%M")


def make(_given: object) -> Clock:
    """The factory."""
    return Clock()
