"""The gate: the one place where a call of async code becomes permitted, and where a tool of a registry runs.

In: a sealed execution, a tool, its arguments, the ways to ask. Out: `Admitted`, `Refused` or `Paused`; of an admitted call
that is performed, its result.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from time import monotonic
from typing import Any, Final, Protocol

from zcpolicy.approvals.asking import refuse_if_asked
from zcpolicy.approvals.outcome import Approved, Edited, Refusal
from zcpolicy.approvals.question import Question
from zcpolicy.authority import genuine
from zcpolicy.combine import Verdict, of_the_call
from zcpolicy.decision import Decision
from zcpolicy.execution import ResolvedAgentExecution, unmade
from zcpolicy.facts import ToolName
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.admitted import (
    ASK_ADMITTED,
    NOTHING,
    Admitted,
    Costs,
    Lapsed,
    Taken,
    admitted,
    still_holds,
    tidied,
    to_run,
)
from zcpolicy.loop.bounded import InnerRefused, bounded, log_of
from zcpolicy.loop.report import report_call
from zcpolicy.loop.standing import standing_of
from zcpolicy.loop.unbroken import unbroken
from zcpolicy.permits import mark
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.scoped import runner_of
from zcpolicy.registry.sources import InnerCall, Run, ToolContext, ToolResult
from zcpolicy.sealed import NoTruth
from zcpolicy.texts import spelled

__all__ = ["Admitted", "Lapsed", "Paused", "Refused", "admit", "admit_all", "perform"]

MAX_ROUNDS: Final = 16
"""Times that one call is decided because somebody was asked, or changed it; then it is refused."""

_MADE_BEFORE: Final = "this very call was made before"
_TOO_LATE: Final = (
    "The call was not made: the rules or the session changed as it was sent. Make it again if it is still of use."
)
_REPEATED: Final = "This call was made before; it is not made again. What came of it is in the transcript of then."


@dataclass(frozen=True, slots=True)
class Refused(NoTruth):
    """It does not run. `decision`: a deny. `reason`: its reason, or `rejected` by a person. `text`: what to tell the model."""

    decision: Decision
    reason: str
    text: str

    _ask = ASK_ADMITTED


@dataclass(frozen=True, slots=True)
class Paused(NoTruth):
    """It waits for answers: nothing is reserved. Admit it again, with the same key, when they have come."""

    decision: Decision
    questions: tuple[Question, ...]

    _ask = ASK_ADMITTED


async def admit(
    execution: ResolvedAgentExecution,
    tool: ToolName,
    arguments: object,
    io: ResolvedIo,
    *,
    key: str = "",
    cost: Costs | None = NOTHING,
    within: float | None = None,
    beside: Counter[str] | None = None,
    in_turn: bool = False,
) -> Admitted | Refused | Paused:
    """Decides, asks, decides again, reserves and marks. `arguments`: an object, or JSON text, which is judged as text.

    `key`: of this one call, never from a model; "": a new one. `cost`: what it is thought to spend, by currency; None:
    that is not known. `within`: seconds for asking. `beside`: the labels of calls that are admitted before the first of
    them runs, which share one: their marks unsettle none of those. `in_turn`: those run one after the other, so that it
    has its place among concurrent calls only once it is started. Raises SealError, and PermitError inside an approver that
    is asked for the same tree of executions.
    """
    genuine(execution)
    refuse_if_asked(execution)
    await asyncio.sleep(0)  # however many calls a tool makes, other turns go on, and time limits are heard
    wanted = _Wanted(execution, tool, arguments, io, key or token_hex(16), cost, beside, in_turn)
    until = None if within is None else monotonic() + within
    for _ in range(MAX_ROUNDS):
        found = await wanted.attempt()
        if isinstance(found, Admitted):
            return found
        if found.effect == "deny":
            return wanted.refused(found)
        left = None if until is None else max(0.0, until - monotonic())
        said = await found.run.approvals.settle(
            found, io.approvers, wanted.key, record=io.record, within=left, later=io.waits
        )
        if isinstance(said, Approved):
            wanted.approved = said
        elif isinstance(said, Edited):
            wanted.edit(said)
        elif isinstance(said, Refusal):
            return wanted.refused(said.decision, said)
        else:
            report_call(io, "waiting", found, wanted.key)
            return Paused(found, said.questions)
    return wanted.refused(_deny(execution, wanted.tool, "no-approver", "there was no end of questions and changes"))


async def admit_all(
    execution: ResolvedAgentExecution,
    wanted: Sequence[InnerCall],
    io: ResolvedIo,
    *,
    key: str = "",
    beside: Counter[str] | None = None,
    in_turn: bool = False,
) -> list[Admitted] | Refused | Paused:
    """Every call, each under the marks of those before it; if one is not admitted, none is. `in_turn`: they run one after
    the other. Raises as `admit`.
    """
    genuine(execution)
    outer, shared = key or token_hex(16), Counter[str]() if beside is None else beside
    found: list[Admitted] = []
    async with AsyncExitStack() as held:
        for number, call in enumerate(wanted, 1):
            one = await admit(
                execution, call.tool, call.arguments, io, key=f"{outer}.{number}", beside=shared, in_turn=in_turn
            )
            if not isinstance(one, Admitted):
                return one
            held.push_async_exit(partial(tidied, one))
            found.append(one)
        held.pop_all()
    return found


class _Wanted:
    """One call on its way through the gate."""

    __slots__ = ("approved", "arguments", "beside", "cost", "edited", "execution", "in_turn", "io", "key", "tool")

    def __init__(
        self,
        execution: ResolvedAgentExecution,
        tool: ToolName,
        arguments: object,
        io: ResolvedIo,
        key: str,
        cost: Costs | None,
        beside: Counter[str] | None,
        in_turn: bool,
    ) -> None:
        self.execution = execution
        self.tool = tool
        self.arguments = arguments
        self.io = io
        self.key = key
        self.cost = cost
        self.beside = Counter[str]() if beside is None else beside
        self.in_turn = in_turn
        self.approved: Approved | None = None
        self.edited = False

    def edit(self, said: Edited) -> None:
        self.tool, self.arguments, self.approved, self.edited = said.tool, said.arguments, None, True

    def refused(self, decision: Decision, said: Refusal | None = None) -> Refused:
        reason, text = (said.reason, said.text) if said is not None else (decision.reason, decision.for_model)
        text = _REPEATED if decision.note == _MADE_BEFORE else text
        no: dict[str, Any] = {"by": [said.by], "note": said.note} if said is not None and said.rejected else {}
        report_call(self.io, "refused", decision, self.key, reason=reason, **no)
        return Refused(decision, reason, text)

    async def attempt(self) -> Admitted | Decision:
        """The call, or the decision that it may not run, or that somebody has to be asked."""
        taken: list[Taken] = []
        ledger = self.execution.resolver.ledger
        try:
            found = await unbroken(ledger, partial(self._take, taken))
            if found is not None:
                return found
            (it,) = taken
            log = it.decision.for_log
            said = self.approved if it.decision.effect == "ask" else None
            yes: dict[str, Any] = {} if said is None else {"by": [*said.by]}
            report_call(self.io, "admitted", it.decision, self.key, log=log, **yes)
            return admitted(it, self.key, self.io, log, edited=self.edited)
        except BaseException:
            for it in taken:
                await unbroken(ledger, partial(it.decision.run.budgets.release, self.key))
            raise

    def _take(self, taken: list[Taken]) -> Decision | None:
        """Decides, and if the call may run reserves and marks, all in one step that no other call comes between.

        None: it is `taken`.
        """
        with self.execution.resolver.exclusive:
            on = standing_of(self.execution.session)
            decision, runner = self._decide()
            if decision.effect == "deny" or not self._said_yes(decision):
                return decision
            held = decision.run.budgets.reserve(decision, self.key, self.cost, in_turn=self.in_turn)
            if isinstance(held, Verdict):
                return Decision(held, decision.arguments, decision.run, decision.labels)
            if not held.fresh:  # another has made this very call, or is about to
                return _deny(decision.run, decision.tool, "denied", _MADE_BEFORE, decision)
            taken.append(Taken(decision, on, self.beside, held.at, runner))
            self.beside.update(mark(decision))
            return None

    def _said_yes(self, decision: Decision) -> bool:
        return decision.effect == "allow" or (self.approved is not None and self.approved.covers(decision))

    def _decide(self) -> tuple[Decision, Run | None]:
        """The decision of now, and what would run it; a tool that the registry does not hold is none."""
        try:
            run = self.execution.renewed()
        except ResolveError as error:
            return unmade(self.execution, self.tool, error), None
        decision = run.decide(self.tool, self.arguments)
        registry = genuine(run).registry
        if decision.effect == "deny" or registry is None:
            return decision, None
        runner = runner_of(registry, decision.tool)
        if runner is None:
            return _deny(run, decision.tool, "unknown-tool", _absent(registry.failures, decision.tool), decision), None
        return decision, runner


def _absent(failures: Mapping[str, str], tool: ToolName) -> str:
    """Why a tool that the policy grants is not there, where that is known: its server is not."""
    why = "" if isinstance(tool, str) else failures.get(tool[0], "")
    return f"server `{tool[0]}` is not there: {why}" if why else ""


def _deny(
    run: ResolvedAgentExecution, tool: ToolName, reason: str, note: str = "", of: Decision | None = None
) -> Decision:
    """A deny that no rule decided. `of`: what it takes the place of."""
    verdict = Verdict("deny", reason, note=note)
    if of is None:
        verdict.tool = tool
        return Decision(verdict, {}, run, run.session.labels)
    return Decision(of_the_call(of.verdict, verdict), of.arguments, run, of.labels)


class Given(ToolContext, Protocol):
    """A `ToolContext` that is open from `async with` until `close`; leaving it waits for what was cut off."""

    async def __aenter__(self) -> ToolContext: ...

    async def __aexit__(self, *raised: object) -> None: ...

    def close(self) -> None:
        """The call is over."""
        ...


async def perform(call: Admitted, given: Given, seconds: float) -> ToolResult:
    """Runs the tool of an admitted call, from the registry of its execution, once.

    `given`: what the tool is given while it runs. `seconds`: it is cut off after them, at the latest when the policy's own
    time is over. A tool that raises, is cut off or answers what is no result has failed; the model is told no more of it.
    Raises Lapsed, HostFault, and ResolveError without a registry.

    What changes between its dispatch and the beginning of the tool, such as the policy, makes it a failed call, too: it counts.
    """
    decision, runner, arguments = to_run(call)
    run = decision.run
    async with call:
        if runner is None:
            raise ResolveError("no registry was assembled for the execution: the host runs its calls itself")
        left = await unbroken(run.resolver.ledger, partial(run.budgets.time_left, decision))
        await call.start()
        limit = min([seconds, run.runtime.call_timeout, *(() if left is None else (left,))])
        async with given as context:
            result, fault = await bounded(partial(_begun, call, runner, arguments, context), limit, given.close)
        log_of(spelled(decision.tool), fault)
        await call.finish(result.ok, result.cost, fault=fault.kind, error=fault.text)
        return result


async def _begun(call: Admitted, runner: Run, arguments: dict[str, Any], context: ToolContext) -> ToolResult | str:
    """The tool's answer. Between the last look and its first line nothing in this event loop comes. Raises InnerRefused."""
    if not still_holds(call):
        raise InnerRefused(_TOO_LATE)
    return await runner(arguments, context)
