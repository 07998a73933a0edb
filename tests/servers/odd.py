"""Servers that are not as they should be: `odd.py dies|silent|twice|endless`. `ODD_PID`: a file for its process id."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

TOOL = types.Tool(name="same", description="Twice in the list.", input_schema={"type": "object"})


def lists(mode: str) -> Server[Any]:
    """`twice`: two tools of one name. `endless`: there is always one more page."""

    async def listed(_context: Any, params: Any) -> types.ListToolsResult:
        if mode == "twice":
            return types.ListToolsResult(tools=[TOOL, TOOL])
        page = int(params.cursor or 0) if params is not None else 0
        tool = types.Tool(name=f"tool{page}", input_schema={"type": "object"})
        return types.ListToolsResult(tools=[tool], next_cursor=str(page + 1))

    return Server("odd", on_list_tools=listed)


async def serve(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    pid = os.environ.get("ODD_PID")
    if pid:
        Path(pid).write_text(str(os.getpid()), encoding="utf-8")
    match sys.argv[1]:
        case "dies":
            sys.exit(3)
        case "silent":
            time.sleep(600)
        case mode:
            asyncio.run(serve(lists(mode)))
