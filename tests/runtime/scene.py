"""A small host for the scenarios: tools that note what reached them, real servers, models that follow scripts.

Each turn is built as a host builds it: resolve, assemble, loop, close.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from policy_lang import loads
from tests.clock import Clock
from tests.person import Person
from zcpolicy import Resolver, Session
from zcpolicy.approvals.question import Approve, Approver, Approvers, Reject
from zcpolicy.events import Event
from zcpolicy.facts import ToolName
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.loop import TurnResult, TurnState, run_tool_call_loop
from zcpolicy.loop.messages import Message
from zcpolicy.loop.scripted import ScriptedModel, Step, calls
from zcpolicy.registry.host_tools import pipeline_tool
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import HostTool, McpServer, ToolContext, ToolResult, ToolSources

TOOLS: Final = """zcpolicy 1
tool look(at: string)                          risk read
tool read(path: path)                          risk read
tool write(path: path, text?: string = "")     risk medium
tool shell(command: shell)                     risk high
tool mail(to: string, body?: string = "hello") risk medium
tool note(rest: any)                           risk low
tool pay(amount: number)                       risk low
tool pipeline(steps: list<object>) runs tools  risk low
label untrusted
"""
"""The host's own tools; a scenario adds what it needs of servers and agents."""
HOST: Final = ("look", "read", "write", "shell", "mail", "note", "pay")
SERVERS: Final = Path(__file__).parents[1] / "servers"
YES: Final = Approve(by="ada")
EXACT: Final = Approve("exact", by="ada")
NO: Final = Reject("not now", "ada")

compiled: Final = cache(loads)
"""A program is the same for all scenes: each has a resolver of its own."""

Does = Callable[[dict[str, Any], ToolContext], Awaitable[ToolResult | str]]


@dataclass(frozen=True)
class Turn:
    """How a turn went."""

    result: TurnResult
    model: ScriptedModel

    @property
    def told(self) -> list[str]:
        """The answers to calls that the model was given."""
        return [one.text for one in self.result.messages if one.role == "tool"]


class Scene:
    """A policy in force. `ran`: the calls that reached a host's tool, in order. `does`: what some of them do."""

    def __init__(
        self,
        policy: str,
        *,
        ledger: Ledger | None = None,
        protected: Iterable[str] = (),
        servers: Mapping[str, McpServer] | None = None,
        clock: Clock | None = None,
        **does: Does,
    ) -> None:
        self.clock = clock or Clock()
        self.resolver = Resolver(compiled(TOOLS + policy), ledger=ledger, protected=protected)
        self.ran: list[tuple[ToolName, dict[str, Any]]] = []
        self.events: list[Event] = []
        self.does = does
        self.sources = ToolSources((*map(self._tool, HOST), pipeline_tool()), servers=dict(servers or {}))
        self.session = self.seat()

    def seat(self, id: str = "s1", client: str = "ann", **facts: Any) -> Session:
        """The facts of a session."""
        given: dict[str, Any] = {"cwd": "/w", "interactive": True, "clock": self.clock, **facts}
        return Session(id=id, client=client, **given)

    def publish(self, policy: str) -> None:
        """Another policy from now on."""
        self.resolver.publish(compiled(TOOLS + policy))

    async def turn(
        self,
        *steps: Step,
        agent: str = "worker",
        session: Session | None = None,
        person: Approver | None = None,
        routes: Mapping[str, Approver] | None = None,
        messages: Sequence[Message] = (Message("user", "go"),),
        resume: TurnState | None = None,
        record: Callable[[Event], None] | None = None,
        access: Mapping[str, Any] | None = None,
        **resolving: Any,
    ) -> Turn:
        """One turn, from the resolver to its end. `record`: hears of each event as well."""
        run = self.resolver.resolve(agent, session=session or self.session, **resolving)
        registry = await ScopedToolRegistry.assemble(run, self.sources)
        model = ScriptedModel(*steps, name="large")

        def heard(event: Event) -> None:
            self.events.append(event)
            if record is not None:
                record(event)

        io = ResolvedIo(Approvers(person, dict(routes or {})), heard)
        try:
            result = await run_tool_call_loop(
                run, ResolvedModelAccess(model, **(access or {})), io, messages, resume=resume
            )
        finally:
            await registry.close()
        return Turn(result, model)

    def play(self, *steps: Step, **more: Any) -> Turn:
        """One turn by itself."""
        return asyncio.run(self.turn(*steps, **more))

    def call(self, wire: str, arguments: Mapping[str, Any] | str, *answers: object, **more: Any) -> str:
        """A turn with one call: `ran`, or why not. `answers`: of the person; each of them must be asked for."""
        before, person = len(self.events), Person(*answers)
        self.play(calls((wire, arguments)), "done", person=person, **more)
        assert person.answers == [], "nobody was asked"
        return self.ends(before)[-1]

    def ends(self, since: int = 0) -> list[str]:
        """What became of each call: `ran`, or the reason why it did not."""
        data = [event.data for event in self.events[since:] if event.kind == "call"]
        ended = [one for one in data if one["phase"] in ("finished", "refused")]
        return ["ran" if one["phase"] == "finished" else str(one["reason"]) for one in ended]

    @property
    def names(self) -> list[ToolName]:
        """The tools that ran."""
        return [name for name, _ in self.ran]

    def _tool(self, name: str) -> HostTool:
        async def work(arguments: dict[str, Any], context: ToolContext) -> ToolResult | str:
            self.ran.append((name, arguments))
            does = self.does.get(name)
            return f"{name} is done" if does is None else await does(arguments, context)

        return HostTool(name, f"Does {name}.", {"type": "object", "properties": {}}, work)


def forge(log: Path) -> McpServer:
    """A real server, started as a process. `log`: where it writes what reaches it."""
    from zcpolicy.registry.mcp_servers import StdioServer  # a second of work, which most scenarios do not need

    return McpServer(StdioServer(sys.executable, (str(SERVERS / "forge.py"),), env={"FORGE_LOG": str(log)}).connect)


def reached(log: Path) -> list[str]:
    """The calls that reached a server."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [line for line in lines if line not in ("start", "end")]
