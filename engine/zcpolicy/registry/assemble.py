"""The one order in which what a host has becomes what an execution may use.

In: an execution, `ToolSources`, `Site`. Out: a `Record`: peripherals, built-ins, servers by bundle and then tool by tool,
capability tools, pinned resources, skills. Each step only leaves out; the context strip and loaded skills are looked at
whenever the registry is asked (`view`).
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from weakref import ref

from zcpolicy.authority import genuine
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import ToolName
from zcpolicy.names import is_tool_name
from zcpolicy.registry.capabilities import offer_of, read_pinned
from zcpolicy.registry.connecting import connect, ends_here, fault_text, shut
from zcpolicy.registry.record import Offer, Record
from zcpolicy.registry.remarks import remarks_on, remarks_on_skills
from zcpolicy.registry.site import Site
from zcpolicy.registry.sources import (
    AssemblyError,
    HostTool,
    Json,
    McpConnection,
    McpServer,
    McpTool,
    ToolContext,
    ToolResult,
    ToolSources,
    ToolSpec,
)
from zcpolicy.registry.view import CAPABILITIES, RESOURCES, SEARCH, servers_of
from zcpolicy.registry.wire import shown, wire_name, wire_table

MAX_CALLER_TOOLS: Final = 100_000
"""Names in a `caller_allowed`."""


async def assembled(execution: ResolvedAgentExecution, sources: ToolSources, site: Site) -> Record:
    """The record of a registry. Raises SealError, AssemblyError; whatever is raised leaves no connection behind."""
    genuine(execution)
    run = execution.renewed()
    record = Record(ref(execution), site, wire_table(run.resolver.program.tools), dict(sources.skills))
    may = frozenset(run.tools())
    if site.caller_allowed is not None:
        may &= site.caller_allowed
    try:
        host = [(tool, "") for tool in (*await _peripherals(record, sources), *sources.builtins)]
        host += [(tool, skill) for skill, source in sources.skills.items() for tool in source.tools]
        own = _host_offers(host)
        record.offers.update({name: offer for name, offer in own.items() if name in may})
        whole = site.connect_peripherals or sources.peripherals is None
        record.remarks = remarks_on(own, run.resolver.program, may, whole=whole)
        record.remarks.update(remarks_on_skills(sources.skills, run.resolver.program, run.loadable))
        if site.connect_mcp:
            await _servers(record, run, sources.servers, may)
        _must_be_found(record)
    except BaseException:
        await shut(record)
        raise
    record.offers = dict(sorted(record.offers.items(), key=lambda one: _order(one[0])))
    return record


def caller_names(names: Iterable[ToolName] | None) -> frozenset[ToolName] | None:
    """The names of a `caller_allowed`. Raises AssemblyError for what is no collection of tool names."""
    if names is None:
        return None
    found: list[Any] = [] if isinstance(names, str) else [*names]
    if isinstance(names, str) or len(found) > MAX_CALLER_TOOLS or not all(map(is_tool_name, found)):
        raise AssemblyError("`caller_allowed` is a collection of tool names")
    return frozenset(found)


def _order(name: ToolName) -> tuple[str, str]:
    return ("", name) if isinstance(name, str) else name


# --- the host's own tools --------------------------------------------------------------------------------------


async def _peripherals(record: Record, sources: ToolSources) -> tuple[HostTool, ...]:
    if sources.peripherals is None or not record.site.connect_peripherals:
        return ()
    try:
        return tuple(await sources.peripherals())
    except BaseException as error:  # whatever the hardware does, its tools are only absent
        if ends_here(error):
            raise
        record.failures["peripherals"] = f"they cannot be listed: {fault_text(error)}"
        return ()


def _host_offers(tools: Iterable[tuple[HostTool, str]]) -> dict[ToolName, Offer]:
    """All tools of the host, of the policy or not: what contradicts itself is refused for every agent alike."""
    found: dict[ToolName, Offer] = {}
    for tool, skill in tools:
        if tool.name in found:
            raise AssemblyError(f"the host has two tools {shown(tool.name)}")
        if tool.name in CAPABILITIES:
            raise AssemblyError(f"{shown(tool.name)} is the registry's own tool")
        parameters = _copied(tool.parameters)
        if parameters is None:
            raise AssemblyError(f"the parameters of {shown(tool.name)} are no JSON object")
        spec = ToolSpec(tool.name, wire_name(tool.name), tool.description, parameters)
        found[tool.name] = Offer(spec, tool.run, tool.group, skill)
    return found


def _copied(parameters: object) -> dict[str, Json] | None:
    """A copy that nobody else holds."""
    given: Any = parameters
    try:
        copy: dict[str, Json] = json.loads(json.dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
    return copy


# --- servers ---------------------------------------------------------------------------------------------------


async def _servers(
    record: Record, run: ResolvedAgentExecution, servers: Mapping[str, McpServer], may: frozenset[ToolName]
) -> None:
    """A server that no call could reach is not started."""
    capabilities = [name for name in CAPABILITIES if name in may]
    wanted = {
        server
        for server in servers_of(run)
        if capabilities or any(isinstance(name, tuple) and name[0] == server for name in may)
    }
    for server in sorted(wanted - servers.keys()):
        record.failures[server] = "the host has no server of this name"
    listed = await connect(record, {server: servers[server] for server in wanted & servers.keys()})
    for server, tools in sorted(listed.items()):
        connection = record.connections[server]
        for tool in tools:
            offer = _live_offer(record, server, connection, tool) if (server, tool.name) in may else None
            if offer is not None:
                record.offers[offer.spec.name] = offer
    if record.connections:
        record.offers.update({name: offer_of(record, run, name) for name in capabilities})
        if RESOURCES in may:
            await read_pinned(record, run, servers)


def _live_offer(record: Record, server: str, connection: McpConnection, tool: McpTool) -> Offer | None:
    name = (server, tool.name)
    parameters = _copied(tool.parameters)
    if parameters is None:
        record.failures[" ".join(name)] = "its parameters are no JSON object"
        return None

    async def runner(arguments: dict[str, Json], _context: ToolContext) -> ToolResult:
        return await connection.call(tool.name, arguments)

    return Offer(ToolSpec(name, wire_name(name), tool.description, parameters), runner, deferred=record.site.deferred)


def _must_be_found(record: Record) -> None:
    if SEARCH not in record.offers and any(offer.deferred for offer in record.offers.values()):
        record.failures[SEARCH] = "tools are deferred, and this agent has no tool that finds them"
