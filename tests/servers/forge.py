"""An MCP server over stdio with tools, resources and prompts. `FORGE_LOG`: a file to which it writes when it starts and ends."""

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("forge")


def note(text: str) -> None:
    log = os.environ.get("FORGE_LOG")
    if log:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(f"{text} {os.getpid()}\n")


@server.tool()
def get_issue(number: int) -> str:
    """Reads an issue."""
    note("get_issue")
    return f"issue {number}: the sky is blue"


@server.tool()
def push_file(path: str, text: str) -> str:
    """Writes a file into the repository."""
    note("push_file")
    return f"pushed {path}, {len(text)} letters"


@server.tool()
def broken() -> str:
    """Fails whenever it is called."""
    raise RuntimeError("the forge is cold")


@server.resource("forge://readme")
def readme() -> str:
    """The readme."""
    return "Forge makes things."


@server.resource("forge://secret")
def secret() -> str:
    """Not for everybody."""
    return "the key is under the mat"


@server.prompt()
def review(topic: str) -> str:
    """Asks for a review."""
    return f"Please review {topic}."


if __name__ == "__main__":
    note("start")
    print("ready", file=sys.stderr)
    server.run()
    note("end")
