"""The capability tools: resources and prompts of the servers that this registry has connected.

In: a `Record` and the execution. Out: the offers `mcp_resources` and `mcp_prompts`, and the resources that go into the
prompt. Each listing and each reading is a call that the gate decided; what it would deny is not listed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from zcpolicy.exact import is_object
from zcpolicy.execution import ResolvedAgentExecution, plan_of
from zcpolicy.loop.unbroken import unbroken
from zcpolicy.registry.connecting import ends_here, fault_text
from zcpolicy.registry.record import Offer, Pinned, Record
from zcpolicy.registry.sources import (
    AssemblyError,
    Json,
    McpConnection,
    McpServer,
    ServerRefused,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from zcpolicy.registry.view import PROMPTS, RESOURCES, current, is_denied, reachable
from zcpolicy.texts import escaped

MAX_PINNED_CHARACTERS: Final = 50_000
"""Characters of a resource that goes into the prompt; a longer one is left out."""
MAX_PINNED_SECONDS: Final = 60.0
"""Seconds in which a pinned resource has to be read."""


def offer_of(record: Record, run: ResolvedAgentExecution, name: str) -> Offer:
    """The offer of a capability tool, which reaches the servers of this registry and no others."""
    what = {RESOURCES: "uri", PROMPTS: "name"}[name]
    taken = _declared(run, name)
    properties: dict[str, Json] = {
        "server": {"type": "string"},  # which there are is told when it is shown (`view`)
        what: {"type": "string", "description": "Left out: all are listed."},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    parameters = {
        "type": "object",
        "properties": {one: schema for one, schema in properties.items() if one in taken},
        "required": ["server"],
        "additionalProperties": False,
    }

    async def runner(arguments: dict[str, Json], _context: ToolContext) -> ToolResult:
        connection = reachable(record).get(str(arguments.get("server")))
        if connection is None:
            return ToolResult(f"no server `{escaped(str(arguments.get('server'))[:60])}` is connected", ok=False)
        try:
            return await _RUN[name](record, connection, arguments)
        except ServerRefused as refusal:
            return ToolResult(f"the server refused: {refusal}", ok=False)

    spec = ToolSpec(name, name, f"Lists or gets {_NOUN[name]} of the connected servers.", parameters)
    return Offer(spec, runner)


def _declared(run: ResolvedAgentExecution, name: str) -> Iterable[str]:
    plan = plan_of(run, name)
    return () if plan is None else plan.tool["schema"].get("fields", {})


async def _resources(record: Record, connection: McpConnection, arguments: Mapping[str, Json]) -> ToolResult:
    uri = arguments.get("uri")
    if uri is None:
        return await _listed(record, RESOURCES, "uri", arguments, await connection.resources())
    return ToolResult(await connection.read(uri)) if type(uri) is str else _NO_TEXT


async def _prompts(record: Record, connection: McpConnection, arguments: Mapping[str, Json]) -> ToolResult:
    name: Json = arguments.get("name")
    given: Json = arguments.get("arguments") or {}
    if name is None:
        return await _listed(record, PROMPTS, "name", arguments, await connection.prompts())
    if not is_object(given) or not all(type(one) is str for one in (name, *given.values())):
        return _NO_TEXT
    return ToolResult(await connection.prompt(name, given))


_NO_TEXT: Final = ToolResult("what a server is asked for has to be text", ok=False)
"""The protocol knows text only; another value would reach the server as something else than was judged."""
_RUN: Final = {RESOURCES: _resources, PROMPTS: _prompts}
_NOUN: Final = {RESOURCES: "resources", PROMPTS: "prompts"}


async def _listed(
    record: Record, tool: str, what: str, arguments: Mapping[str, Json], found: Sequence[str]
) -> ToolResult:
    """Those that the policy would not deny to be read."""
    run = current(record)
    if run is None:
        return ToolResult("nothing can be listed any more", ok=False)
    shown = await unbroken(run.resolver.ledger, partial(_open, run, tool, what, str(arguments["server"]), found))
    return ToolResult("\n".join(shown) or f"there are no {_NOUN[tool]}")


def _open(run: ResolvedAgentExecution, tool: str, what: str, server: str, found: Sequence[str]) -> list[str]:
    return [one for one in found if not is_denied(run.decide(tool, {"server": server, what: one}))]


async def read_pinned(record: Record, run: ResolvedAgentExecution, servers: Mapping[str, McpServer]) -> None:
    """Reads the pinned resources that the policy allows outright: each is a call of `mcp_resources`, and counts as one.

    It is recorded as a call that did not succeed: what the host pinned meets no `require`.
    """
    for server, connection in sorted(record.connections.items()):
        for uri in servers[server].pinned:
            try:
                if await unbroken(run.resolver.ledger, partial(_permitted, run, server, uri)):
                    record.pinned.append(Pinned(server, uri, await _text(connection, uri)))
            except BaseException as error:  # whatever a server does, its resource is only absent
                if ends_here(error):
                    raise
                record.failures[f"{server} {uri}"] = f"it cannot be read: {fault_text(error)}"


def _permitted(run: ResolvedAgentExecution, server: str, uri: str) -> bool:
    decision = run.decide(RESOURCES, {"server": server, "uri": uri})
    if decision.effect != "allow":
        return False
    run.permit(decision, ok=False)
    return True


async def _text(connection: McpConnection, uri: str) -> str:
    async with asyncio.timeout(MAX_PINNED_SECONDS):
        text = await connection.read(uri)
    if len(text) > MAX_PINNED_CHARACTERS:
        raise AssemblyError(f"it is longer than {MAX_PINNED_CHARACTERS} characters")
    return text
