"""What a host has, for these tests: tools of its own, and the forge, a real MCP server over stdio."""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policy_lang import loads
from zcpolicy import ResolvedAgentExecution, Resolver, Session
from zcpolicy.registry.mcp_servers import StdioServer
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import (
    Group,
    HostTool,
    Json,
    McpConnection,
    McpServer,
    McpTool,
    SkillSource,
    ToolContext,
    ToolResult,
    ToolSources,
)

SERVERS = Path(__file__).parents[1] / "servers"

HOST = """zcpolicy 1
tool file_read(path: path) risk read
tool shell(command: shell) risk high
tool send_mail(to: string) risk medium
tool recall(query: string) risk read
tool deliver(path: path) risk low
tool lamp(on: boolean) risk low
tool tool_search(query: string, limit?: integer) risk read
tool mcp_resources(server: string, uri?: string) risk read
tool mcp_prompts(server: string, name?: string, arguments?: object) risk read
tool forge/get_issue(number: integer) risk read
tool forge/push_file(path: path, text: string) risk medium
tool forge/set_rate(rate: number) risk low
tool forge/broken() risk low
bundle forge { server forge }
bundle reading { server forge only get_issue }
"""

OBJECT: Mapping[str, Json] = {"type": "object", "properties": {}}


def tool(name: str, group: Group = "", description: str = "") -> HostTool:
    """A tool that answers with its name and what it was given."""

    async def run(arguments: dict[str, Json], _context: ToolContext) -> str:
        return f"{name} {arguments}"

    return HostTool(name, description or f"Does {name}.", OBJECT, run, group)


def forge(log: Path | None = None, pinned: tuple[str, ...] = ()) -> McpServer:
    """The forge. `log`: a file to which it writes."""
    env = {} if log is None else {"FORGE_LOG": str(log)}
    return McpServer(StdioServer(sys.executable, (str(SERVERS / "forge.py"),), env=env).connect, pinned)


def odd(mode: str) -> McpServer:
    """A server that is not as it should be."""
    return McpServer(StdioServer(sys.executable, (str(SERVERS / "odd.py"), mode)).connect)


def silent(pid: Path) -> McpServer:
    """A server that never answers. `pid`: a file for the id of its process."""
    return McpServer(StdioServer(sys.executable, (str(SERVERS / "silent.py"), str(pid))).connect)


@dataclass
class Shelf:
    """A server in the process of the host, which lists what it is told to and counts."""

    tools_: list[str]
    opened: int = 0
    closed: int = 0

    async def connect(self) -> McpConnection:
        self.opened += 1
        return self

    async def tools(self) -> list[McpTool]:
        return [McpTool(name, "", {"type": "object"}) for name in self.tools_]

    async def call(self, tool: str, arguments: Any) -> ToolResult:
        return ToolResult(tool)

    async def resources(self) -> list[str]:
        return []

    async def read(self, uri: str) -> str:
        return uri

    async def prompts(self) -> list[str]:
        return []

    async def prompt(self, name: str, arguments: Any) -> str:
        return name

    async def close(self) -> None:
        self.closed += 1


BUILTINS = (tool("file_read"), tool("shell"), tool("send_mail"), tool("recall", "memory"), tool("deliver", "delivery"))

DEPLOY = SkillSource("Ships it.", "First test, then ship.", (tool("lamp"),))


def run_of(policy: str, agent: str = "a", session: Session | None = None, **given: Any) -> ResolvedAgentExecution:
    """An agent of a policy over the tools above."""
    return Resolver(loads(HOST + policy)).resolve(agent, session=session or Session(client="x"), **given)


@asynccontextmanager
async def registry(
    run: ResolvedAgentExecution, sources: ToolSources, **knobs: Any
) -> AsyncGenerator[ScopedToolRegistry]:
    """A registry that is closed again."""
    made = await ScopedToolRegistry.assemble(run, sources, **knobs)
    try:
        yield made
    finally:
        await made.close()
