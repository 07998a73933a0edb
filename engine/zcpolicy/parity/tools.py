"""The tools of a probe's host: each records that it was reached, and with what, before it does anything.

In: a `Seen`. Out: `ToolSources`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

from zcpolicy.facts import ToolName
from zcpolicy.memory import MemoryRefused
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.parity.seen import LONG_END, LONG_START, PINNED, Ran, Seen
from zcpolicy.parity.world import FRONT
from zcpolicy.registry.host_tools import tool_search_tool
from zcpolicy.registry.sources import (
    Group,
    HostTool,
    InnerCall,
    McpConnection,
    McpServer,
    McpTool,
    SkillSource,
    ToolContext,
    ToolResult,
    ToolSources,
)
from zcpolicy.tickets import Ticket

Arguments = dict[str, Any]
Act = Callable[[Arguments, ToolContext], Awaitable[ToolResult | str]]
Start = Callable[[Ticket, str], object]

WAIT_SECONDS: Final = 1.7
"""How long `wait` takes if nobody cuts it off: longer than any time-out that a setting sets."""
MOMENT: Final = 0.005
"""How long every tool takes, so that those that run together are seen to."""
STORY: Final = 3_000
"""Characters of what `tell` tells."""
SPENT: Final = {"usd": Decimal("0.60")}
"""What one call of `spend` costs."""
OBJECT: Final = {"type": "object"}
PAGE: Final = "house://rules"
"""A resource of the server `forge`, which the host pins."""


def sources(seen: Seen, acting: Callable[[], str], later: Callable[[], Start | None]) -> ToolSources:
    """Everything that the probe's host has. `acting`: the agent whose tools are being put together now. `later`: how a
    task of `front` is put off, where it is.
    """
    tools = _Tools(seen, acting, later)
    acts: dict[str, tuple[Act, Group]] = {
        "look": (tools.plain, ""), "pick": (tools.plain, ""), "edit": (tools.plain, ""), "send": (tools.plain, ""),
        "wipe": (tools.plain, ""), "fetch": (tools.plain, ""), "wait": (tools.wait, ""), "tell": (tools.tell, ""),
        "spend": (tools.spend, ""), "both": (tools.both, ""), "hand_over": (tools.hand_over, ""),
        "learn": (tools.learn, ""), "recall": (tools.recall, "memory"), "remember": (tools.remember, "memory"),
        "deliver": (tools.plain, "delivery"), "turn_to": (tools.plain, ""),
    }  # fmt: skip
    return ToolSources(
        builtins=(*(tools.made(name, act, group) for name, (act, group) in acts.items()), tool_search_tool()),
        peripherals=tools.peripherals,
        servers={
            "forge": tools.server("forge", "read", "peek", "push"),
            "depot": tools.server("depot", "fill"),
        },
        skills={"careful": SkillSource("how to take care", "take care", (tools.made("sweep", tools.plain),))},
    )


class _Tools:
    def __init__(self, seen: Seen, acting: Callable[[], str], later: Callable[[], Start | None]) -> None:
        self._seen = seen
        self._later = later
        self._acting = acting
        self._store = InMemoryStore()

    def made(self, name: str, act: Act, group: Group = "") -> HostTool:
        """A tool that records, then acts."""

        async def run(arguments: Arguments, context: ToolContext) -> ToolResult | str:
            if context.identity.agent == FRONT:  # that is the path's own doing
                return await act(arguments, context)
            self._seen.ran.append(Ran(name, dict(arguments), context.identity.agent, context.identity.client))
            if name in ("hand_over", "both"):  # they only wait for others
                result = await act(arguments, context)
            else:
                with self._running():
                    result = await act(arguments, context)
            self._seen.ended.append(name)
            return result

        return HostTool(name, f"the tool {name}", OBJECT, run, group)

    def server(self, name: str, *tools: str) -> McpServer:
        """A server that records that it was connected."""

        async def connect() -> McpConnection:
            if self._acting() != FRONT:
                self._seen.connected.append(name)
            return _Connection(self, name, tools)

        return McpServer(connect, (PAGE,) if name == "forge" else ())

    async def peripherals(self) -> Sequence[HostTool]:
        if self._acting() != FRONT:
            self._seen.hardware += 1
        return [self.made("lamp", self.plain)]

    @contextmanager
    def _running(self) -> Generator[None]:
        self._seen.running += 1
        self._seen.together = max(self._seen.together, self._seen.running)
        try:
            yield
        finally:
            self._seen.running -= 1

    async def called(self, tool: ToolName, arguments: Mapping[str, Any]) -> ToolResult:
        """A call that reached a server."""
        self._seen.ran.append(Ran(tool, dict(arguments)))
        with self._running():
            await asyncio.sleep(MOMENT)
        return ToolResult("it is done")

    # --- what the tools do ---------------------------------------------------------------------------------------

    async def plain(self, _arguments: Arguments, _context: ToolContext) -> str:
        await asyncio.sleep(MOMENT)
        return "it is done"

    async def wait(self, _arguments: Arguments, _context: ToolContext) -> str:
        await asyncio.sleep(WAIT_SECONDS)
        return "it was waited for"

    async def tell(self, _arguments: Arguments, _context: ToolContext) -> str:
        return f"{LONG_START} {'and then ' * (STORY // 9)}{LONG_END}"

    async def spend(self, _arguments: Arguments, _context: ToolContext) -> ToolResult:
        await asyncio.sleep(MOMENT)
        return ToolResult("it is spent", cost=SPENT)

    async def both(self, _arguments: Arguments, context: ToolContext) -> str:
        await context.run([InnerCall("look", {}), InnerCall("wipe", {})])
        return "both are done"

    async def hand_over(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        start = self._later() if context.identity.agent == FRONT else None
        if start is not None:
            start(context.later(arguments["to"]), arguments["task"])
            return ToolResult("it will be done")
        free = arguments.get("free", False) is True
        return await context.delegate(arguments["to"], arguments["task"], independent=free)

    async def learn(self, arguments: Arguments, context: ToolContext) -> str:
        text = context.load_skill(arguments["skill"])
        self._seen.answers.append(f"learned to {text}")
        return text

    async def recall(self, arguments: Arguments, context: ToolContext) -> str:
        found = await context.memory.recall(self._store, arguments["query"])
        self._seen.answers.append(f"recalled {len(found)}")
        return "\n".join(entry.text for entry in found)

    async def remember(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        try:
            await context.memory.remember(self._store, arguments["text"], arguments["scope"])
        except MemoryRefused as refused:
            return ToolResult(str(refused), ok=False)
        self._seen.answers.append(f"remembered in {arguments['scope']}")
        return ToolResult("it is remembered")


class _Connection:
    """A connected server, in this process."""

    def __init__(self, tools: _Tools, name: str, listed: Sequence[str]) -> None:
        self._tools = tools
        self._name = name
        self._listed = listed

    async def tools(self) -> Sequence[McpTool]:
        return [McpTool(name, f"the tool {name}", OBJECT) for name in self._listed]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        return await self._tools.called((self._name, tool), arguments)

    async def resources(self) -> Sequence[str]:
        return [PAGE]

    async def read(self, uri: str) -> str:
        return PINNED

    async def prompts(self) -> Sequence[str]:
        return []

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        raise LookupError(name)

    async def close(self) -> None:
        """Nothing is open."""
