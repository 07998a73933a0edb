"""A tool on every handle, as plain as tools are."""

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.state.stage import tool
from zcpolicy.registry.sources import HostTool, ToolContext
from zcpolicy.state.given import Given
from zcpolicy.state.handles.canvas import CanvasStore
from zcpolicy.state.handles.channel_map import ChannelMap
from zcpolicy.state.handles.credentials import Credentials
from zcpolicy.state.handles.parent_tools import ParentTools
from zcpolicy.state.handles.pool import ConnectionPool
from zcpolicy.state.handles.rate_limiter import RateLimiter
from zcpolicy.state.handles.rates import RateLimited
from zcpolicy.state.handles.session_cache import SessionCache
from zcpolicy.state.handles.tool_channels import PerToolChannels


class OfClients:
    """Tools on what is each client's."""

    def __init__(self, given: Given) -> None:
        self._canvas = given.handle(CanvasStore)
        self._rates = given.handle(RateLimiter)
        self._pool: ConnectionPool[list[str]] = given.handle(ConnectionPool)
        self._credentials = given.handle(Credentials)
        self._channels = given.handle(PerToolChannels)

    def tools(self) -> Sequence[HostTool]:
        return [
            tool("draw", self.draw), tool("drawn", self.drawn), tool("clear", self.clear), tool("search", self.search),
            tool("query", self.query), tool("log_in", self.log_in), tool("send", self.send),
        ]  # fmt: skip

    async def draw(self, arguments: dict[str, Any], context: ToolContext) -> str:
        return f"frame {self._canvas.scoped(context.caller).render('plan', arguments['text']).number}"

    async def drawn(self, _arguments: dict[str, Any], context: ToolContext) -> str:
        return ", ".join(frame.content for frame in self._canvas.scoped(context.caller).frames("plan"))

    async def clear(self, _arguments: dict[str, Any], context: ToolContext) -> str:
        self._canvas.scoped(context.caller).close("plan")
        return "cleared"

    async def search(self, _arguments: dict[str, Any], context: ToolContext) -> str:
        try:
            self._rates.scoped(context.caller).take("search")
        except RateLimited:
            return "too often"
        return "found"

    async def query(self, arguments: dict[str, Any], context: ToolContext) -> str:
        view = self._pool.scoped(context.caller)

        def blocking() -> str:
            with view.connection("db") as connection:
                connection.append(arguments["text"])
                return ", ".join(connection[2:])

        return await asyncio.to_thread(blocking)

    async def log_in(self, _arguments: dict[str, Any], context: ToolContext) -> str:
        found = await self._credentials.scoped(context.caller).get("token")
        return f"as {found.reveal()[:1]}"

    async def send(self, arguments: dict[str, Any], context: ToolContext) -> str:
        view = self._channels.scoped(context.caller)
        for name in view.names():
            await view.send(name, arguments["text"])
        return "sent to " + ", ".join(view.names())


class OfSessions:
    """Tools on what is each session's."""

    def __init__(self, given: Given) -> None:
        self._cache = given.handle(SessionCache)
        self._talk = given.handle(ChannelMap)

    def tools(self) -> Sequence[HostTool]:
        return [tool("remember", self.remember), tool("ask", self.ask)]

    async def remember(self, arguments: dict[str, Any], context: ToolContext) -> str:
        return str(self._cache.scoped(context.caller).get_in_thread("page", lambda: arguments["text"]))

    async def ask(self, arguments: dict[str, Any], context: ToolContext) -> str:
        return await self._talk.scoped(context.caller).ask("chat", arguments["text"])


class OfAll:
    """A tool on what is everybody's."""

    def __init__(self, given: Given) -> None:
        self._parents = given.handle(ParentTools)

    def tools(self) -> Sequence[HostTool]:
        return [tool("parents", self.parents)]

    async def parents(self, _arguments: dict[str, Any], context: ToolContext) -> str:
        return ", ".join(str(one.name) for one in self._parents.scoped(context.caller).all())
