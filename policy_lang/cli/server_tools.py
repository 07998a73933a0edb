"""The tools that a running MCP server lists, asked for with the official client (extra `mcp`).

In: how to start or reach the server. Out: its tools as they stand on the wire, all pages. What a server itself asks for is
refused, what it sends is bounded, and whatever it does, no process of it is left.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from policy_lang.cli.errors import CommandError
from zcpolicy.extras import missing

try:
    from mcp import Client, MCPError
    from pydantic import ValidationError

    from policy_lang.cli.server_process import ServerProcess
    from policy_lang.cli.server_url import ServerUrl
    from zcpolicy.registry.mcp_servers import all_pages
    from zcpolicy.registry.sources import AssemblyError, ServerRefused
except ImportError:
    raise missing("`zcpolicy tools`", "mcp") from None

MAX_LEAVING_SECONDS: Final = 10.0
"""Seconds that leaving a server may take beyond the time-out."""
MAX_TOLD: Final = 300
"""Characters that are told of what a server or the client says is wrong."""

_KEPT: Final = {"name", "title", "description", "input_schema", "output_schema", "annotations"}
_UNHEARD: Final = logging.NullHandler()  # else what goes wrong in the client is a traceback on stderr


def of_command(command: Sequence[str], more: Mapping[str, str], seconds: float) -> list[dict[str, Any]]:
    """The tools of a server that a command starts. `more`: variables that it gets besides the usual few.

    Raises:
        CommandError: there is no list, or none in time; says why.
    """
    return _asked(ServerProcess(command, more), seconds)


def of_url(url: str, headers: Mapping[str, str], seconds: float) -> list[dict[str, Any]]:
    """The tools of a server at a URL.

    Raises:
        CommandError: there is no list, or none in time; says why.
    """
    return _asked(ServerUrl(url, headers), seconds)


def _asked(server: ServerProcess | ServerUrl, seconds: float) -> list[dict[str, Any]]:
    for name in ("mcp", "client", "asyncio", "httpx2"):
        logging.getLogger(name).addHandler(_UNHEARD)
    try:
        return asyncio.run(_tools(server, seconds))
    except asyncio.CancelledError:
        raise CommandError("ended before the server had listed its tools") from None


async def _tools(server: ServerProcess | ServerUrl, seconds: float) -> list[dict[str, Any]]:
    task = asyncio.current_task()
    assert task is not None
    if sys.platform != "win32":  # which knows no such signal
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    found: list[dict[str, Any]] | None = None
    most = asyncio.timeout(seconds + MAX_LEAVING_SECONDS)
    try:
        async with most, asyncio.timeout(seconds) as waiting, Client(server, cache=None) as client:
            found = await _listed(client)
            waiting.reschedule(None)
    except Exception as error:  # noqa: BLE001 - whatever a server does: one line, unless its list is there
        if found is None:
            raise CommandError(f"the server gives no list of tools: {_why(server, error, seconds)}") from None
    assert found is not None
    return found


async def _listed(client: Client) -> list[dict[str, Any]]:
    if client.server_capabilities.tools is None:
        return []
    walked = all_pages(lambda cursor: client.list_tools(cursor=cursor))
    return [
        tool.model_dump(by_alias=True, exclude_unset=True, include=_KEPT)
        async for page in walked
        for tool in page.tools
    ]


def _why(server: ServerProcess | ServerUrl, error: BaseException, seconds: float) -> str:
    """What was wrong: what the server's side saw, else what the client says."""
    first: Any = error
    while getattr(first, "exceptions", ()):
        first = first.exceptions[0]
    if server.complaint:
        return server.complaint
    if isinstance(first, TimeoutError):
        return f"it did not answer within {seconds:g} s{server.last_words}"
    text = str(first).strip().partition("\n")[0][:MAX_TOLD]
    if isinstance(first, ValidationError) or "validation error" in text:
        return f"what it answers is no MCP{server.last_words}"
    if isinstance(first, MCPError | ServerRefused | AssemblyError):
        return f"{text}{server.last_words}"
    return f"it cannot be reached: {text or 'it does not say why'}"
