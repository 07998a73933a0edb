"""Asking several approvers at once, for as long as there is time (SPEC 9).

In: questions, each with whom to ask. Out: what each said. The first that is no plain yes ends it; whoever has not answered
by then is told so (`asking.over`), cancelled, and not waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from inspect import isawaitable, iscoroutine
from threading import BoundedSemaphore, Event, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from zcpolicy.approvals.asking import context_of
from zcpolicy.approvals.question import Approve, Approver, Later, Question
from zcpolicy.approvals.weigh import Nothing, Worth
from zcpolicy.awaited import is_async
from zcpolicy.faults import described, log_fault
from zcpolicy.texts import escaped

if TYPE_CHECKING:
    from zcpolicy.execution import ResolvedAgentExecution

GRACE_SECONDS: Final = 0.1
"""For which a cancelled approver may tidy up; one that goes on after it is left alone, and what it says is not heard."""


MAX_WAITING_THREADS: Final = 256
"""Approvers that are plain functions and have not returned, in one process; whoever would be the next is not asked."""

_threads: Final = BoundedSemaphore(MAX_WAITING_THREADS)


class Ask(NamedTuple):
    """One question, whom it is put to, and what its answer is worth. `waits`: whether an awaitable answer is waited for."""

    question: Question
    approver: Approver
    worth: Callable[[object], Worth]
    waits: bool = True


async def heard(run: ResolvedAgentExecution, asks: Sequence[Ask], seconds: float) -> list[Worth | None]:
    """What each said, in order; None for whom the answer of another made needless."""
    over = Event()
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    tasks: list[asyncio.Task[object]] = []
    for ask in asks:
        context = context_of(run, over)
        tasks.append(loop.create_task(_said(ask, context.copy()), context=context))
        tasks[-1].add_done_callback(_told)
    found: list[Worth | None] = [None] * len(asks)
    waiting = set(tasks)
    try:
        while waiting:
            done, waiting = await asyncio.wait(
                waiting, timeout=max(0.0, ends - loop.time()), return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                found[tasks.index(task)] = _worth(asks[tasks.index(task)], task)
            if not done:
                return [Nothing("nobody answered in time") if one is None else one for one in found]
            if not all(one is None or isinstance(one, Approve | Later) for one in found):
                break
        return found
    finally:
        over.set()
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting, timeout=GRACE_SECONDS)


def _worth(ask: Ask, task: asyncio.Task[object]) -> Worth:
    if task.cancelled():
        return Nothing("the approver gave up")
    fault = task.exception()
    return ask.worth(task.result()) if fault is None else Nothing(f"the approver failed: {fault}")


def _told(task: asyncio.Task[object]) -> None:
    """Takes note of what a task that nobody waits for raised, so that it is not reported as forgotten."""
    if not task.cancelled():
        task.exception()


async def _said(ask: Ask, context: Context) -> object:
    """Raises ApproverFailed: what is no `Exception` would end the event loop, and with it all other turns."""
    try:
        return await _answered(ask, context)
    except (ApproverFailed, asyncio.CancelledError, KeyboardInterrupt):  # an interrupt is a person's at the host
        raise
    except BaseException as error:  # noqa: BLE001 - of the host's code: however it fails, it is no yes
        raise _failed(ask.question, error) from None


async def _answered(ask: Ask, context: Context) -> object:
    approver: Any = ask.approver
    if is_async(approver):
        return await approver(ask.question)
    found = await _in_thread(approver, ask.question, context)
    if ask.waits and isawaitable(found):
        return await found
    _closed(found)
    return found


def _closed(answer: object) -> None:
    """A coroutine that nobody awaits is closed, so that it is not reported as forgotten."""
    if iscoroutine(answer):
        answer.close()


def _in_thread(approver: Callable[[Question], object], question: Question, context: Context) -> asyncio.Future[object]:
    """A thread of its own, which neither the turn nor the end of the process waits for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def deliver(answer: object, fault: BaseException | None) -> None:
        if future.done():
            _closed(answer)
        elif fault is not None:
            future.set_exception(_failed(question, fault))
        else:
            future.set_result(answer)

    def work() -> None:
        answer, fault = None, None
        try:
            answer = context.run(approver, question)
        except BaseException as error:  # noqa: BLE001 - of the host's code: however it fails, it is no yes
            fault = error
        finally:
            _threads.release()
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver, answer, fault)

    if not _threads.acquire(blocking=False):
        raise ApproverFailed("too many approvers have not returned")
    try:
        Thread(target=work, name="zcpolicy approver", daemon=True).start()
    except RuntimeError:
        _threads.release()
        raise
    return future


class ApproverFailed(Exception):
    """An approver raised. The message says what, in short: it is for the host's records, and no model is told."""


def _failed(question: Question, raised: BaseException) -> ApproverFailed:
    """For whoever wrote the approver, with its traceback in the log."""
    said = described(raised)
    route = f"of route `{escaped(question.route)}`" if question.route else "of the person"
    log_fault(f"the approver {route}", said, raised)
    return ApproverFailed(said)
