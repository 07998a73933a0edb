"""An MCP server over stdio that keeps every byte it is sent: `receiver.py TOOLS LOG`.

TOOLS: a file with the tools as JSON, read anew at each listing. LOG: a file to which all its input goes, as it comes.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server


def keep_input(log: Path) -> None:
    """Standard input passes by the log on its way."""
    outside = os.dup(0)
    read, write = os.pipe()
    os.dup2(read, 0)

    def copy() -> None:
        with log.open("ab") as file:
            while piece := os.read(outside, 65_536):
                file.write(piece)
                file.flush()
                os.write(write, piece)
        os.close(write)

    Thread(target=copy, daemon=True).start()


def listing(tools: Path) -> list[types.Tool]:
    return [types.Tool(**one) for one in json.loads(tools.read_text("utf-8"))]


async def serve(tools: Path) -> None:
    async def listed(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listing(tools))

    async def called(_context: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=f"{params.name} is done")])

    server: Server[Any] = Server("receiver", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    keep_input(Path(sys.argv[2]))
    asyncio.run(serve(Path(sys.argv[1])))
