"""What a running tool may do, all of it within the execution that called it, and as long as its call is under way.

In: an execution, the call that runs, ways to the outside. Out: `CallContext`, a `ToolContext`; `perform`, for loops of a host's own.

INVARIANT: whatever is given out here asks `CallContext._acting` at each use; what takes time is cut off when the call ends.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from typing import Any, Final, Literal, Self, TypeVar

from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import ToolName
from zcpolicy.identity import Identity
from zcpolicy.loop import gate
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.admitted import tidied
from zcpolicy.loop.anew import CHANGED, sent
from zcpolicy.loop.bounded import InnerRefused, cut_off
from zcpolicy.loop.gate import Admitted, Paused, Refused, admit, admit_all
from zcpolicy.loop.report import report
from zcpolicy.memory import MemoryAccess
from zcpolicy.refusals import PermitError, ResolveError
from zcpolicy.registry.sources import USUAL_FOUND, InnerCall, RegistryView, ToolResult, ToolSpec
from zcpolicy.state.caller import Caller, caller_for
from zcpolicy.texts import spelled
from zcpolicy.tickets import Ticket, ticket_for

T = TypeVar("T")

MAX_INNER_CALLS: Final = 1_000
"""Calls that one call may lead to, those of the tools that it calls included."""
MAX_INNER_DEPTH: Final = 16
"""Tools that run tools, one inside the other."""

OVER: Final = "the call is over, and what it was given with it"
NEEDS_A_PERSON: Final = "it needs an approval that is still to come. Make that call by itself."
TIME_OVER: Final = "The call was not made: the time of the turn is over."
ONE_BEFORE: Final = "The call was not made, since one before it was not."


async def perform(call: Admitted, io: ResolvedIo, *, within: float | None = None) -> ToolResult:
    """Runs the tool of an admitted call, once, from the registry of its execution: a host's own, of a peripheral or of a
    server. It starts and finishes the call.

    `within`: seconds that the turn has left, for this call and all that its tool starts; None: those of a whole turn
    (`run.runtime.turn_timeout`). The policy's `call_timeout` and `limit … time` hold besides. A tool that raises, or is
    cut off, is a failed result, whose text is fit for a model.

    Raises Lapsed: admit it again, under the same key; PermitError where it was started before; ResolveError without a
    registry; HostFault where the recorder failed; TypeError, ValueError for what is no call and no time.
    """
    given: tuple[object, object] = (call, io)
    if type(given[0]) is not Admitted or type(given[1]) is not ResolvedIo:
        raise TypeError("`perform` takes a call that `admit` admitted, and a `ResolvedIo`")
    if within is not None and not within >= 0:
        raise ValueError("`within` is a number of seconds, 0 or more")
    run = call.decision.run
    seconds = run.runtime.turn_timeout if within is None else within
    context = CallContext(run, io, call.key, asyncio.get_running_loop().time() + seconds)
    return await gate.perform(call, context, seconds)


class CallContext:
    """A `ToolContext`. `key`: of the call that runs; `deadline`: of the turn, by the event loop's clock.

    `led`, `depth`: of an inner call, what its outermost call has led to, and how many tools it is inside.

    It is open once, from `async with` until the tool has run. Before and after that everything that acts raises
    PermitError, and what was under way is cut off.
    """

    __slots__ = (
        "_deadline", "_depth", "_io", "_key", "_led", "_loop", "_numbers", "_phase", "_run", "_under_way",
    )  # fmt: skip

    def __init__(
        self,
        run: ResolvedAgentExecution,
        io: ResolvedIo,
        key: str,
        deadline: float,
        *,
        led: "_Led | None" = None,
        depth: int = 0,
    ) -> None:
        self._run = run
        self._io = io
        self._key = key
        self._deadline = deadline
        self._numbers = count(1)
        self._led = led or _Led()
        self._depth = depth
        self._phase: Literal["new", "open", "over"] = "new"
        self._under_way: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        if self._phase != "new":
            raise PermitError(OVER)
        self._phase = "open"
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self.close()
        await cut_off(self._under_way)

    def close(self) -> None:
        """The call is over."""
        self._phase = "over"

    def _acting(self) -> ResolvedAgentExecution:
        """The execution as it is now. Raises PermitError, ResolveError."""
        if self._phase != "open":
            raise PermitError(OVER)
        return self._run.renewed()

    async def _while_open(self, work: Callable[[], Awaitable[T]]) -> T:
        """What the work gives. When the call ends first it is cut off, and whoever waits for it gets a PermitError."""
        self._acting()
        if asyncio.get_running_loop() is not self._loop:
            raise PermitError("a tool acts in the event loop that it was called in")
        task = asyncio.ensure_future(_awaited(work))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            return await task
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if self._phase == "open" or (waiting is not None and waiting.cancelling()):
                raise
            raise PermitError(OVER) from None

    @property
    def identity(self) -> Identity:
        """Who acts, and for whom."""
        return self._run.identity

    @property
    def caller(self) -> Caller:
        """Who the call is for: it opens state that tools share, as long as the call is under way."""
        self._acting()
        return caller_for(self._acting)

    @property
    def registry(self) -> RegistryView:
        """The tools of this execution."""
        self._acting()
        return _View(self._acting)

    @property
    def memory(self) -> MemoryAccess:
        """What this execution may recall and remember; every use is on record."""
        return MemoryAccess.of(self._acting(), self._io.record, self._acting)

    async def run(self, calls: Sequence[InnerCall]) -> list[ToolResult]:
        """Runs calls in order, all of them admitted before the first runs; a result for each.

        Raises InnerRefused: then none ran. What it was decided on may change while those before it run: a call that is
        not permitted any more is not made, nor are those after it, and their failed results say so.
        """
        self._acting()
        wanted = tuple(calls)
        self._led.to(len(wanted), self._depth)
        return await self._while_open(partial(self._made, wanted, f"{self._key}.{next(self._numbers)}"))

    async def _made(self, wanted: Sequence[InnerCall], key: str) -> list[ToolResult]:
        beside = Counter[str]()
        found = await admit_all(self._acting(), wanted, self._io, key=key, beside=beside, in_turn=True)
        if isinstance(found, Refused):
            raise InnerRefused(f"Nothing was run, because of {spelled(found.decision.tool)}: {found.text}")
        if isinstance(found, Paused):
            raise InnerRefused(f"Nothing was run: a call cannot run now, since {NEEDS_A_PERSON}")
        results: list[ToolResult] = []
        async with AsyncExitStack() as held:
            for one in found:
                held.push_async_exit(partial(tidied, one))
            for call, one in zip(wanted, found, strict=True):
                if self._loop.time() >= self._deadline:
                    results.append(ToolResult(TIME_OVER, ok=False))
                    break
                again = partial(self._admitted, call, one.key, beside)
                outcome = await sent(one, again, self._performed)
                if isinstance(outcome, ToolResult):
                    results.append(outcome)
                    continue
                results.append(ToolResult(_not_made(outcome), ok=False))
                break
        return results + [ToolResult(ONE_BEFORE, ok=False)] * (len(wanted) - len(results))

    async def _admitted(self, call: InnerCall, key: str, beside: Counter[str]) -> Admitted | Refused | Paused:
        return await admit(self._acting(), call.tool, call.arguments, self._io, key=key, beside=beside)

    async def _performed(self, call: Admitted) -> ToolResult:
        self._acting()
        given = CallContext(call.decision.run, self._io, call.key, self._deadline, led=self._led, depth=self._depth + 1)
        return await gate.perform(call, given, self._deadline - self._loop.time())

    async def delegate(self, agent: str, task: str, *, independent: bool = False) -> ToolResult:
        """Has another agent do a task. A child that cannot be is a failed result."""
        run = self._acting()
        report(self._io, "delegation", run, agent=agent, independent=independent)
        try:
            return await self._while_open(partial(self._io.delegate, run, agent, task, independent))
        except ResolveError as error:
            self._acting()
            report(self._io, "delegation", run, agent=agent, independent=independent, refused=str(error))
            return ToolResult("The task was not handed over: it cannot be handed to this agent here.", ok=False)

    def load_skill(self, skill: str) -> str:
        """Its instructions; its restrictions hold from now on. Raises ResolveError, for a model to read."""
        run = self._acting()
        try:
            run.load_skill(skill)
            instructions = run.registry.instructions(skill)
        except ResolveError as error:
            report(self._io, "skill", run, skill=skill, refused=str(error))
            raise ResolveError("this skill cannot be loaded here") from None
        report(self._io, "skill", run, skill=skill)
        return instructions

    def later(self, agent: str = "") -> Ticket:
        """For the host's scheduler, while this call runs: the agent may run later, bounded by it. Raises ResolveError."""
        return ticket_for(self._acting, agent or self._acting().agent)


class _Led:
    """How many calls one call has led to, those of the tools that it calls included."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0

    def to(self, calls: int, depth: int) -> None:
        """So many more, `depth` tools inside the outermost. Raises InnerRefused."""
        if self.calls + calls > MAX_INNER_CALLS or depth >= MAX_INNER_DEPTH:
            raise InnerRefused("Nothing was run: this is more than one call may lead to.")
        self.calls += calls


class _View:
    """The registry as a tool sees it: a `RegistryView`, and nothing else of it."""

    __slots__ = ("_acting",)

    def __init__(self, acting: Callable[[], ResolvedAgentExecution]) -> None:
        self._acting = acting

    def search(self, query: str, limit: int = USUAL_FOUND) -> tuple[ToolSpec, ...]:
        return self._acting().registry.search(query, limit)

    def names(self) -> tuple[ToolName, ...]:
        return self._acting().registry.names()

    def find(self, wire: str) -> ToolName | None:
        return self._acting().registry.find(wire)


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _not_made(outcome: Refused | Paused | None) -> str:
    if outcome is None:
        return CHANGED
    return f"The call was not made: {outcome.text if isinstance(outcome, Refused) else NEEDS_A_PERSON}"
