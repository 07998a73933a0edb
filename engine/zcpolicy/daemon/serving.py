"""`zcpolicy serve`: one process that serves agents to many clients, until it is told to stop.

In: `Settings`, a compiler. Out: `Daemon`. It is built in one order, and let go of in the reverse one, whatever fails on the way: what
it keeps, the policy, the host, the ways in. Told to stop, it begins no turn any more, waits for those that run, and cuts off the rest.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final

from zcpolicy.approvals.question import Approvers
from zcpolicy.daemon.approvals import Questions
from zcpolicy.daemon.clients import key_of
from zcpolicy.daemon.doors import Doors
from zcpolicy.daemon.factories import listen, registered
from zcpolicy.daemon.folders import make_own, remove_stale
from zcpolicy.daemon.host import Host, Models
from zcpolicy.daemon.keeping import keep
from zcpolicy.daemon.log.chain import LogError
from zcpolicy.daemon.models import models_of
from zcpolicy.daemon.operating import Operating, SettingsFile
from zcpolicy.daemon.paths.rpc import Rpc
from zcpolicy.daemon.paths.run import Ran, later
from zcpolicy.daemon.paths.step import WorkflowStep, run_procedure
from zcpolicy.daemon.schedule import ScheduleError
from zcpolicy.daemon.servers import Servers
from zcpolicy.daemon.sessions import Seat
from zcpolicy.daemon.settings import HttpSettings, Settings, SettingsError, rates_of
from zcpolicy.daemon.supplies import builtin_tools, mcp_servers, skill_sources
from zcpolicy.daemon.targets import targets_of
from zcpolicy.daemon.tidings import Tidings, of_reload, of_server, of_start
from zcpolicy.daemon.timekeeping import OF_SETTINGS, jobs_of, keep_time
from zcpolicy.daemon.tokens import TokensError
from zcpolicy.daemon.upkeep import keep_up
from zcpolicy.events import Event
from zcpolicy.facts import Narrowing, Session
from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.memory_stores.contract import MemoryUnavailable
from zcpolicy.program import CompiledError, Program, head_of
from zcpolicy.registry.site import OPEN, Site
from zcpolicy.registry.sources import ToolSources
from zcpolicy.reload.generations import Failure, Generations, Reloaded
from zcpolicy.reload.kept import KeptError
from zcpolicy.reload.settling import Settling
from zcpolicy.reload.sources import Compile, PolicySource, Unreadable
from zcpolicy.resolver import Resolver
from zcpolicy.state.caller import Who
from zcpolicy.state.handles import shipped
from zcpolicy.state.handles.channel_map import ChannelMap
from zcpolicy.state.handles.session_cache import SessionCache
from zcpolicy.state.lifecycle import Lifecycle
from zcpolicy.state.minting import MintingError
from zcpolicy.state.versions import SourceVersions
from zcpolicy.tickets import Ticket

if TYPE_CHECKING:
    from zcpolicy.daemon.telemetry import Telemetry

RELEASE_SECONDS: Final = 10.0
"""For what tools share to be released, once the tools are."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_CANNOT_START: Final = (
    SettingsError, TokensError, LedgerUnavailable, MemoryUnavailable, ScheduleError, KeptError, MintingError, Unreadable,
    CompiledError, LogError, OSError, ImportError,
)  # fmt: skip


class StartFailed(Exception):
    """The daemon cannot start, and has let go of all that it had. The message is one line."""


