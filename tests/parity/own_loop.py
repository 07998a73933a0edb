"""The smallest host with a loop of its own: what it runs goes through the gate, and what it shows comes from the registry.

It keeps no transcript in bounds, counts no requests and looks at no clock: `DIVERGING` says what that costs it.
"""

import asyncio
from functools import partial
from secrets import token_hex

from zcpolicy.facts import Session
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.context import CallContext
from zcpolicy.loop.gate import Paused, Refused, admit, perform
from zcpolicy.loop.messages import Message, ModelRequest, ModelResponse, ToolCall
from zcpolicy.parity.matrix import Status
from zcpolicy.parity.probe import Path, Probe
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import ToolResult
from zcpolicy.resolver import ResolvedAgentExecution

SECONDS = 60.0


async def drive(probe: Probe) -> list[str]:
    """The path, as the harness drives it: the probe's things in place of the host's own."""
    session = probe.session(client="ada", id=token_hex(8), interactive=True)
    return [await turn(probe, session, probe.agent, task) for task in probe.tasks]


async def turn(
    probe: Probe,
    session: Session,
    agent: str,
    text: str,
    above: ResolvedAgentExecution | None = None,
    free: bool = False,
) -> str:
    session.turn = token_hex(8)
    run = probe.resolver.resolve(
        agent,
        session=session,
        surface="own loop",
        narrowing=None if above else probe.narrowing,
        parent=above,
        independent=free,
    )
    registry = await ScopedToolRegistry.assemble(run, probe.sources, **probe.site)
    io = ResolvedIo(probe.approvers, probe.record, delegate=partial(delegated, probe))
    try:
        return await own_loop(run, registry, probe.access(agent), io, text)
    finally:
        run.finish()
        await registry.close()


async def own_loop(
    run: ResolvedAgentExecution, registry: ScopedToolRegistry, access: ResolvedModelAccess, io: ResolvedIo, text: str
) -> str:
    """Asks the model, runs what it calls, until it calls nothing."""
    messages = [Message("user", text)]
    while True:
        response = await asked(access, ModelRequest(registry.prompt.text, tuple(messages), registry.specs()))
        messages.append(Message("assistant", response.text, response.calls))
        if not response.calls:
            return response.text
        for call in response.calls:
            result = await called(run, registry, io, call)
            messages.append(Message("tool", result, call_id=call.id))


async def called(run: ResolvedAgentExecution, registry: ScopedToolRegistry, io: ResolvedIo, call: ToolCall) -> str:
    """The five lines that every loop of a host's own needs."""
    tool = registry.meant(call.wire) or call.wire
    found = await admit(run, tool, call.arguments, io)
    if isinstance(found, Refused):
        return found.text
    if isinstance(found, Paused):
        return "somebody has to be asked first"
    deadline = asyncio.get_running_loop().time() + SECONDS
    return (await perform(found, CallContext(run, io, found.key, deadline), SECONDS)).text


async def asked(access: ResolvedModelAccess, request: ModelRequest) -> ModelResponse:
    async for piece in access.model.stream(request):
        if isinstance(piece, ModelResponse):
            return piece
    raise EOFError("the model has not answered")


async def delegated(
    probe: Probe, above: ResolvedAgentExecution, agent: str, task: str, independent: bool
) -> ToolResult:
    session = probe.session(client=above.session.client, interactive=True, above=above.session)
    try:
        return ToolResult(await turn(probe, session, agent, task, above, independent))
    except ResolveError as error:
        return ToolResult(str(error), ok=False)


PATHS = (Path("own loop", drive),)

NOT_COUNTED = ("limit iterations", "limit tokens", "limit money of the model")
NOT_BOUNDED = ("parallel_tools on", "history", "context", "tool_result", "turn_timeout")
ALMOST = ("limit concurrent calls", "limit money of tools", "limit time", "exclude_memory")

DIVERGING: dict[tuple[str, str], Status] = {
    **{("own loop", setting): "not applied" for setting in (*NOT_COUNTED, *NOT_BOUNDED)},
    **{("own loop", setting): "partly" for setting in ALMOST},
}
