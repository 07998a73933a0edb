"""Who is being asked just now: no agent, model or tool of an execution tree answers for that tree (SPEC 9).

In: executions. Out: marks on the running context, and refusals of what would answer itself.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from threading import Event
from typing import TYPE_CHECKING

from zcpolicy.refusals import PermitError

if TYPE_CHECKING:
    from zcpolicy.execution import ResolvedAgentExecution

Tree = tuple[str, str]
"""Client and session of the root."""

_asked: ContextVar[frozenset[Tree]] = ContextVar("zcpolicy.asked", default=frozenset())
_over: ContextVar[Event | None] = ContextVar("zcpolicy.over", default=None)
_acting: ContextVar[frozenset[Tree]] = ContextVar("zcpolicy.acting", default=frozenset())


def tree_of(run: ResolvedAgentExecution) -> Tree:
    """What an execution, those above it and those below it have in common."""
    line = [run, *run.above()]
    session = line[-1].session
    while session.above is not None:
        session = session.above
    return (session.client, session.id)


def context_of(run: ResolvedAgentExecution, over: Event) -> Context:
    """The context in which an approver is called that is asked for a call of this execution. For the manager."""
    context = copy_context()
    context.run(_asked.set, _asked.get() | {tree_of(run)})
    context.run(_over.set, over)
    return context


def over() -> bool:
    """For approvers that run in a thread: whether the answer is no longer wanted, so that they should return."""
    found = _over.get()
    return found is not None and found.is_set()


@contextmanager
def acting(run: ResolvedAgentExecution) -> Generator[None]:
    """While a tool of this execution runs: what it starts may call tools, but answers no question of its tree."""
    token = _acting.set(_acting.get() | {tree_of(run)})
    try:
        yield
    finally:
        _acting.reset(token)


def refuse_if_asked(run: ResolvedAgentExecution) -> None:
    """For the loop and the gate. Raises PermitError inside an approver that is asked by the same tree."""
    if tree_of(run) in _asked.get():
        raise PermitError("an approver cannot set the agents to work that it is asked about")


def refuse_if_acting(run: ResolvedAgentExecution) -> None:
    """For answers. Raises PermitError inside a tool, or an approver, of the same tree."""
    refuse_if_asked(run)
    if tree_of(run) in _acting.get():
        raise PermitError("a tool cannot answer for the agents that run it")
