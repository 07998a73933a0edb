"""Tools as they should not be: state of their own, each in its way."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tests.state.stage import tool
from zcpolicy.registry.sources import HostTool, ToolContext
from zcpolicy.state.given import Given

NOTES: list[str] = []


async def note(arguments: dict[str, Any], _context: ToolContext) -> str:
    NOTES.append(arguments["text"])
    return "noted"


async def notes(_arguments: dict[str, Any], _context: ToolContext) -> str:
    return ", ".join(NOTES)


class Quota:
    """Three calls, whoever makes them."""

    def __init__(self) -> None:
        self._left = 3

    def tools(self) -> Sequence[HostTool]:
        return [tool("search", self.search)]

    async def search(self, _arguments: dict[str, Any], _context: ToolContext) -> str:
        self._left -= 1
        return "found" if self._left >= 0 else "no more today"


class Slot:
    """One place, which the last one takes."""

    def __init__(self) -> None:
        self._text = "nothing"

    def tools(self) -> Sequence[HostTool]:
        return [tool("save", self.save), tool("load", self.load)]

    async def save(self, arguments: dict[str, Any], _context: ToolContext) -> str:
        self._text = arguments["text"]
        return "saved"

    async def load(self, _arguments: dict[str, Any], _context: ToolContext) -> str:
        return str(len(self._text))


def make(_given: Given) -> Any:
    return SimpleNamespace(tools=lambda: [tool("note", note), tool("notes", notes)])


def make_quota(_given: Given) -> Quota:
    return Quota()


def make_slot(_given: Given) -> Slot:
    return Slot()
