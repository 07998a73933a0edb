"""The reference host: what it owns, and the one function through which every path builds its turn.

In: a resolver, tools, models, approvers, a recorder. Out: `Host`, whose `turn` goes session → execution → registry → loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import time
from typing import Any, Final

from zcpolicy.approvals.asking import at_work
from zcpolicy.approvals.question import Approvers
from zcpolicy.daemon.doors import Doors, NotNow
from zcpolicy.daemon.order import Order, TurnRefused, bounds
from zcpolicy.daemon.paths.delegate import delegated
from zcpolicy.daemon.schedule import Line
from zcpolicy.daemon.sessions import Place, Sessions
from zcpolicy.events import Event, nowhere
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import FactsError, ToolName
from zcpolicy.identity import Identity
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.loop import TurnResult, run_tool_call_loop
from zcpolicy.program import CompiledError, Program
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import ToolSources, ToolSpec
from zcpolicy.registry.view import servers_of
from zcpolicy.resolver import Resolver
from zcpolicy.state.minting import Minting
from zcpolicy.tickets import Ticket, redeemed

Models = Mapping[str, ResolvedModelAccess] | Callable[[str], ResolvedModelAccess]
"""The model of each agent, by its name. A callable raises LookupError for an agent that has none."""

SUSPENDED_SECONDS: Final = 30.0
"""After which a client may try again where the policy decides nothing."""

Assembled = Callable[[Sequence[ToolName], Mapping[str, str]], None]
"""Is told the tools that a turn has, and what it could not have: by server, why."""

_CANNOT_BE: Final = (ResolveError, CompiledError, FactsError)
"""What says that an execution, or its registry, cannot be."""


class Host:
    """What a host owns. `approvers`: by surface, `""` for those that are not named. `place`: fills in the facts of a
    new session. `system`: the host's own prompt. `doors`: whether a turn may begin now; by default it always may.
    `minting`: names its clients; without one their ids last as long as the process. `assembled`: is told of every turn's tools.
    """

    def __init__(
        self,
        resolver: Resolver,
        sources: ToolSources,
        models: Models,
        *,
        approvers: Mapping[str, Approvers] | None = None,
        record: Callable[[Event], None] = nowhere,
        place: Place | None = None,
        system: str = "",
        doors: Doors | None = None,
        minting: Minting | None = None,
        assembled: Assembled = lambda _tools, _failures: None,
    ) -> None:
        self.resolver = resolver
        self.sources = sources
        self.models = models
        self.approvers = dict(approvers or {})
        self.record = record
        self.sessions = Sessions(place, minting)
        self.system = system
        self.doors = doors if doors is not None else Doors()
        self._assembled = assembled

    def publish(self, program: Program) -> None:
        """A new generation: what runs already takes it on before its next call."""
        self.resolver = self.resolver.publish(program)

    async def turn(self, order: Order) -> TurnResult:
        """One turn of one agent: the only way to one. Raises TurnRefused, and then nothing ran."""
        try:
            with self.doors.turn(order.seat.session.client, surface=order.surface):
                return await self._turn(order)
        except TurnRefused as refused:
            self.refused(order, (refused.why if isinstance(refused, NotNow) else "") or str(refused))
            raise

    async def _turn(self, order: Order) -> TurnResult:
        seat = order.seat
        async with seat.busy:
            if order.resume and seat.paused is None:
                raise TurnRefused("no turn waits here")
            run = self.execution(order)
            model = self._model(run.agent)
            registry = await self.registry(run, order)
            messages = seat.messages if order.resume else seat.said(order.text)
            waiting = seat.paused if order.resume else None
            seat.agent, seat.order = run.agent, order
            try:
                result = await run_tool_call_loop(
                    run, model, self.io(order), messages, system=self.system, resume=waiting
                )
            finally:
                seat.order = None
                await registry.close()
            seat.keep(result)
            return result

    async def tools(self, order: Order) -> tuple[ToolSpec, ...]:
        """What a turn would be offered, as far as it can be told without connecting anything. Raises TurnRefused."""
        run = self.execution(order)
        registry = await self.registry(run, order, listing=True)
        try:
            return registry.specs()
        finally:
            await registry.close()

    def left_out(self, order: Order) -> list[str]:
        """The servers that a turn would connect, and `tools` does not. Raises TurnRefused."""
        return sorted(servers_of(self.execution(order)) & self.sources.servers.keys()) if order.site.connect_mcp else []

    async def remarks(self, order: Order) -> Mapping[str, str]:
        """Where the host's tools and skills and the policy's do not meet for an agent: as `ScopedToolRegistry.remarks`. Raises TurnRefused."""
        run = self.execution(order)
        registry = await self.registry(run, order, listing=True)
        try:
            return dict(registry.remarks)
        finally:
            await registry.close()

    def refused(self, order: Order, why: str) -> None:
        """Puts on record that a turn could not be built."""
        session, above = order.seat.session, order.parent
        line = () if above is None else tuple((one.agent, one.session.id) for one in (above, *above.above()))
        who = Identity(order.agent, session.client, session.id, session.turn, order.surface, len(line), line)
        self.record(Event("failed", session.clock(), who, {"refused": why}))

    # --- the steps of a turn -------------------------------------------------------------------------------------

    def execution(self, order: Order) -> ResolvedAgentExecution:
        """The agent at work, under the newest generation. Raises TurnRefused, NotNow."""
        if order.seat.agent not in ("", order.agent):
            raise TurnRefused(f"this session is one of agent `{order.seat.agent}`")
        if order.parent is None and at_work():
            raise TurnRefused("a tool has no turns but below its own call")
        try:
            return self.resolver.resolve(
                order.agent,
                session=order.seat.session,
                surface=order.surface,
                narrowing=bounds(order),
                parent=order.parent,
                skills=order.skills,
                independent=order.independent,
                later=order.later,
            )
        except _CANNOT_BE as error:
            if why := self.resolver.newest.suspended:
                raise NotNow("no policy is in force here", SUSPENDED_SECONDS, for_all=True, why=why) from None
            raise TurnRefused(str(error)) from None

    def resumed(self, ticket: Mapping[str, Any], line: Line) -> ResolvedAgentExecution:
        """The execution that a ticket tells of. `line`: the sessions that it names. Raises TurnRefused."""
        try:
            return self.resolver.resume(ticket, self.sessions.restored(line).get)
        except _CANNOT_BE as error:
            refused = Identity(str(ticket.get("agent")), "", "", "", "ticket", 0, ())
            self.record(Event("failed", time(), refused, {"refused": str(error)}))
            raise TurnRefused(str(error)) from None

    def of_call(self, ticket: Ticket) -> tuple[ResolvedAgentExecution, str, Order]:
        """The execution of a call that runs, the agent that its ticket is for, and the order of its turn. Raises
        ResolveError for a ticket of no such call.
        """
        run, agent = redeemed(ticket)
        seat = self.sessions.seat(run.session.id)
        if seat is None or seat.session is not run.session or seat.order is None:
            raise ResolveError("the call is none of a turn of this host")
        return run, agent, seat.order

    async def registry(self, run: ResolvedAgentExecution, order: Order, *, listing: bool = False) -> ScopedToolRegistry:
        """Its tools. Raises TurnRefused."""
        site = order.site
        try:
            registry = await ScopedToolRegistry.assemble(
                run,
                self.sources,
                caller_allowed=site.caller_allowed,
                connect_mcp=site.connect_mcp and not listing,
                connect_peripherals=site.connect_peripherals and not listing,
                exclude_memory=site.exclude_memory,
                exclude_delivery=site.exclude_delivery,
                deferred=site.deferred,
            )
        except _CANNOT_BE as error:
            raise TurnRefused(str(error)) from None
        self._assembled(registry.names(), registry.failures)
        return registry

    def io(self, order: Order) -> ResolvedIo:
        """Ways to the outside: those of the order, and of everything below it."""
        return ResolvedIo(order.approvers, self.record, order.emit, partial(delegated, self, order), order.waits)

    def _model(self, agent: str) -> ResolvedModelAccess:
        """Raises TurnRefused."""
        try:
            return self.models(agent) if callable(self.models) else self.models[agent]
        except LookupError:
            raise TurnRefused(f"agent `{agent}` has no model") from None

    def asked_on(self, surface: str) -> Approvers:
        """Whom a surface can ask."""
        return self.approvers.get(surface, self.approvers.get("", Approvers()))
