"""A loop of one's own that runs the tools of a registry: the host's, a skill's, and those of MCP servers, all in the same way.

`Host` is the whole of it. `main` shows it at work; `PATHS` is what the parity harness drives.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path as File
from secrets import token_hex
from typing import Any

import policy_lang
from zcpolicy import (
    Approvers,
    Event,
    HostTool,
    Lapsed,
    McpServer,
    Message,
    ModelRequest,
    ModelResponse,
    Narrowing,
    Paused,
    Refused,
    ResolvedAgentExecution,
    ResolvedIo,
    ResolvedModelAccess,
    ResolveError,
    Resolver,
    ScopedToolRegistry,
    ScriptedModel,
    Session,
    SkillSource,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSources,
    admit,
    calls,
    load_skill_tool,
    perform,
)
from zcpolicy.parity.probe import ParityPath, Probe
from zcpolicy.registry.sources import McpTool

MAX_ROUNDS = 3
"""Times that one call is admitted, where the rules change just as it is sent."""


class Host:
    """What a host owns, and its loop."""

    def __init__(
        self,
        resolver: Resolver,
        sources: ToolSources,
        access: Callable[[str], ResolvedModelAccess],
        approvers: Approvers,
        record: Callable[[Event], None],
        below: Callable[[Session], Session],
        site: Mapping[str, Any],
    ) -> None:
        """`access`: the model of an agent. `below`: a child's session. `site`: what is withheld from every registry."""
        self.resolver = resolver
        self.sources = sources
        self.access = access
        self.approvers = approvers
        self.record = record
        self.below = below
        self.site = site

    async def turn(self, session: Session, agent: str, text: str, **terms: Any) -> str:
        """One turn. `terms`: of `resolve`: a narrowing; for a child `parent` and `independent`."""
        session.turn = token_hex(8)  # limits per turn count by it
        run = self.resolver.resolve(agent, session=session, surface="own loop", **terms)
        registry = await ScopedToolRegistry.assemble(run, self.sources, **self.site)
        io = ResolvedIo(self.approvers, self.record, delegate=self.delegated)
        try:
            return await self.loop(run, registry, io, text)
        finally:
            run.finish()  # what marked this session marks the one above
            await registry.close()

    async def loop(self, run: ResolvedAgentExecution, registry: ScopedToolRegistry, io: ResolvedIo, text: str) -> str:
        """Asks the model, runs what it calls, until it calls nothing."""
        access, messages = self.access(run.agent), [Message("user", text)]
        while True:
            request = ModelRequest(registry.prompt.text, tuple(messages), registry.specs())
            response = await asked(access, request)
            messages.append(Message("assistant", response.text, response.calls))
            if not response.calls:
                return response.text
            for call in response.calls:
                told = await act(run, registry, io, call)
                messages.append(Message("tool", told, call_id=call.id))

    async def delegated(self, above: ResolvedAgentExecution, agent: str, task: str, independent: bool) -> ToolResult:
        """A sub-agent's turn, for tools that delegate."""
        session = self.below(above.session)
        try:
            return ToolResult(await self.turn(session, agent, task, parent=above, independent=independent))
        except ResolveError as error:
            return ToolResult(str(error), ok=False)


async def act(run: ResolvedAgentExecution, registry: ScopedToolRegistry, io: ResolvedIo, call: ToolCall) -> str:
    """One call that the model wants: what the model is told of it."""
    tool = registry.meant(call.wire) or call.wire  # (1) the wire name means a tool of the policy, callable or not
    key = token_hex()  # of this one call
    for _ in range(MAX_ROUNDS):
        found = await admit(run, tool, call.arguments, io, key=key)  # (2) decide, ask, reserve, mark
        if isinstance(found, Refused):
            return found.text
        if isinstance(found, Paused):
            return "Somebody has to be asked first."
        try:
            result = await perform(found, io)  # (3) start, run, finish
        except Lapsed:
            continue
        return result.text if result.ok else f"[failed] {result.text}"
    return "The rules change too fast for this call. Go on without it."


async def asked(access: ResolvedModelAccess, request: ModelRequest) -> ModelResponse:
    """What a model answers."""
    async for piece in access.model.stream(request):
        if isinstance(piece, ModelResponse):
            return piece
    raise EOFError("the model has not answered")


# --- what it runs here ---------------------------------------------------------------------------------------------


async def note(arguments: dict[str, Any], context: ToolContext) -> str:
    """A tool of the host's own."""
    return f"noted for {context.identity.client}: {arguments['text']}"


class Mail:
    """A server, in this process so that the example needs none: `StdioServer(…).connect` and `HttpServer(…).connect` give the same."""

    async def tools(self) -> Sequence[McpTool]:
        return [McpTool("read", "Reads a mail.", {"type": "object", "properties": {"id": {"type": "string"}}})]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        return ToolResult(f"mail {arguments['id']}: note this for me")

    async def resources(self) -> Sequence[str]:
        return []

    async def read(self, uri: str) -> str:
        raise LookupError(uri)

    async def prompts(self) -> Sequence[str]:
        return []

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        raise LookupError(name)

    async def close(self) -> None:
        """Nothing is open."""


async def connect() -> Mail:
    """What a connector does."""
    return Mail()


TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SOURCES = ToolSources(
    builtins=(HostTool("note", "Keeps a note.", TEXT, note), load_skill_tool()),
    servers={"mail": McpServer(connect)},
    skills={"tidy": SkillSource("how to tidy up", "Read the mail; note what matters.")},
)


def show(event: Event) -> None:
    """A recorder: calls, as they end."""
    if event.kind == "call" and event.data["phase"] in ("finished", "refused"):
        tool = json.loads(event.data["decision"])["tool"]
        print(f"  {event.data['phase']}: {tool if isinstance(tool, str) else '/'.join(tool)}")


async def main() -> None:
    """Two turns of one session."""
    model = ScriptedModel(
        calls(("note", {"text": "a lamp"}), ("load_skill", {"skill": "tidy"})),
        calls(("mail__read", {"id": "m1"})),
        "I have read it.",
        calls(("note", {"text": "what the mail said"})),
        "I may not keep that.",
    )
    resolver = Resolver(policy_lang.load(File(__file__).with_name("desk.zcpolicy")))
    host = Host(resolver, SOURCES, lambda _agent: ResolvedModelAccess(model), Approvers(), show, below, {})
    session = Session(client="ada", id="s1")
    for task in ("tidy up", "keep what it said"):
        print("ada:", task)
        print("clerk:", await host.turn(session, "clerk", task))
    print("the model was shown", ", ".join(spec.wire for spec in model.requests[0].tools))
    for request in (model.requests[2], model.requests[4]):
        print(*[f"  told: {message.text}" for message in request.messages if message.role == "tool"], sep="\n")


def below(above: Session) -> Session:
    """A child's session."""
    return Session(client=above.client, above=above)


# --- what the harness drives ---------------------------------------------------------------------------------------


async def drive(probe: Probe) -> list[str]:
    """The same host, with the probe's things in place of its own."""
    child = partial(probe.session, interactive=True)
    host = Host(
        probe.resolver, probe.sources, probe.access, probe.approvers, probe.record,
        lambda above: child(client=above.client, above=above), probe.site,
    )  # fmt: skip
    session = probe.session(client="ada", id=token_hex(8), interactive=True)
    narrowing: Narrowing | None = probe.narrowing
    return [await host.turn(session, probe.agent, task, narrowing=narrowing) for task in probe.tasks]


PATHS = (ParityPath("own loop", drive),)

if __name__ == "__main__":
    asyncio.run(main())