class Daemon:
    """Made of settings; `run` serves. `compiler`: as of `Generations`. `told`: is given a line for whoever watches the daemon.
    `beside`: what is wrong with the settings under a policy, a line each.
    """

    def __init__(
        self,
        settings: Settings,
        compiler: Compile,
        told: Callable[[str], None] = lambda _line: None,
        beside: Callable[[Program], Sequence[str]] = lambda _program: (),
    ) -> None:
        self.settings = settings
        self._file = SettingsFile(settings.file)
        self._beside = beside
        self._findings: tuple[str, ...] = ()
        self._own: frozenset[str] = frozenset()
        self._servers = Servers(settings.mcp, self._server_changed)
        self._compiler = compiler
        self._told = told
        self._stopping = asyncio.Event()
        self._began = monotonic()
        self._versions = SourceVersions()
        self.handles = shipped(self._versions, rates=(lambda: rates_of(settings.rates)) if settings.rates else None)
        self._tools = Lifecycle(self.handles, self._versions)
        self.questions = Questions(settings.operators, lambda: self.host)
        self._telemetry: Telemetry | None = None
        self.addresses: dict[str, str] = {}

    # --- what it does ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serves until `stop`, or SIGTERM, or SIGINT. Raises Broken for a policy with errors, StartFailed for all else."""
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stopped)
        try:
            async with self.serving():
                await self._stopping.wait()
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    def stop(self) -> None:
        """Begins to stop."""
        self._stopping.set()

    def _stopped(self) -> None:
        """A second signal ends the process at once, whatever it does: what is reserved comes back when its lease is over."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        self._told("stopping: no turn begins any more")
        self.stop()

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[Host]:
        """All of it, from the first file to the last open door. Raises Broken, StartFailed."""
        async with AsyncExitStack() as stack:
            try:
                host = await self._built(stack)
                await self._opened(stack, host)
            except _CANNOT_START as error:
                raise StartFailed(_line(error)) from None
            try:
                yield host
            finally:
                cut = await host.doors.close()
                if cut:
                    self._told(f"turns that were cut off: {cut}")

    # --- in the order in which it is built -----------------------------------------------------------------------------

    async def _built(self, stack: AsyncExitStack) -> Host:
        """The host, and all that it stands on. What has to be let go of again is on the stack as soon as it is there."""
        settings = self.settings
        make_own(settings.state.folder)
        models = self.models()
        self._kept = kept = await asyncio.to_thread(keep, settings, stack)
        self._policy = policy = await self._generations()
        await stack.enter_async_context(policy)
        stack.push_async_callback(self._released)
        sources = await self.sources()
        http = settings.http
        doors = Doors(of_client=http.turns, drain=settings.drain) if http else Doors(drain=settings.drain)
        self.host = Host(
            policy.resolver, sources, models, record=self.record, place=self.place, system=settings.session.system,
            doors=doors, minting=kept.minting, approvers=self.approvers(), assembled=self._servers.seen,
        )  # fmt: skip
        self._tidings = Tidings(self.host, kept, settings.agents, self._own, self._told)
        self._began_with(policy)
        for target in targets_of(self.host, self._beside):
            policy.targets.add(target)
        self.host.sessions.ended = self._session_ended
        if http is not None:
            self.host.sessions.conversations = http.sessions
        if settings.telemetry:
            self._observe(stack)
        return self.host

    def _observe(self, stack: AsyncExitStack) -> None:
        """Raises ImportError without the extra."""
        from zcpolicy.daemon.telemetry import Numbers, Telemetry, unheard

        host, policy, ledger = self.host, self._policy, self._kept.ledger
        self._telemetry = telemetry = Telemetry(
            Numbers(
                waiting=lambda: len(self.questions),
                turns=lambda: host.doors.turns,
                generation=lambda: policy.resolver.newest.generation,
                failing=lambda: policy.status()["failure"] is not None,
                ledger=lambda: ledger.now(time()),
                known=lambda tool: tool in policy.resolver.newest.program.tools,
            )
        )
        stack.callback(telemetry.close)
        if unheard():
            self._told(
                "telemetry is on, and nothing exports it: start with `opentelemetry-instrument zcpolicy serve …`"
            )

    async def _generations(self) -> Generations:
        """In a thread: files are waited for until they lie still."""
        policy = self.settings.policy
        source = PolicySource.of_folder(policy.folder) if policy.folder else PolicySource.of_layers(policy.layers)
        return await asyncio.to_thread(
            Generations.start, source, self._compiler, self.settings.state.folder, make=self.resolver,
            max_staleness=policy.max_staleness, bump=lambda: self._versions.bump("policy"), hangup=True,
            record=self._reload_went, follow=policy.watch, how=self.settling,
        )  # fmt: skip

    def _began_with(self, policy: Generations) -> None:
        """Says, and puts on record, under which policy the daemon starts: which may be another than the one that is there."""
        status, newest = policy.status(), policy.resolver.newest
        failure = status["failure"]
        why = {} if failure is None else {"failure": failure}
        self._kept.log.note("policy at start", generation=newest.generation, digest=newest.program.digest, **why)
        self._findings = tuple(self._beside(newest.program))
        if failure is not None:
            self._told(of_start(newest.generation, failure["why"]))
            self._tell_findings(())

    def _tell_findings(self, before: Collection[str]) -> None:
        for one in self._findings:
            if one not in before:
                self._told(f"the settings under this policy: {one}")

    async def _opened(self, stack: AsyncExitStack, host: Host) -> None:
        """The ways in, the schedule first: it needs nobody from outside."""
        settings, kept = self.settings, self._kept
        await self._tidings.look()
        watching = asyncio.create_task(self._tidings.watch())
        stack.push_async_callback(_ended, watching)
        kept.schedule.hold(OF_SETTINGS, jobs_of(settings.schedule, time()))
        timing = asyncio.create_task(keep_time(host, kept.schedule, self._told, self._ran))
        stack.push_async_callback(_ended, timing)
        upkeep = asyncio.create_task(keep_up(host, kept, self.handles, settings.state.keep, self._told))
        stack.push_async_callback(_ended, upkeep)
        for chat in await listen(host, settings.channels, self._told):
            stack.push_async_callback(_ended, chat)
        if settings.rpc is not None:
            make_own(os.path.dirname(settings.rpc))
            remove_stale(settings.rpc)
            await stack.enter_async_context(await Rpc(host, self._on("rpc")).serve(settings.rpc))
            self.addresses["rpc"] = settings.rpc
        if settings.http is not None:
            await self._listening(stack, host)
        on = "".join(f" on {one}" for one in self.addresses.values())
        self._told(f"serving {', '.join(map(self._reached, sorted(settings.agents)))}{on}")

    def _reached(self, agent: str) -> str:
        """An agent, and how people and clocks come to it."""
        settings = self.settings
        ways: list[str] = [*settings.agents[agent].surfaces]
        ways += [f"chat {name}" for name, chat in settings.channels.items() if chat.agent == agent]
        ways += ["schedule"] if any(job.agent == agent for job in settings.schedule) else []
        return f"{agent} ({', '.join(ways) or 'by others only'})"

    async def _listening(self, stack: AsyncExitStack, host: Host) -> None:
        from zcpolicy.daemon.listening import served

        http = self.settings.http
        assert http is not None
        if not http.is_loopback and not self._kept.tokens.needed():
            raise SettingsError(f"others can reach `{http.address}`, and nobody has a token yet")
        port = 0
        serving = self.application(host, http, lambda: port)
        try:
            port = await stack.enter_async_context(served(serving, address=http.address, port=http.port))
        except OSError as error:
            why = os.strerror(error.errno).lower() if error.errno else _line(error)
            raise SettingsError(f"`[http]`: port {http.port} of `{http.address}`: {why}") from None
        stack.push_async_callback(self.questions.close)
        waits = self.settings.operators.routes or self.settings.operators.person
        if waits and not any(one.is_operator and one.revoked is None for one in self._kept.tokens.holders()):
            self._told("questions wait for operators, and none has a token: `zcpolicy token add NAME --operator`")
        name = f"[{http.address}]" if ":" in http.address else http.address
        self.addresses["http"] = f"http://{name}:{port}"

    async def _released(self) -> None:
        for wrong in [*await self._tools.shut_down(), *await self.handles.shut_down(RELEASE_SECONDS)]:
            self._told(f"a tool could not be released: {wrong}")

    def application(
        self,
        host: Host,
        http: HttpSettings,
        port: Callable[[], int],
        *,
        narrowing: Narrowing | None = None,
        site: Site = OPEN,
    ) -> Any:
        """All that answers over HTTP, as an ASGI application."""
        from zcpolicy.daemon.approval_routes import approval_routes
        from zcpolicy.daemon.http import application

        asked = approval_routes(self.questions, lambda holder: host.sessions.client("gateway", key_of(holder)))
        return application(
            host, self._on("gateway"), self._kept.tokens, http,
            self.operating(), port, operator_routes=asked, narrowing=narrowing, site=site,
        )  # fmt: skip

    def _on(self, surface: str) -> tuple[str, ...]:
        return tuple(name for name, agent in self.settings.agents.items() if surface in agent.surfaces)

    # --- what the host is made of; the parity harness has it from elsewhere ---------------------------------------------

    settling = Settling()
    """How long to wait for those who write the policy."""

    def models(self) -> Models:
        """Of the agents. Raises SettingsError."""
        return models_of(self.settings.agents)

    async def sources(self) -> ToolSources:
        """All that tools are taken from. Raises SettingsError."""
        own = builtin_tools(self._kept.memory, self._later, self._steps)
        self._own = frozenset(str(tool.name) for tool in own)
        theirs = await registered(self.settings.factories, self.handles, self._tools, own)
        return ToolSources(
            builtins=(*own, *theirs), servers=mcp_servers(self.settings.mcp), skills=skill_sources(self.settings.skills)
        )

    def resolver(self, program: Program, generation: int, files: tuple[str, ...]) -> Resolver:
        """The first one. `files`: those of the policy."""
        return Resolver(
            program,
            generation=generation,
            policy_files=files,
            protected=self.settings.protected,
            ledger=self._kept.ledger,
        )

    def approvers(self) -> Mapping[str, Approvers]:
        """Whom surfaces can ask."""
        return self.questions.approvers()

    def record(self, event: Event) -> None:
        """Puts on record what happens. Raises LogError: then it does not happen."""
        self._kept.log(event)
        if self._telemetry is not None:
            self._telemetry(event)

    def place(self, session: Session) -> None:
        """What is true in every session. Facts that the policy declares and nobody sets are never there."""
        told = self.settings.session
        session.cwd = told.cwd
        session.context = dict(told.context)
        session.env = {name: value for name in ("HOME", "TMPDIR") if (value := os.environ.get(name))}
        session.server_cwd = {name: one.cwd for name, one in self.settings.mcp.items() if one.command and one.cwd}
        session.resolve_link = os.path.realpath
        declared = head_of(self._policy.resolver.newest.program)["context"]
        session.never = frozenset(declared) - frozenset(told.context)  # a rule that needs one is refused, by name

    def _session_ended(self, seat: Seat) -> None:
        """What tools keep for a session is gone with it."""
        who = Who(seat.session.client, seat.agent, seat.session.id, "")
        self.handles.find(SessionCache)[1].end(who)
        self.handles.find(ChannelMap)[1].close(who)

    def _later(self, ticket: Ticket, text: str, after: float, every: float | None) -> str:
        return later(self.host, self._kept.schedule, ticket, text, time() + after, every=every)

    async def _steps(self, ticket: Ticket, steps: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
        wanted = tuple(WorkflowStep(prompt, agent) for agent, prompt in steps)
        return [(one.agent, one.status, one.text) for one in await run_procedure(self.host, ticket, wanted)]

    def _ran(self, ran: Ran) -> None:
        if ran.refused:
            self._told(f"a scheduled run of agent {ran.job.agent} did not begin: {ran.refused}")

    def _reload_went(self, done: Reloaded | Failure) -> None:
        """A new generation, a failure that is another than the last, or a policy that is good again."""
        went, newest = isinstance(done, Reloaded), self._policy.resolver.newest
        self._told(of_reload(done))
        if isinstance(done, Reloaded):
            before, self._findings = self._findings, tuple(self._beside(newest.program))
            self._tell_findings(before)
            told = {
                "changed": list(done.changed), "new": done.is_new, "digest": newest.program.digest, "findings": [*self._findings],
            }  # fmt: skip
        else:
            told = done.to_json()
        if self._telemetry is not None and (isinstance(done, Failure) or done.is_new):
            self._telemetry.reloaded(went=went)
        self._kept.log.note("reload", **{**told, "went": went, "generation": done.generation})

    def _server_changed(self, name: str, why: str) -> None:
        self._told(of_server(name, why))
        self._tidings.note("server", what=name, there=not why, **({"why": why} if why else {}))

    def operating(self) -> Operating:
        """What operators see and do."""
        return Operating(
            self.settings, self.host, self._kept, self._policy, self._tools, self.handles, self.questions,
            self.addresses, self._servers, self._tidings, self._file, lambda: self._findings, self._began,
        )  # fmt: skip


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))


def _line(error: BaseException) -> str:
    """What went wrong, on one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f"`{error.filename}`: " if error.filename else ""
        return f"{where}{error.strerror.lower()}"
    return " ".join(str(error).split()) or type(error).__name__
