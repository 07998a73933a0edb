"""Servers that are not as they should be: `odd.py dies|twice|endless|quits`."""

import asyncio
import os
import sys
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

TOOL = types.Tool(name="same", description="Twice in the list.", input_schema={"type": "object"})


def lists(mode: str) -> Server[Any]:
    """`twice`: two tools of one name. `endless`: there is always one more page. `quits`: dies of a call."""

    async def listed(_context: Any, params: Any) -> types.ListToolsResult:
        if mode == "quits":
            return types.ListToolsResult(tools=[TOOL])
        if mode == "twice":
            return types.ListToolsResult(tools=[TOOL, TOOL])
        page = int(params.cursor or 0) if params is not None else 0
        tool = types.Tool(name=f"tool{page}", input_schema={"type": "object"})
        return types.ListToolsResult(tools=[tool], next_cursor=str(page + 1))

    async def called(_context: Any, _params: Any) -> types.CallToolResult:
        os._exit(1)

    return Server("odd", on_list_tools=listed, on_call_tool=called)


async def serve(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    mode = sys.argv[1]
    if mode == "dies":
        sys.exit(3)
    asyncio.run(serve(lists(mode)))
