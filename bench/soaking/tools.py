"""What runs inside the daemons of a soak: tools that put on record by themselves that they ran, and a model that does what its client writes.

In: calls. Out: a line in the file `SOAK_RAN` for each, appended in one step, apart from anything that the daemon keeps. A client's
text is JSON: `{"calls": [[[TOOL, {…}], …], …], "echo": true}`; the model makes one batch after the other, and answers with what came
of them, or with the whole transcript.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from typing import Any

from zcpolicy import HostTool, ToolContext, ToolResult
from zcpolicy.daemon.models import FileModel
from zcpolicy.loop.messages import ModelRequest, ModelResponse
from zcpolicy.loop.scripted import calls
from zcpolicy.state.handles.canvas import CanvasStore

PLAIN = ("spend", "tally", "spot", "burst", "even", "odd", "version", "risky")


async def follow(_self: object, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
    """The next batch that the newest text of the user asks for, or the answer."""
    said = request.messages
    at = max(number for number, one in enumerate(said) if one.role == "user")
    wanted, since = json.loads(said[at].text), said[at + 1 :]
    done = sum(one.role == "assistant" for one in since)
    if done < len(wanted["calls"]):
        yield calls(*((tool, given) for tool, given in wanted["calls"][done]))
        return
    what, shown = (
        ("transcript", said) if wanted.get("echo") else ("results", [one for one in since if one.role == "tool"])
    )
    yield calls(text=json.dumps({what: [one.text for one in shown]}))


setattr(FileModel, "stream", follow)  # noqa: B010 - the soak's own model, in the place of one that reads a script


def ran(tool: str, arguments: dict[str, Any], **more: Any) -> None:
    """On record: this tool runs, now."""
    line = json.dumps({"tool": tool, "at": time.time(), "by": os.getpid(), **arguments, **more})
    file = os.open(os.environ["SOAK_RAN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def plain(name: str) -> HostTool:
    async def run(arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
        ran(name, arguments)
        return ToolResult(f"ran {name} {arguments['nonce']}")

    return HostTool(name, "Runs.", schema(nonce="string", pot="string"), run)


async def pay(arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
    ran("pay", {"nonce": arguments["nonce"], "amount": int(arguments["amount"])})
    return ToolResult(f"ran pay {arguments['nonce']}")


async def slow(arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
    ran("slow", arguments)
    await asyncio.sleep(0.2)
    ran("slow over", arguments)
    return ToolResult(f"ran slow {arguments['nonce']}")


def schema(**kinds: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}


class Soaked:
    """`canvas`: what clients draw on; each has to see its own."""

    def __init__(self, canvas: CanvasStore) -> None:
        self._canvas = canvas

    def tools(self) -> list[HostTool]:
        """All of them."""
        draws = HostTool("draw", "Draws.", schema(nonce="string", text="string"), self._draw)
        pays = HostTool("pay", "Pays.", schema(nonce="string", amount="integer"), pay)
        return [*map(plain, PLAIN), pays, HostTool("slow", "Takes its time.", schema(nonce="string"), slow), draws]

    async def _draw(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        ran("draw", {"nonce": arguments["nonce"]})
        own = self._canvas.scoped(context.caller)
        own.render("board", arguments["text"])
        shown = [frame.content for name in own.names() for frame in own.frames(name)]
        return ToolResult(json.dumps(shown[-20:]))


def make(given: Any) -> Soaked:
    """The factory."""
    return Soaked(given.handle(CanvasStore))
