"""The seam with nothing around it: what every path of a host comes down to, and what their observations must equal.

In: a `Probe`. Out: `ALONE`, paths, `DIRECT` and `UNATTENDED` among them. It shows that the loop honours a setting once it is there (layer 1); a host's paths
show that it gets there (layer 2).
"""

from dataclasses import replace
from functools import partial
from typing import Final

from zcpolicy.approvals.question import Approvers
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import Narrowing
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.loop import run_tool_call_loop
from zcpolicy.loop.messages import Message
from zcpolicy.loop.turn import TurnResult
from zcpolicy.parity.probe import ParityPath, Probe
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import ToolResult


async def drive(probe: Probe) -> list[str]:
    """The probe's tasks as turns of one session, with a person at the other end."""
    return await _turns(probe, probe.approvers, attended=True)


async def drive_unattended(probe: Probe) -> list[str]:
    """The same with nobody there: only routes are asked."""
    return await _turns(probe, replace(probe.approvers, person=None), attended=False)


async def drive_apart(probe: Probe) -> list[str]:
    """The same, each in a session of its own."""
    return await _turns(probe, probe.approvers, attended=True, apart=True)


async def drive_unattended_apart(probe: Probe) -> list[str]:
    """With nobody there, and each in a session of its own."""
    return await _turns(probe, replace(probe.approvers, person=None), attended=False, apart=True)


async def _turns(probe: Probe, approvers: Approvers, *, attended: bool, apart: bool = False) -> list[str]:
    session = probe.session(client="ada", id="direct", interactive=attended)
    transcript: list[Message] = []
    told: list[str] = []
    for number, task in enumerate(probe.tasks):
        if apart and number:
            session = probe.session(client="ada", id=f"direct {number}", interactive=attended)
            transcript = []
        run = probe.resolver.resolve(probe.agent, session=session, surface="direct", narrowing=_bounds(probe))
        result = await _turn(probe, approvers, run, [*transcript, Message("user", task)])
        transcript = [*result.messages]
        told.append(result.text if result.status == "done" else result.reason)
    return told


def _bounds(probe: Probe) -> Narrowing | None:
    """Memory that is withheld from the tools is withheld from the run, and so from all that it starts."""
    if probe.site.get("exclude_memory"):
        return Narrowing(exclude_memory=True)
    return probe.narrowing


async def _turn(probe: Probe, approvers: Approvers, run: ResolvedAgentExecution, messages: list[Message]) -> TurnResult:
    registry = await ScopedToolRegistry.assemble(run, probe.sources, **probe.site)
    io = ResolvedIo(approvers, probe.record, delegate=partial(_delegated, probe, approvers))
    try:
        return await run_tool_call_loop(run, probe.access(run.agent), io, messages)
    finally:
        await registry.close()


async def _delegated(
    probe: Probe, approvers: Approvers, above: ResolvedAgentExecution, agent: str, task: str, independent: bool
) -> ToolResult:
    """A child in a session of its own."""
    session = probe.session(client=above.session.client, interactive=above.session.interactive, above=above.session)
    try:
        run = above.resolver.resolve(agent, session=session, surface="delegate", parent=above, independent=independent)
    except ResolveError as error:
        return ToolResult(str(error), ok=False)
    return (await _turn(probe, approvers, run, [Message("user", task)])).for_delegator()


DIRECT: Final = ParityPath("direct", drive)
UNATTENDED: Final = ParityPath("direct, unattended", drive_unattended, attended=False)
ALONE: Final = (
    DIRECT,
    UNATTENDED,
    ParityPath("direct, apart", drive_apart, session="each"),
    ParityPath("direct, unattended, apart", drive_unattended_apart, attended=False, session="each"),
)
"""The seam for every kind of path: attended or not, with one session or with one for each turn."""
