"""Tools as they should be: notes that stand in a handle, and one that needs no identity."""

from collections.abc import Sequence
from typing import Any

from tests.state.stage import Notes, tool
from zcpolicy.registry.sources import HostTool, ToolContext
from zcpolicy.state.given import Given


class Sound:
    """Notes through a scoped handle."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._calls = 0

    def tools(self) -> Sequence[HostTool]:
        return [tool("note", self.note), tool("notes", self.notes), tool("upper", self.upper)]

    async def note(self, arguments: dict[str, Any], context: ToolContext) -> str:
        self._notes.scoped(context.caller).write(arguments["text"])
        return "noted"

    async def notes(self, _arguments: dict[str, Any], context: ToolContext) -> str:
        return ", ".join(map(str, self._notes.scoped(context.caller).read()))

    async def upper(self, arguments: dict[str, Any], _context: ToolContext) -> str:
        self._calls += 1  # zcpolicy: state how often it was called, by anybody
        return str(arguments["text"]).upper()


def make(given: Given) -> Sound:
    return Sound(given.handle(Notes))
