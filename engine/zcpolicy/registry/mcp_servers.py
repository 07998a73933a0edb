"""Connectors of MCP servers, on the official client (extra `mcp`).

In: how to start or reach a server. Out: an `McpConnection`. What a server itself asks for (sampling, elicitation, roots) is
refused. Each connection belongs to one task, since it has to be left where it was entered; `close` ends that task, once.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from zcpolicy.extras import missing
from zcpolicy.registry.sources import AssemblyError, Json, McpConnection, McpTool, ServerRefused, ToolResult

try:
    from mcp import Client, MCPError, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client
except ImportError:
    raise missing("a connector of MCP servers", "mcp") from None

MAX_PAGES: Final = 100
"""Pages of one listing of a server; a longer one is an error."""


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that is started as a process: `McpServer(StdioServer("python", ("server.py",)).connect)`.

    `env`: added to the few variables that it inherits (HOME, PATH, …). `cwd`: its directory. What it writes to stderr is
    dropped unless `shows_stderr`.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    shows_stderr: bool = False

    async def connect(self) -> McpConnection:
        """Starts it. Raises what the client raises; then no process is left."""
        return await _connected(self._client)

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Client]:
        given = StdioServerParameters(command=self.command, args=[*self.args], env=dict(self.env), cwd=self.cwd)
        shows = self.shows_stderr
        with os.fdopen(os.dup(2) if shows else os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8") as log:
            async with Client(stdio_client(given, errlog=log), cache=None) as client:
                yield client


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that is reached over HTTP: `McpServer(HttpServer("https://…/mcp").connect)`. `headers`: with every request."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    async def connect(self) -> McpConnection:
        """Reaches it. Raises what the client raises."""
        return await _connected(self._client)

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Client]:
        async with (
            create_mcp_http_client(headers=dict(self.headers)) as http,
            Client(streamable_http_client(self.url, http_client=http), cache=None) as client,
        ):
            yield client


async def _connected(opened: Callable[[], Any]) -> McpConnection:
    connection = _Connection(opened)
    await connection.opened()
    return connection


class _Connection:
    """The client, and the task that holds it open."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._ending = asyncio.Event()
        self._owner = asyncio.create_task(self._own(opened))

    async def _own(self, opened: Callable[[], Any]) -> None:
        async with opened() as client:
            self._ready.set_result(client)
            await self._ending.wait()

    async def opened(self) -> None:
        """Waits until it is open. Raises what went wrong; then nothing is left behind."""
        try:
            await asyncio.wait((self._ready, self._owner), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._owner.cancel()
            await asyncio.wait((self._owner,))
            raise
        if not self._ready.done():
            await self._owner

    def _client(self) -> Client:
        if self._ending.is_set() or self._owner.done():
            raise ConnectionError("the connection is closed")
        return self._ready.result()

    async def tools(self) -> Sequence[McpTool]:
        """All pages of its list."""
        client = self._client()
        if client.server_capabilities.tools is None:
            return ()
        pages = all_pages(lambda cursor: client.list_tools(cursor=cursor))
        return [
            McpTool(tool.name, tool.description or "", tool.input_schema) async for page in pages for tool in page.tools
        ]

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> ToolResult:
        """What the server refuses is a failed result."""
        try:
            json.dumps(arguments)
        except TypeError:  # the client would send a `Decimal` as text: not what was judged
            return ToolResult("a number has more digits than the server is sent", ok=False)
        try:
            result = await self._client().call_tool(tool, dict(arguments))
        except (MCPError, ConnectionError) as error:
            return ToolResult(str(error), ok=False)
        text = _text(result.content)
        if not result.content and result.structured_content is not None:
            text = json.dumps(result.structured_content)
        return ToolResult(text, ok=not result.is_error)

    async def resources(self) -> Sequence[str]:
        client = self._client()
        if client.server_capabilities.resources is None:
            return ()
        pages = all_pages(lambda cursor: client.list_resources(cursor=cursor))
        return [str(one.uri) async for page in pages for one in page.resources]

    async def read(self, uri: str) -> str:
        client = self._client()
        with _refusals():
            found = await client.read_resource(uri)
        return "\n".join(map(_content, found.contents))

    async def prompts(self) -> Sequence[str]:
        client = self._client()
        if client.server_capabilities.prompts is None:
            return ()
        pages = all_pages(lambda cursor: client.list_prompts(cursor=cursor))
        return [one.name async for page in pages for one in page.prompts]

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        client = self._client()
        with _refusals():
            found = await client.get_prompt(name, dict(arguments))
        return "\n".join(f"{one.role}: {_text([one.content])}" for one in found.messages)

    async def close(self) -> None:
        """Releases it once, and waits until that is done."""
        self._ending.set()
        await asyncio.wait((self._owner,))
        if not self._owner.cancelled():
            self._owner.exception()  # it was broken before: that is no fault of closing it


@contextmanager
def _refusals() -> Generator[None]:
    """What the server itself says of a request that it refuses."""
    try:
        yield
    except MCPError as error:
        raise ServerRefused(str(error)) from None


class _Page(Protocol):
    next_cursor: str | None


_PageT = TypeVar("_PageT", bound=_Page)


async def all_pages(get: Callable[[str | None], Awaitable[_PageT]]) -> AsyncGenerator[_PageT, None]:
    """A listing of a server, page by page. Raises AssemblyError for one without end, ServerRefused for what the server says."""
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        with _refusals():
            page = await get(cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
    raise AssemblyError(f"it lists more than {MAX_PAGES} pages")


def _text(content: Sequence[Any]) -> str:
    return "\n".join(_content(one) for one in content)


def _content(one: Any) -> str:
    """A piece of content as text; of what is none, what it is."""
    if hasattr(one, "text"):
        return str(one.text)
    if hasattr(one, "resource"):
        return _content(one.resource)
    if hasattr(one, "uri") and not hasattr(one, "blob"):
        return f"[{one.uri}]"
    return f"[{getattr(one, 'mime_type', None) or 'data'} that is no text]"
