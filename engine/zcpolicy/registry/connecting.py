"""Connecting the servers of one execution, and letting go of them again.

In: the servers that its bodies connect. Out: connections and what they list, in the `Record`; a server that fails is absent.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from zcpolicy.registry.record import Record
from zcpolicy.registry.sources import AssemblyError, McpConnection, McpServer, McpTool
from zcpolicy.texts import escaped

MAX_CONNECT_SECONDS: Final = 60.0
"""Seconds in which a server has to be connected and list its tools."""
MAX_CLOSE_SECONDS: Final = 30.0
"""Seconds in which a connection has to close."""
MAX_SERVER_TOOLS: Final = 10_000
"""Tools that one server may list."""
MAX_TOLD_CHARACTERS: Final = 300
"""Characters that are kept of why something failed."""


async def connect(record: Record, servers: Mapping[str, McpServer]) -> dict[str, tuple[McpTool, ...]]:
    """Connects servers side by side; the tools that each lists. Those that fail are told of in `record.failures`."""
    listed: dict[str, tuple[McpTool, ...]] = {}

    async def one(server: str, source: McpServer) -> None:
        try:
            async with asyncio.timeout(MAX_CONNECT_SECONDS):
                connection = await source.connect()
                record.connections[server] = connection
                listed[server] = checked(await connection.tools())
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # whatever a server does, it is only absent
            if ends_here(error):
                raise
            record.failures[server] = f"it cannot be connected: {fault_text(error)}"

    async with asyncio.TaskGroup() as group:
        for server, source in sorted(servers.items()):
            group.create_task(one(server, source))
    for server in servers.keys() - listed.keys():  # also where something inside was cancelled, and not this assembly
        record.failures.setdefault(server, "it cannot be connected: it was cut off")
        await _close_one(record.connections.pop(server, None))
    return listed


def checked(tools: Sequence[McpTool]) -> tuple[McpTool, ...]:
    """What a server lists. Raises AssemblyError where it is no list of tools of different names."""
    found: dict[str, McpTool] = {}
    for tool in tools:
        made: Any = tool
        if type(made) is not McpTool or not all(type(one) is str for one in (made.name, made.description)):
            raise AssemblyError("it lists what is no tool")
        if made.name in found:
            raise AssemblyError(f"it lists two tools `{escaped(made.name[:60])}`")
        if len(found) >= MAX_SERVER_TOOLS:
            raise AssemblyError(f"it lists more than {MAX_SERVER_TOOLS} tools")
        found[made.name] = made
    return tuple(found.values())


async def shut(record: Record) -> None:
    """Closes a registry: every connection once; whoever comes second waits for the first. Never raises."""
    if record.closing is None:
        record.closed = True
        connections, record.connections = record.connections, {}
        record.closing = asyncio.create_task(_close_all(connections))
    await asyncio.shield(record.closing)


async def _close_all(connections: Mapping[str, McpConnection]) -> None:
    await asyncio.gather(*(_close_one(one) for one in connections.values()))


async def _close_one(connection: McpConnection | None) -> None:
    if connection is None:
        return
    try:
        async with asyncio.timeout(MAX_CLOSE_SECONDS):
            await connection.close()
    except BaseException as error:  # it is let go of either way, and the others have their turn
        if ends_here(error):
            raise


def ends_here(error: BaseException) -> bool:
    """Whether it is not the connection's own affair: this task was cancelled, or a person interrupts the host.

    Whatever else is no `Exception` would end the event loop, and with it all other turns.
    """
    task = asyncio.current_task()
    cancelled = isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0)
    return cancelled or isinstance(error, KeyboardInterrupt)


def fault_text(error: BaseException) -> str:
    """What went wrong, on one line: of several errors the first."""
    first: Any = error
    while getattr(first, "exceptions", ()):
        first = first.exceptions[0]
    try:
        text = " ".join(str(first).split())[:MAX_TOLD_CHARACTERS]
    except Exception:  # noqa: BLE001 - the host's code, which may not even say what went wrong
        text = ""
    name = type(first).__name__
    return escaped(f"{name}: {text}" if text else name)
