"""What a host has to offer: its own tools, peripherals, MCP servers, skills. Nothing here decides anything.

In: nothing. Out: the types that `ScopedToolRegistry.assemble` takes, and what a running tool is given.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal, Protocol

from zcpolicy.awaited import is_async
from zcpolicy.facts import ToolName
from zcpolicy.identity import Identity
from zcpolicy.refusals import ResolveError
from zcpolicy.state.caller import Caller
from zcpolicy.tickets import Ticket

Json = Any
Group = Literal["", "memory", "delivery"]

USUAL_FOUND: Final = 10
"""Tools that a search gives where nobody says how many."""


class AssemblyError(ResolveError):
    """A registry that cannot be: the host's tools contradict each other, or the execution has one. Says what is wrong."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers. `ok`: it reports success. `cost`: what it spent, by currency, exact; counted under money limits."""

    text: str
    ok: bool = True
    cost: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])


@dataclass(frozen=True, slots=True)
class InnerCall:
    """A call that a tool wants to make."""

    tool: ToolName
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it. `wire`: its name on the wire; `parameters`: a JSON Schema of type object."""

    name: ToolName
    wire: str
    description: str
    parameters: Mapping[str, Json]


class ToolContext(Protocol):
    """What a running tool may do, all of it within its execution. It cannot approve anything.

    It ends with the call: what a tool kept of it is refused then, what a task that it left behind has under way is cut off.
    """

    @property
    def identity(self) -> Identity: ...

    @property
    def caller(self) -> Caller:
        """Who the call is for: what `handle.scoped` takes. Nothing stands on it."""
        ...

    @property
    def registry(self) -> "RegistryView": ...

    @property
    def memory(self) -> Any:
        """The `zcpolicy.memory.MemoryAccess` of the execution."""
        ...

    async def run(self, calls: Sequence[InnerCall]) -> list[ToolResult]:
        """Runs calls in order; a result for each. Every one is decided before the first runs: if one is refused none runs
        (InnerRefused). One that is refused by the time it is sent is not made, nor are those after it: their results say so.
        """
        ...

    async def delegate(self, agent: str, task: str, *, independent: bool = False) -> ToolResult:
        """Has another agent do a task, as a child of this execution. A child that cannot be is a failed result."""
        ...

    def load_skill(self, skill: str) -> str:
        """Its instructions; its restrictions hold from now on. Raises ResolveError."""
        ...

    def later(self, agent: str = "") -> Ticket:
        """For the host's scheduler, while this call runs: a run may start later, as a bounded child of this execution.

        `agent`: "": the same. Nothing of what bounds the run stands on a ticket. Raises ResolveError.
        """
        ...


class RegistryView(Protocol):
    """What search tools and the like see of the registry: only what the policy lets be shown."""

    def search(self, query: str, limit: int = USUAL_FOUND) -> tuple[ToolSpec, ...]:
        """Tools whose name or description has the words; those deferred are active from then on."""
        ...

    def names(self) -> tuple[ToolName, ...]: ...

    def find(self, wire: str) -> ToolName | None:
        """The tool of a wire name, where it may be shown."""
        ...


Run = Callable[[dict[str, Json], ToolContext], Awaitable[ToolResult | str]]


@dataclass(frozen=True, slots=True)
class HostTool:
    """A tool of the host's own: built in, of a peripheral, or brought by a skill. `group`: what a context strip takes out."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    run: Run
    group: Group = ""

    def __post_init__(self) -> None:
        """Raises TypeError for a plain function: it would hold up everything else while it runs, and could not be cut off."""
        if not is_async(self.run):
            raise TypeError(
                f"`run` of tool `{self.name}` is a plain function: write `async def`, and in it "
                "`await asyncio.to_thread(…)` around what waits"
            )


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as its server lists it."""

    name: str
    description: str
    parameters: Mapping[str, Json]


class ServerRefused(Exception):
    """What a server says instead of an answer: told to the model as its answers are. Whatever else a connection raises is not."""


class McpConnection(Protocol):
    """A connected MCP server. What it refuses is a failed result of `call`, and raised as `ServerRefused` by the others."""

    async def tools(self) -> Sequence[McpTool]: ...

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> ToolResult: ...

    async def resources(self) -> Sequence[str]:
        """URIs."""
        ...

    async def read(self, uri: str) -> str: ...

    async def prompts(self) -> Sequence[str]: ...

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class McpServer:
    """How to connect a server. `pinned`: URIs of resources whose text goes into the prompt, where the policy lets it."""

    connect: Callable[[], Awaitable[McpConnection]]
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillSource:
    """A skill as the host has it: its restrictions stand in the policy under the same name."""

    description: str
    instructions: str
    tools: tuple[HostTool, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSources:
    """All that a host has. `peripherals`: touches hardware only when it is called."""

    builtins: tuple[HostTool, ...] = ()
    peripherals: Callable[[], Awaitable[Sequence[HostTool]]] | None = None
    servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    skills: Mapping[str, SkillSource] = field(default_factory=dict[str, SkillSource])
