"""What a running tool may do, all of it within the execution that called it.

In: an execution, the call that runs, ways to the outside. Out: `CallContext`, a `ToolContext`; the tool `load_skill`.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import count
from typing import Any, Final, Self

from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.identity import Identity
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.bounded import InnerRefused
from zcpolicy.loop.gate import Lapsed, Paused, Refused, admit_all, perform
from zcpolicy.loop.report import report
from zcpolicy.memory import MemoryAccess
from zcpolicy.refusals import PermitError, ResolveError
from zcpolicy.registry.sources import HostTool, InnerCall, RegistryView, ToolContext, ToolResult
from zcpolicy.texts import spelled
from zcpolicy.tickets import Ticket, ticket_for

MAX_INNER_CALLS: Final = 1_000
"""Calls that a tool may ask for at once."""


class CallContext:
    """A `ToolContext`. `key`: of the call that runs; `deadline`: of the turn, by the event loop's clock. Once the call is
    over it is closed: everything that acts raises PermitError.
    """

    __slots__ = ("_deadline", "_io", "_key", "_numbers", "_open", "_run")

    def __init__(self, run: ResolvedAgentExecution, io: ResolvedIo, key: str, deadline: float) -> None:
        self._run = run
        self._io = io
        self._key = key
        self._deadline = deadline
        self._numbers = count(1)
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._open = False

    def _acting(self) -> ResolvedAgentExecution:
        """The execution as it is now. Raises PermitError, ResolveError."""
        if not self._open:
            raise PermitError("the call is over, and what it was given with it")
        return self._run.renewed()

    @property
    def identity(self) -> Identity:
        """Who acts, and for whom."""
        return self._run.identity

    @property
    def registry(self) -> RegistryView:
        """The tools of this execution."""
        return self._run.registry

    @property
    def memory(self) -> MemoryAccess:
        """What this execution may recall and remember; every use is on record."""
        return MemoryAccess.of(self._acting(), self._io.record)

    async def run(self, calls: Sequence[InnerCall]) -> list[ToolResult]:
        """Runs calls in order, all of them admitted before the first runs. Raises InnerRefused: then none ran."""
        run, wanted = self._acting(), tuple(calls)
        if len(wanted) > MAX_INNER_CALLS:
            raise InnerRefused(f"Nothing was run: more than {MAX_INNER_CALLS} calls at once.")
        key = f"{self._key}.{next(self._numbers)}"
        found = await admit_all(run, wanted, self._io, key=key)
        if isinstance(found, Refused):
            raise InnerRefused(f"Nothing was run, because of {spelled(found.decision.tool)}: {found.text}")
        if isinstance(found, Paused):
            raise InnerRefused(
                "Nothing was run: a call needs an approval that is still to come. Make that call by itself."
            )
        results: list[ToolResult] = []
        async with AsyncExitStack() as held:
            for one in found:
                await held.enter_async_context(one)
            for one in found:
                left = self._deadline - asyncio.get_running_loop().time()
                try:
                    with CallContext(one.decision.run, self._io, one.key, self._deadline) as context:
                        results.append(await perform(one, context, left))
                except Lapsed:
                    results.append(ToolResult("The call was not made: it is not permitted any more.", ok=False))
        return results

    async def delegate(self, agent: str, task: str, *, independent: bool = False) -> ToolResult:
        """Has another agent do a task. A child that cannot be is a failed result."""
        run = self._acting()
        report(self._io, "delegation", run, agent=agent, independent=independent)
        try:
            return await self._io.delegate(run, agent, task, independent)
        except ResolveError as error:
            return ToolResult(f"The task was not handed over: {error}.", ok=False)

    def load_skill(self, skill: str) -> str:
        """Its instructions; its restrictions hold from now on. Raises ResolveError."""
        run = self._acting()
        run.load_skill(skill)
        report(self._io, "skill", run, skill=skill)
        return run.registry.instructions(skill)

    def later(self, agent: str = "") -> Ticket:
        """For the host's scheduler, while this call runs: the agent may run later, bounded by it. Raises ResolveError."""
        return ticket_for(self._acting, agent or self._acting().agent)


def load_skill_tool(name: str = "load_skill") -> HostTool:
    """The host tool `load_skill(skill: string)`, for policies that declare it."""
    parameters = {
        "type": "object",
        "properties": {"skill": {"type": "string"}},
        "required": ["skill"],
        "additionalProperties": False,
    }
    return HostTool(name, "Loads a skill: gives its instructions, under its rules.", parameters, _load_skill)


async def _load_skill(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    try:
        return ToolResult(context.load_skill(arguments["skill"]))
    except ResolveError as error:
        return ToolResult(f"The skill was not loaded: {error}.", ok=False)
