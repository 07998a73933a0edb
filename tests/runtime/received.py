"""What reached a real MCP server, byte for byte.

In: tools as a server lists them. Out: `Receiver`, whose server is started as a process for each registry.
"""

import json
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from zcpolicy.registry.mcp_servers import StdioServer
from zcpolicy.registry.sources import McpServer

RECEIVER = Path(__file__).parent / "receiver.py"


class Receiver:
    """`source`: how a host connects it."""

    def __init__(self, folder: Path, *tools: Mapping[str, Any]) -> None:
        self._tools, self._sent = folder / "tools.json", folder / "sent"
        self.lists(*tools)
        self.source = McpServer(StdioServer(sys.executable, (str(RECEIVER), str(self._tools), str(self._sent))).connect)

    def lists(self, *tools: Mapping[str, Any]) -> None:
        """The tools that it lists from now on."""
        self._tools.write_text(json.dumps(tools), "utf-8")

    def calls(self) -> list[tuple[str, Any]]:
        """The calls that reached it: name and arguments, numbers exact. Fails where a name stands twice in an object."""
        lines = self._sent.read_bytes().splitlines() if self._sent.exists() else []
        asked = [one for one in map(exactly, lines) if one.get("method") == "tools/call"]
        return [(one["params"]["name"], one["params"]["arguments"]) for one in asked]


def exactly(text: str | bytes) -> Any:
    """JSON text as values: numbers as `Decimal`, so that `1` and `1.0` are equal and `true` is neither."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), "a name stands twice"
    return found
