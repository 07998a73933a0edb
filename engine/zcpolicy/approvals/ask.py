"""Asking people (SPEC 9): who has to say yes to a call, what they say, and what is on record of it.

In: the decision of an `ask`, whom a host can ask. Out: `Approved`, `Edited`, `Refusal` or `Waiting`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from zcpolicy.approvals.asking import refuse_if_acting, refuse_if_asked
from zcpolicy.approvals.audit import noted
from zcpolicy.approvals.binding import name_of_aside, name_of_open
from zcpolicy.approvals.outcome import NotAsked, Outcome, approved, refused
from zcpolicy.approvals.question import Answer, Approve, Approvers, Later, Question
from zcpolicy.approvals.settling import Settling
from zcpolicy.approvals.weigh import Nothing, weighed
from zcpolicy.approvals.yeses import Yeses
from zcpolicy.authority import genuine
from zcpolicy.awaited import is_async
from zcpolicy.events import nowhere
from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.refusals import PermitError
from zcpolicy.windows import NoTime

if TYPE_CHECKING:
    from zcpolicy.decision import Decision
    from zcpolicy.events import Recorder
    from zcpolicy.execution import ResolvedAgentExecution


class ApprovalManager:
    """Gets people's yes for the calls of one execution. It keeps nothing: what was said is in the ledger."""

    __slots__ = ("_run",)

    def __init__(self, run: ResolvedAgentExecution) -> None:
        self._run = run

    async def settle(
        self,
        decision: Decision,
        approvers: Approvers,
        key: str,
        *,
        record: Recorder = nowhere,
        within: float | None = None,
        later: bool = True,
    ) -> Outcome:
        """Whether a call that asks may run. `key`: of this one call, the same when its turn is resumed, never from a model.

        `within`: seconds for asking, at most. `later=False`: nobody would take up what waits, so that `Later` is no yes; for
        an execution below another it always is none. `record`: given an event per question and answer; where it fails, nobody
        says yes. The call is decided anew, so that no decision is believed. After an `Approved` decide again: unless the
        `Approved` covers that decision, settle again. Raises SealError; PermitError for a decision of another execution,
        and inside an approver that is asked for the same tree of executions.
        """
        return await self._settle(decision, approvers, key, record, within, later=later)

    async def _settle(
        self,
        decision: Decision,
        approvers: Approvers,
        key: str,
        record: Recorder,
        within: float | None,
        *,
        waits: bool = True,
        later: bool = True,
    ) -> Outcome:
        genuine(self._run)
        refuse_if_asked(self._run)
        if decision.run.session is not self._run.session or decision.agent != self._run.agent:
            raise PermitError("the decision is of another execution")
        if type(key) is not str or not key:
            raise PermitError("a call needs a key to be asked about")
        again = self._run.decide(decision.tool, decision.arguments)
        if again.effect != "ask":
            return approved("", ()) if again.effect == "allow" else refused(again, again.reason, again.note)
        try:
            return await Settling(again, approvers, key, record, within, waits=waits, later=later).outcome()
        except LedgerUnavailable as error:
            return refused(again, "ledger-unavailable", str(error))
        except NoTime:
            return refused(again, "ledger-unavailable", "the session's clock does not tell the time")

    def settle_now(
        self,
        decision: Decision,
        approvers: Approvers,
        key: str,
        *,
        record: Recorder = nowhere,
        within: float | None = None,
    ) -> Outcome:
        """`settle` for hosts without an event loop, with approvers that are plain functions. Raises as `settle`; PermitError
        for a coroutine function, and where an event loop runs.
        """
        if any(map(is_async, (approvers.person, *approvers.routes.values()))):
            raise PermitError("an approver that is a coroutine function is asked by `await settle(…)`")
        if _in_a_loop():
            raise PermitError("where an event loop runs, calls are settled by `await settle(…)`")
        return asyncio.run(self._settle(decision, approvers, key, record, within, waits=False))

    async def answer(self, question: Question, answer: Answer, *, record: Recorder = nowhere) -> None:
        """Puts on record what somebody says later, to a question of a `Waiting`; `settle` with its key then finds it.

        It is for turns that have paused: while a call of the same tree of executions is under way in this process, also one
        beside the call that waits, nothing answers for it. Then the answer is not taken, and is given again.

        Raises NotAsked for a question that was never asked, was altered, is answered or out of time, and for what is no
        answer; PermitError inside a tool or an approver of the same tree, and while a call of it is under way;
        LedgerUnavailable, SealError.
        """
        run = self._run
        genuine(run)
        refuse_if_acting(run)
        yeses = Yeses(run)
        name = self._name_of(question)
        if await yeses.find(name, question.key) is None:
            raise NotAsked("nobody waits for an answer to this question")
        worth = weighed(answer, question, question.arguments)
        if isinstance(worth, Later):
            return
        if isinstance(worth, Nothing):
            raise NotAsked(worth.why)
        if not noted(run, record, question, worth):
            raise NotAsked("the answer cannot be recorded")
        if isinstance(worth, Approve):
            await yeses.put_yes(question, worth)
        else:
            await yeses.put_aside(name_of_aside(question), worth)
        await yeses.drop(name)

    def _name_of(self, question: Question) -> str:
        session = self._run.session
        whose = (session.client, session.id, self._run.agent)
        try:
            if type(question) is Question and (question.client, question.session, question.agent) == whose:
                return name_of_open(question)
        except Exception:  # noqa: BLE001 - fields of any kind
            raise NotAsked("this is no question") from None
        raise NotAsked("the question is of another execution")


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
