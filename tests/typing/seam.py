"""The seam takes sealed executions and nothing else: no list of tools, no registry of a host's own, no text for a scope."""

import dataclasses
from collections.abc import Sequence

from zcpolicy import ResolvedAgentExecution, Session
from zcpolicy.approvals.outcome import Approved
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.admitted import Admitted
from zcpolicy.loop.gate import admit
from zcpolicy.loop.loop import TurnResult, run_tool_call_loop
from zcpolicy.loop.messages import Message
from zcpolicy.memory import MemoryScope
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import HostTool, ToolSources


async def loop_over_tools(tools: Sequence[HostTool], model: ResolvedModelAccess, io: ResolvedIo) -> TurnResult:
    return await run_tool_call_loop(tools, model, io, [Message("user", "go")])  # error: expected "ResolvedAgentExecution" || is not assignable to "ResolvedAgentExecution"


async def loop_over_a_registry(registry: ScopedToolRegistry, model: ResolvedModelAccess, io: ResolvedIo) -> TurnResult:
    return await run_tool_call_loop(registry, model, io, [Message("user", "go")])  # error: expected "ResolvedAgentExecution" || is not assignable to "ResolvedAgentExecution"


async def gate_by_name(io: ResolvedIo) -> object:
    return await admit("coder", "shell", {}, io)  # error: expected "ResolvedAgentExecution" || is not assignable to "ResolvedAgentExecution"


async def registry_of_a_session(session: Session, sources: ToolSources) -> ScopedToolRegistry:
    return await ScopedToolRegistry.assemble(session, sources)  # error: expected "ResolvedAgentExecution" || is not assignable to "ResolvedAgentExecution"


def make_a_registry(run: ResolvedAgentExecution) -> ScopedToolRegistry:
    return ScopedToolRegistry(run)  # error: expected "Never" || is not assignable to type "Never"


def make_an_admitted_call() -> Admitted:
    return Admitted()  # error: Too few arguments for "Admitted" || Expected 1 more positional argument


def make_a_yes(run: ResolvedAgentExecution) -> Approved:
    return Approved(run)  # error: expected "Never" || is not assignable to type "Never"


def make_a_scope() -> MemoryScope:
    return MemoryScope("team")  # error: expected "Never" || is not assignable to type "Never"


async def remember_by_name(store: InMemoryStore) -> None:
    await store.add("team", "a fact")  # error: expected "MemoryScope" || is not assignable to "MemoryScope"


def exchange_a_part(run: ResolvedAgentExecution, session: Session) -> ResolvedAgentExecution:
    return dataclasses.replace(run, session=session)  # error: cannot be "ResolvedAgentExecution" || is incompatible with protocol "DataclassInstance"


def alter_an_execution(run: ResolvedAgentExecution, session: Session) -> None:
    run.session = session  # error: Cannot assign to final attribute "session" || "session" is declared as Final


class MyExecution(ResolvedAgentExecution):  # error: Cannot inherit from final class || is marked final and cannot be subclassed
    pass


class MyRegistry(ScopedToolRegistry):  # error: Cannot inherit from final class || is marked final and cannot be subclassed
    pass
