"""The one registry of an execution's tools.

In: an execution, what the host has and the site withholds. Out: a sealed `ScopedToolRegistry`: what the model is shown, and the
way from a name on the wire to a tool. It can run nothing: the tools' functions are in a private record.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Never
from weakref import WeakKeyDictionary

from zcpolicy.authority import SealError, genuine
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import ToolName
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.assemble import assembled, caller_names
from zcpolicy.registry.connecting import shut
from zcpolicy.registry.prompt import Prompt, prompt_of
from zcpolicy.registry.record import Record
from zcpolicy.registry.search import matching
from zcpolicy.registry.site import Site
from zcpolicy.registry.sources import USUAL_FOUND, AssemblyError, Run, ToolSources, ToolSpec
from zcpolicy.registry.view import current, is_loaded, offered, visible
from zcpolicy.sealed import Sealed, final


@final
class ScopedToolRegistry(Sealed):
    """The tools of one execution. Made by `ScopedToolRegistry.assemble`.

    Everything is answered for the moment it is asked: a policy that was tightened or a skill that was loaded since
    withholds at once. What was widened since is there in the next registry. Raises SealError if it, or its execution, is forged.
    """

    __slots__ = ("__weakref__",)
    _maker = "`ScopedToolRegistry.assemble`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None: ...

    @staticmethod
    async def assemble(
        execution: ResolvedAgentExecution,
        sources: ToolSources,
        *,
        caller_allowed: Iterable[ToolName] | None = None,
        connect_mcp: bool = True,
        connect_peripherals: bool = True,
        exclude_memory: bool = False,
        exclude_delivery: bool = False,
        deferred: bool = False,
    ) -> "ScopedToolRegistry":
        """The registry of an execution, which has it as `execution.registry` from then on.

        The knobs only narrow or withhold. `caller_allowed`: nothing else is there, an empty one means nothing at all.
        `connect_mcp`, `connect_peripherals`: False touches none. `exclude_memory`, `exclude_delivery`: without the tools
        of these groups. `deferred`: tools of servers are shown only once `tool_search` found them.

        Connections are released by `close`. What could not be had is absent, and `failures` says why. Raises SealError;
        AssemblyError where the host's tools contradict each other, or the execution has a registry that is not closed.
        """
        genuine(execution)
        _refuse_second(execution)
        allowed = caller_names(caller_allowed)
        site = Site(allowed, connect_mcp, connect_peripherals, exclude_memory, exclude_delivery, deferred)
        record = await assembled(execution, sources, site)
        try:
            _refuse_second(execution)
            renewed = execution.renewed()
        except (ResolveError, SealError):
            await shut(record)
            raise
        made: ScopedToolRegistry = object.__new__(ScopedToolRegistry)
        _records[made] = record
        genuine(execution).registry = genuine(renewed).registry = made
        return made

    def names(self) -> tuple[ToolName, ...]:
        """The tools that can be called, deferred ones included."""
        return tuple(visible(_record(self)))

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is to see them now."""
        record = _record(self)
        shown = visible(record).items()
        return tuple(offer.spec for name, offer in shown if not offer.deferred or name in record.active)

    def find(self, wire: str) -> ToolName | None:
        """The tool of a name on the wire, None where this execution may not be shown it."""
        record = _record(self)
        name = record.wires.get(wire)
        return name if name is not None and offered(record, name) is not None else None

    def has(self, name: ToolName) -> bool:
        """Whether a tool is one of `names`."""
        return offered(_record(self), name) is not None

    def meant(self, wire: str) -> ToolName | None:
        """Which tool of the policy a name on the wire means, callable or not: to decide, and say why it is refused."""
        return _record(self).wires.get(wire)

    def search(self, query: str, limit: int = USUAL_FOUND) -> tuple[ToolSpec, ...]:
        """Tools whose name or description has words of the query, best first; deferred ones are shown from then on."""
        record = _record(self)
        found = matching((offer.spec for offer in visible(record).values()), query, limit)
        record.active.update(spec.name for spec in found)
        return found

    @property
    def prompt(self) -> Prompt:
        """The sections for the model's prompt."""
        return prompt_of(_record(self))

    def instructions(self, skill: str) -> str:
        """The instructions of a skill that is loaded. Raises ResolveError."""
        record = _record(self)
        run, source = current(record), record.skills.get(skill)
        if run is None or source is None or not is_loaded(run, skill):
            raise ResolveError(f"skill `{skill[:60]}` is not loaded")
        return source.instructions

    def definition(self, name: ToolName) -> str:
        """The SHA-256 digest of a tool's live definition, hexadecimal; "" for one that is not there."""
        offer = offered(_record(self), name)
        if offer is None:
            return ""
        spec = offer.spec
        told = json.dumps([spec.name, spec.description, spec.parameters], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()

    @property
    def failures(self) -> Mapping[str, str]:
        """What could not be had, and why: servers, `peripherals`, pinned resources."""
        return MappingProxyType(_record(self).failures)

    @property
    def remarks(self) -> Mapping[str, str]:
        """By tool of the host's own, or `skill NAME`, in a sentence: where host and policy do not meet. For the log; no
        model is told.

        A tool or skill that the policy does not have, one that this agent may use and nobody brought, and a tool whose
        parameters are not those of the policy.
        """
        return MappingProxyType(_record(self).remarks)

    @property
    def closed(self) -> bool:
        """Whether it was closed; then it has no tools."""
        return _record(self).closed

    async def close(self) -> None:
        """Releases every connection, each once, however often and from wherever it is called. Never raises."""
        await shut(_record(self))

    def __repr__(self) -> str:
        return "<ScopedToolRegistry>"


_records: WeakKeyDictionary[ScopedToolRegistry, Record] = WeakKeyDictionary()


def _record(registry: object) -> Record:
    found = _records.get(registry) if type(registry) is ScopedToolRegistry else None
    if found is None:
        raise SealError(f"{type(registry).__name__[:60]} is no registry that `ScopedToolRegistry.assemble` made")
    return found


def runner_of(registry: ScopedToolRegistry, name: ToolName) -> Run | None:
    """What runs a tool, None where it may not be shown any more.

    INVARIANT: only `loop/gate.py` calls this, for a call that it has just decided and that it dispatches.
    """
    offer = offered(_record(registry), name)
    return None if offer is None else offer.run


def _refuse_second(execution: ResolvedAgentExecution) -> None:
    for one in (execution, execution.renewed()):
        registry = genuine(one).registry
        if registry is not None and not registry.closed:
            raise AssemblyError("the execution has a registry, which is not closed")
