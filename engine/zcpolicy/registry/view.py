"""What of a registry may be shown at this moment: policies are reloaded, skills loaded and sessions marked while it stands.

In: a `Record`. Out: the execution as it is now, and which tools and servers it has. Everything is worked out when asked.
"""

from dataclasses import replace
from typing import Any, Final

from zcpolicy.authority import genuine
from zcpolicy.decision import Decision
from zcpolicy.execution import ResolvedAgentExecution, plan_of
from zcpolicy.facts import ToolName
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.record import Offer, Record
from zcpolicy.registry.sources import McpConnection

RESOURCES: Final = "mcp_resources"
PROMPTS: Final = "mcp_prompts"
CAPABILITIES: Final = (RESOURCES, PROMPTS)
"""Host tools of the registry's own, that a policy declares and allows like any other."""

SEARCH: Final = "tool_search"
"""The host tool that finds deferred ones."""

_SPENT: Final = ("budget", "ledger-unavailable")


def current(record: Record) -> ResolvedAgentExecution | None:
    """The execution under the policy of now; None where there is none left. Raises SealError."""
    run = record.run()
    if run is None or record.closed:
        return None
    genuine(run)
    try:
        now = run.renewed()
        now.keep_up()
        genuine(now)
    except ResolveError:
        return None
    return now


def visible(record: Record) -> dict[ToolName, Offer]:
    """The tools that this execution may be shown now. Raises SealError."""
    run = current(record)
    if run is None:
        return {}
    withheld = _withheld_groups(record, run)
    return {
        name: _of_now(record, run, offer)
        for name, offer in record.offers.items()
        if _may_show(record, run, name, offer, withheld)
    }


def offered(record: Record, name: ToolName) -> Offer | None:
    """One tool, if this execution may be shown it now. Raises SealError."""
    offer, run = record.offers.get(name), current(record)
    if offer is None or run is None:
        return None
    return _of_now(record, run, offer) if _may_show(record, run, name, offer, _withheld_groups(record, run)) else None


def servers_of(run: ResolvedAgentExecution) -> frozenset[str]:
    """The servers that every body lets be connected."""
    said = [body.data["connect"]["servers"] for body in genuine(run).stack.bodies() if "connect" in body.data]
    return frozenset(said[0]).intersection(*said[1:]) if said else frozenset()


def reachable(record: Record) -> dict[str, McpConnection]:
    """The connections of this registry that may still be used."""
    run = current(record)
    return {} if run is None else _reached_by(record, run)


def _reached_by(record: Record, run: ResolvedAgentExecution) -> dict[str, McpConnection]:
    servers = servers_of(run)
    return {server: connection for server, connection in record.connections.items() if server in servers}


def is_loaded(run: ResolvedAgentExecution, skill: str) -> bool:
    """Whether a skill's restrictions hold for this execution."""
    return skill in genuine(run).stack.own.skills


def is_denied(decision: Decision) -> bool:
    """Whether a rule withholds a call; one that is only spent may be spoken of."""
    return decision.effect == "deny" and decision.reason not in _SPENT


def _withheld_groups(record: Record, run: ResolvedAgentExecution) -> set[str]:
    memory = run.memory
    groups: set[str] = set()
    if record.site.exclude_memory or not (memory.read or memory.write):
        groups.add("memory")
    if record.site.exclude_delivery:
        groups.add("delivery")
    return groups


def _of_now(record: Record, run: ResolvedAgentExecution, offer: Offer) -> Offer:
    """A capability tool with the servers that it reaches now; every other tool as it is."""
    spec = offer.spec
    properties: Any = spec.parameters.get("properties")
    if spec.name not in CAPABILITIES or "server" not in properties:
        return offer
    servers = {"type": "string", "enum": sorted(_reached_by(record, run))}
    parameters = {**spec.parameters, "properties": {**properties, "server": servers}}
    return replace(offer, spec=replace(spec, parameters=parameters))


def _may_show(record: Record, run: ResolvedAgentExecution, name: ToolName, offer: Offer, withheld: set[str]) -> bool:
    """Whether it is there at all, and some call of it may lead to anything but a deny."""
    if offer.group in withheld or (offer.skill and not is_loaded(run, offer.skill)):
        return False
    if name in CAPABILITIES and not _reached_by(record, run):
        return False
    plan = plan_of(run, name)
    return plan is not None and plan.callable_at_all(run.session)
