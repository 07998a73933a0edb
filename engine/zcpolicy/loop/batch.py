"""The calls of one response: admitted in the order in which the model made them, run, answered.

In: an execution, calls, ways to the outside. Out: a message for each call. In a row each call is admitted after the one
before it ran; in parallel all are admitted, in order, before the first runs.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.admitted import tidied
from zcpolicy.loop.anew import CHANGED, sent
from zcpolicy.loop.context import perform
from zcpolicy.loop.ending import Ended
from zcpolicy.loop.gate import Admitted, Paused, Refused, admit
from zcpolicy.loop.history import cut
from zcpolicy.loop.messages import Message, ToolCall
from zcpolicy.texts import spelled

MAX_CALLS: Final = 128
"""Calls of one response; those beyond are refused."""

TOO_MANY: Final = f"The call was not made: one response makes at most {MAX_CALLS} calls."

Numbered = tuple[int, ToolCall]


class Batch:
    """The calls of one response. `key`: of the iteration. `deadline`: of the turn, by the event loop's clock. `add`: takes
    the answers. `sent`: the ids of calls that went to their tools.
    """

    def __init__(
        self,
        execution: ResolvedAgentExecution,
        io: ResolvedIo,
        key: str,
        deadline: float,
        add: Callable[[Message], None],
    ) -> None:
        self.sent: set[str] = set()
        self._execution = execution
        self._io = io
        self._key = key
        self._deadline = deadline
        self._add = add

    async def run(self, calls: Sequence[ToolCall], answered: Collection[str], *, parallel: bool) -> None:
        """Makes those calls that have no answer. Raises Ended where one has to wait, or the time is over; HostFault."""
        pending = [(number, call) for number, call in enumerate(calls, 1) if call.id not in answered]
        if parallel and len(pending) > 1:
            await self._at_once(pending)
            return
        for one in pending:
            beside = Counter[str]()
            self._add(await self._answer(one, beside, await self._admit(one, beside)))

    async def _at_once(self, pending: Sequence[Numbered]) -> None:
        found: list[tuple[Numbered, Admitted | Refused]] = []
        beside = Counter[str]()
        ended: Ended | None = None
        async with AsyncExitStack() as held:
            for one in pending:
                try:
                    outcome = await self._admit(one, beside)
                except Ended as ending:  # those before it are made all the same
                    ended = ending
                    break
                if isinstance(outcome, Admitted):
                    held.push_async_exit(partial(tidied, outcome))
                found.append((one, outcome))
            await self._together(found, beside)
        if ended is not None:
            raise ended

    async def _together(self, found: Sequence[tuple[Numbered, Admitted | Refused]], beside: Counter[str]) -> None:
        answers: dict[int, Message] = {}

        async def answer(one: Numbered, outcome: Admitted | Refused) -> None:
            answers[one[0]] = await self._answer(one, beside, outcome)

        try:
            async with asyncio.TaskGroup() as group:
                for one, outcome in found:
                    group.create_task(answer(one, outcome))
                    await asyncio.sleep(
                        0
                    )  # what a tool does at once, such as to load a skill, holds for those after it
        finally:
            for number in sorted(answers):
                self._add(answers[number])

    async def _admit(self, one: Numbered, beside: Counter[str]) -> Admitted | Refused:
        """`beside`: labels of the calls that are admitted along. Raises Ended."""
        number, call = one
        left = self._left()
        if left <= 0:
            raise Ended("stopped", "turn-timeout", f"{self._execution.runtime.turn_timeout:g} seconds")
        tool = self._execution.registry.meant(call.wire)
        found = await admit(
            self._execution,
            call.wire if tool is None else tool,
            call.arguments,
            self._io,
            key=f"{self._key}.{number}",
            within=left,
            beside=beside,
        )
        if isinstance(found, Paused):
            raise Ended("paused", "asked", spelled(found.decision.tool), questions=found.questions)
        return found

    async def _answer(self, one: Numbered, beside: Counter[str], outcome: Admitted | Refused) -> Message:
        _, call = one
        try:
            found = await sent(outcome, partial(self._admit, one, beside), partial(self._result, call.id))
        except Ended:  # what it waits for is asked when the model makes the call again
            found = None
        if isinstance(found, Refused):
            return Message("tool", found.text, call_id=call.id)
        return Message("tool", found if isinstance(found, str) else CHANGED, call_id=call.id)

    async def _result(self, name: str, call: Admitted) -> str:
        run = call.decision.run
        self.sent.add(name)
        result = await perform(call, self._io, within=max(0.0, self._left()))
        text = result.text if result.ok else f"[failed] {result.text}"
        if call.edited:
            text = f"[A person changed the call to {spelled(call.decision.tool)} {call.wire}]\n{text}"
        return cut(text, run.runtime.tool_result)

    def _left(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()
