"""The tool-call loop: the model is shown what the policy lets it see, and what it calls goes through the gate.

In: a sealed execution, a model, ways to the outside, messages. Out: `TurnResult`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import Any, Final

from zcpolicy.approvals.asking import refuse_if_asked
from zcpolicy.authority import genuine
from zcpolicy.combine import Verdict
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.alone import alone, is_own
from zcpolicy.loop.asked_model import ModelFault, response_to
from zcpolicy.loop.batch import MAX_CALLS, TOO_MANY, Batch
from zcpolicy.loop.ending import Ended, by_limit
from zcpolicy.loop.history import TOKENS_AROUND, tokens_of_text, tokens_of_tools, trimmed
from zcpolicy.loop.messages import Message, ModelRequest, ModelResponse, ToolCall
from zcpolicy.loop.report import HostFault, report
from zcpolicy.loop.turn import TurnResult, TurnState
from zcpolicy.loop.unbroken import unbroken
from zcpolicy.refusals import ResolveError

__all__ = ["TurnResult", "TurnState", "run_tool_call_loop"]

NOT_MADE: Final = "The call was not made: the turn ended before it."
NOT_KNOWN: Final = (
    "What came of this call is not known: the turn ended while it was made. Look before you make it again."
)


async def run_tool_call_loop(
    execution: ResolvedAgentExecution,
    model: ResolvedModelAccess,
    io: ResolvedIo,
    messages: Sequence[Message],
    *,
    system: str = "",
    resume: TurnState | None = None,
) -> TurnResult:
    """One turn. `messages`: the transcript, ending with the user's; of a resumed turn as the pause gave it.

    A registry must have been assembled for the execution. At the end, however it ends, the execution's labels go to the
    one above. Cancelled, it cleans up and raises CancelledError. Raises TypeError (SealError) for what is no execution or no
    `Message`, ResolveError without a registry and where another turn of the session is under way, ValueError for the
    state of another turn; then nothing has happened.
    """
    genuine(execution)
    if type(model) is not ResolvedModelAccess or type(io) is not ResolvedIo:
        raise TypeError("the loop takes a `ResolvedModelAccess` and a `ResolvedIo`")
    refuse_if_asked(execution)
    _are_messages(messages, resume)
    with alone(execution):
        turn = _Turn(execution, model, io, tuple(messages), system, resume)
        try:
            return await turn.run()
        finally:
            execution.finish()


def _are_messages(messages: Sequence[object], resume: object) -> None:
    """Raises TypeError."""
    odd = next((one for one in messages if type(one) is not Message), None)
    if odd is not None:
        raise TypeError(
            f"messages are `Message`, one is a `{type(odd).__name__}`: `Message.from_json` makes one of JSON"
        )
    if resume is not None and type(resume) is not TurnState:
        raise TypeError(
            f"`resume` is a `TurnState`, no `{type(resume).__name__}`: `TurnState.from_json` makes one of JSON"
        )


class _Turn:
    """One turn on its way. `calls`: all of the batch that is being made. `sent`: the ids of those that went to their tools."""

    def __init__(
        self,
        execution: ResolvedAgentExecution,
        access: ResolvedModelAccess,
        io: ResolvedIo,
        messages: tuple[Message, ...],
        system: str,
        resume: TurnState | None,
    ) -> None:
        self.execution = execution
        self.registry = execution.registry
        self.access = access
        self.io = io
        self.messages = list(messages)
        self.system = system
        self.calls: tuple[ToolCall, ...] = ()
        self.sent: set[str] = set()
        self.part = token_hex(16)  # of the turn: it is paused between parts; no two spend under one key
        self.key, self.batch, self.iteration, self.before = self.part, "", 0, 0.0
        if resume is not None:
            self._take_up(resume)
        if is_own(execution):
            execution.session.turn = self.key  # what is limited per turn is counted by it
        self.began = asyncio.get_running_loop().time()

    def _take_up(self, state: TurnState) -> None:
        run = self.execution
        if (state.agent, state.client, state.session) != (run.agent, run.session.client, run.session.id):
            raise ValueError("the state is of another execution")
        if not state.calls or self._last_calls() != state.calls:
            raise ValueError("the transcript is not that of the paused turn")
        self.key, self.batch = state.turn, state.batch
        self.iteration, self.before, self.calls = state.iteration, state.seconds, state.calls

    def _last_calls(self) -> tuple[ToolCall, ...]:
        """The calls at the end of the transcript."""
        last = next((one for one in reversed(self.messages) if one.role != "tool"), None)
        return () if last is None else last.calls

    # --- the turn ------------------------------------------------------------------------------------------------

    async def run(self) -> TurnResult:
        """Until the model has answered, or something ends it."""
        try:
            report(self.io, "turn", self.execution, phase="resumed" if self.calls else "started", key=self.key)
            if self.calls:
                await self._make_calls()
            while True:
                response = await self._response()
                self.calls = _told_apart(response.calls)
                self.messages.append(Message("assistant", response.text, self.calls))
                if not self.calls:
                    report(self.io, "turn", self.execution, phase="done", key=self.key)
                    return self._result(TurnResult("done", response.text, "answered", ()))
                await self._make_calls()
        except Ended as ended:
            return self._ended(ended)
        except Exception as error:  # noqa: BLE001 - of the model or the host: the turn has failed, and says so
            return self._failed(error)

    async def _response(self) -> ModelResponse:
        """The next response of the model. Raises Ended, ModelFault, HostFault."""
        self._renew()
        run = self.execution
        ledger = run.resolver.ledger
        if self.iteration >= run.runtime.iterations:
            raise Ended("stopped", "iterations", f"{run.runtime.iterations} in one turn")
        seconds = self._left()
        if seconds <= 0:
            raise Ended("stopped", "turn-timeout", f"{run.runtime.turn_timeout:g} seconds")
        key = f"{self.part}.{self.iteration + 1}"
        request = await unbroken(ledger, self._request)
        denied = await unbroken(ledger, partial(run.budgets.iteration, key))
        if isinstance(denied, Verdict):
            raise by_limit(denied)
        self.batch, self.iteration = key, self.iteration + 1
        left = await unbroken(ledger, run.budgets.time_left)
        seconds = seconds if left is None else min(seconds, left)
        return await response_to(request, run, self.access, self.io, f"{key}.model", seconds)

    def _request(self) -> ModelRequest:
        """What the model is shown now. Raises Ended."""
        knobs = self.execution.runtime
        tools = self.registry.specs()
        system = "\n\n".join(part for part in (self.system, self.registry.prompt.text) if part)
        room = knobs.context - tokens_of_text(system) - tokens_of_tools(tools) - TOKENS_AROUND
        messages = trimmed(self.messages, knobs.history, room)
        if messages is None:
            raise Ended("stopped", "context", f"{knobs.context} tokens")
        return ModelRequest(system, messages, tools)

    async def _make_calls(self) -> None:
        """Raises Ended, HostFault."""
        self._renew()
        answered = {one.call_id for one in self._answers()}
        batch = Batch(self.execution, self.io, self.batch, self.began + self._seconds(), self.messages.append)
        self.sent = batch.sent
        await batch.run(self.calls[:MAX_CALLS], answered, parallel=self.execution.runtime.parallel_tools)
        for call in self.calls[MAX_CALLS:]:
            self.messages.append(Message("tool", TOO_MANY, call_id=call.id))
        self.calls = ()

    def _renew(self) -> None:
        """The newest policy holds. Raises Ended."""
        try:
            self.execution = self.execution.renewed()
        except ResolveError as error:
            raise Ended("stopped", "stale-policy", str(error)) from None

    def _seconds(self) -> float:
        """Those of the turn that are for this part of it."""
        return self.execution.runtime.turn_timeout - self.before

    def _left(self) -> float:
        return self.began + self._seconds() - asyncio.get_running_loop().time()

    # --- its end -------------------------------------------------------------------------------------------------

    def _ended(self, ended: Ended) -> TurnResult:
        state = None
        if ended.status == "paused":
            session, spent = self.execution.session, asyncio.get_running_loop().time() - self.began
            state = TurnState(
                self.execution.agent,
                session.client,
                session.id,
                self.key,
                self.batch,
                self.iteration,
                self.before + spent,
                self.calls,
            )
        try:
            report(self.io, "stopped", self.execution, reason=ended.reason, note=ended.note, key=self.key)
        except HostFault as error:
            return self._failed(error)
        found = TurnResult(ended.status, "", ended.reason, (), ended.note, ended.retry_after, state, ended.questions)
        return self._result(found)

    def _failed(self, raised: Exception) -> TurnResult:
        error = _first_of(raised)
        cause = error.__cause__ or error
        reason = "model-failed" if isinstance(error, ModelFault) else "host-failed"
        try:
            report(self.io, "failed", self.execution, reason=reason, fault=type(cause).__name__, key=self.key)
        except HostFault:  # the record itself is what fails
            reason = "host-failed"
        note = f"{error}: {type(cause).__name__}" if cause is not error else type(error).__name__
        told = cause if isinstance(cause, Exception) else error
        return self._result(TurnResult("failed", "", reason, (), note, error=told))

    def _result(self, found: TurnResult) -> TurnResult:
        """With the transcript, in which every call has an answer unless the turn goes on later."""
        if found.status != "paused" and self.calls:
            answered = {one.call_id for one in self._answers()}
            for call in self.calls:
                if call.id not in answered:
                    told = NOT_KNOWN if call.id in self.sent else NOT_MADE
                    self.messages.append(Message("tool", told, call_id=call.id))
        return replace(found, text=self._last_words(), messages=tuple(self.messages))

    def _last_words(self) -> str:
        """What the model said last since the user's message."""
        for one in reversed(self.messages):
            if one.role != "tool":
                return one.text if one.role == "assistant" else ""
        return ""

    def _answers(self) -> list[Message]:
        """Those that the batch has by now."""
        found: list[Message] = []
        for one in reversed(self.messages):
            if one.role != "tool":
                break
            found.append(one)
        return found


def _first_of(error: Exception) -> Exception:
    """Of calls that ran at once, the first that failed."""
    inner: Any = getattr(error, "exceptions", None)
    return _first_of(inner[0]) if isinstance(error, ExceptionGroup) else error


def _told_apart(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Calls whose ids differ: a model's id is only to pair a call with its answer."""
    seen: set[str] = set()
    found: list[ToolCall] = []
    for number, call in enumerate(calls, 1):
        one = call if call.id and call.id not in seen else replace(call, id=f"call {number} {token_hex(4)}")
        seen.add(one.id)
        found.append(one)
    return tuple(found)
