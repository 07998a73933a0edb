"""A small host for tests: a policy, tools that note what they were given, a model that follows a script."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import policy_lang
from zcpolicy import Narrowing, ResolvedAgentExecution, Resolver, Session
from zcpolicy.approvals.question import Approvers
from zcpolicy.events import Event
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.loop.access import Delegate, ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.loop import TurnResult, TurnState, run_tool_call_loop
from zcpolicy.loop.messages import Message, Model
from zcpolicy.loop.scripted import ScriptedModel, Step
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import HostTool, SkillSource, ToolContext, ToolResult, ToolSources

TOOLS = """
tool look(at: string)                                  risk read
tool fetch(url: url)                                   risk read
tool mail(to: string, body?: string = "hello")         risk medium
tool shell(command: shell)                             risk high
tool pipeline(steps: list<object>) runs tools          risk medium
tool load_skill(skill: string)                         risk low
tool hand_over(agent: string, task: string)            risk medium
label untrusted
"""
NEEDS = {
    "look": ["at"], "fetch": ["url"], "mail": ["to"], "shell": ["command"], "load_skill": ["skill"], "hand_over": ["agent", "task"],
}  # fmt: skip
"""The arguments that a tool wants, all of them text."""


def parameters(tool: str) -> dict[str, Any]:
    """Its JSON Schema, as a model is shown it."""
    wanted = NEEDS.get(tool, [])
    return {"type": "object", "properties": {name: {"type": "string"} for name in wanted}, "required": wanted}


Does = Callable[[dict[str, Any], ToolContext], Awaitable[ToolResult | str]]


@dataclass
class Stage:
    """`ran`: the calls that reached a tool, in order. `events`: what was put on record."""

    resolver: Resolver
    session: Session
    run: ResolvedAgentExecution
    tools: dict[str, Does]
    skills: Mapping[str, SkillSource]
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list[tuple[str, dict[str, Any]]])
    events: list[Event] = field(default_factory=list[Event])
    heard: list[str] = field(default_factory=list[str])
    approvers: Approvers = field(default_factory=Approvers)
    delegate: Delegate | None = None

    @property
    def io(self) -> ResolvedIo:
        more: dict[str, Any] = {} if self.delegate is None else {"delegate": self.delegate}
        return ResolvedIo(self.approvers, self.events.append, self.heard.append, **more)

    def tool(self, name: str) -> HostTool:
        async def work(arguments: dict[str, Any], context: ToolContext) -> ToolResult | str:
            self.ran.append((name, arguments))
            does = self.tools.get(name)
            return f"{name} is done" if does is None else await does(arguments, context)

        return HostTool(name, f"does {name}", parameters(name), work)

    async def assemble(self, run: ResolvedAgentExecution | None = None) -> ScopedToolRegistry:
        names = [name for name in self.resolver.program.tools if isinstance(name, str)]
        sources = ToolSources(builtins=tuple(map(self.tool, names)), skills=self.skills)
        return await ScopedToolRegistry.assemble(run or self.run, sources)

    async def turn(
        self,
        model: Model,
        *,
        messages: Sequence[Message] = (Message("user", "go"),),
        resume: TurnState | None = None,
        **access: Any,
    ) -> TurnResult:
        """One turn of the execution, whose registry is made for it."""
        registry = await self.assemble()
        try:
            return await run_tool_call_loop(
                self.run, ResolvedModelAccess(model, **access), self.io, messages, system="be good", resume=resume
            )
        finally:
            await registry.close()

    @property
    def names(self) -> list[str]:
        """The tools that ran."""
        return [name for name, _ in self.ran]

    def open_reservations(self) -> list[str]:
        """The keys of what is neither settled nor given back."""
        return [entry.key for entry in self.resolver.ledger.entries() if entry.state in ("reserved", "dispatched")]


def stage(
    rules: str,
    *,
    above: str = "",
    agent: str = "a",
    session: Session | None = None,
    narrowing: Narrowing | None = None,
    ledger: Ledger | None = None,
    skills: Mapping[str, SkillSource] | None = None,
    **tools: Does,
) -> Stage:
    """Agent `a` of these rules. `above`: statements at the top of the file. `tools`: what some tools do."""
    program = policy_lang.loads(f"zcpolicy 1\n{TOOLS}\n{above}\nagent a {{\n{rules}\n}}\n")
    resolver = Resolver(program, ledger=ledger)
    facts = session or Session(interactive=True, client="c", id="s")
    run = resolver.resolve(agent, session=facts, narrowing=narrowing)
    return Stage(resolver, facts, run, tools, skills or {})


def told(result: TurnResult) -> list[str]:
    """The answers to calls that the model was given."""
    return [message.text for message in result.messages if message.role == "tool"]


def play(on: Stage, *steps: Step, **more: Any) -> tuple[TurnResult, ScriptedModel]:
    """One turn, from start to end."""
    model = ScriptedModel(*steps)
    return asyncio.run(on.turn(model, **more)), model
