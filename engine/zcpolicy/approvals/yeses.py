"""What was said, in the ledger: under names that only an equal question has.

In: a ledger, a session's clock. Out: yeses that hold now. A ledger that waits for a disk or a network does so in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from json import dumps, loads
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from zcpolicy.approvals.binding import name_of_yes
from zcpolicy.approvals.outcome import Edited
from zcpolicy.approvals.question import Approve, Question, Reject
from zcpolicy.call import read_json
from zcpolicy.exact import is_list, is_object
from zcpolicy.ledgers.contract import Yes
from zcpolicy.texts import json_text
from zcpolicy.windows import told

if TYPE_CHECKING:
    from zcpolicy.execution import ResolvedAgentExecution

P = ParamSpec("P")
R = TypeVar("R")


class Yeses:
    """The ledger of an execution, as approvals use it. Raises LedgerUnavailable, and NoTime where the clock fails."""

    __slots__ = ("_clock", "_ledger")

    def __init__(self, run: ResolvedAgentExecution) -> None:
        self._ledger = run.resolver.ledger
        self._clock = run.session.clock

    async def find(self, name: str, key: str) -> Yes | None:
        """One that holds for this key; if it is for one call, it is taken."""
        return await self._call(self._ledger.consume, name, key, told(self._clock))

    async def find_yes(self, question: Question) -> Yes | None:
        """One that answers a question. A yes for one call is found by its key alone, so that no other uses it up."""
        for scope in question.scopes:
            yes = await self.find(name_of_yes(scope, question), question.key)
            if yes is not None:
                return yes
        return None

    async def put_yes(self, question: Question, answer: Approve) -> None:
        """Puts a yes on record: for its call, and for as many more as its scope says."""
        times = [time for time in (question.remember_for, answer.seconds) if time is not None]
        await self.put(
            name_of_yes("once", question), key=question.key, once=True, seconds=question.remember_for, by=answer.by
        )
        if answer.scope != "once":
            await self.put(name_of_yes(answer.scope, question), seconds=min(times, default=None), by=answer.by)

    async def put(
        self, name: str, *, key: str = "", once: bool = False, seconds: float | None = None, by: str = ""
    ) -> None:
        """Puts one on record. `seconds`: for which it holds, None: with its session."""
        now = await self._call(self._ledger.now, told(self._clock))
        await self._call(self._ledger.approve, Yes(name, once, key, None if seconds is None else now + seconds, by))

    async def drop(self, name: str) -> None:
        """Takes all of a name back."""
        await self._call(self._ledger.revoke, name)

    async def put_aside(self, name: str, said: Reject | Edited) -> None:
        """Puts a no, or an edit, on record: neither gives anything."""
        tool, text = ("", "") if isinstance(said, Reject) else (said.tool, json_text(said.arguments))
        note = said.note if isinstance(said, Reject) else ""
        await self.put(name, by=dumps([said.by, note, tool, text]))

    async def find_aside(self, name: str, key: str) -> Reject | Edited | None:
        """The no, or the edit, that is on record."""
        found = await self.find(name, key)
        if found is None:
            return None
        by, note, tool, text = loads(found.by)
        arguments: Any = read_json(text) if text else None
        if not is_object(arguments):
            return Reject(note, by)
        return Edited((tool[0], tool[1]) if is_list(tool) else tool, arguments, by)

    async def _call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self._ledger.blocking:
            return await asyncio.to_thread(function, *args, **kwargs)
        return function(*args, **kwargs)
