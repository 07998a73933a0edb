"""Who is being asked just now: no agent, model or tool of an execution tree answers for that tree (SPEC 9).

In: executions. Out: marks on the running context, a record of the calls at work, and refusals of what would answer itself.
Executors and plain threads know nothing of the context that started them, so that the record counts as well.
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
    from zcpolicy.facts import Session

Tree = tuple[str, str]
"""Client and session of the root."""

_asked: ContextVar[tuple[tuple[Tree, Event], ...]] = ContextVar("zcpolicy.asked", default=())
"""The trees that ask, nearest last, each with the event that says that its questions are over."""
_acting: ContextVar[frozenset[tuple[Tree, object]]] = ContextVar("zcpolicy.acting", default=frozenset())
"""The trees whose tools run, once for each call: calls overlap, and end in any order."""
_at_work: dict[object, Tree] = {}
"""The tree of every call whose tool runs in this process. One that is dropped without an end leaves as its `acting` goes."""


def tree_of(run: ResolvedAgentExecution) -> Tree:
    """What an execution, those above it and those below it have in common."""
    return _tree_of([run, *run.above()][-1].session)


def _tree_of(session: Session) -> Tree:
    while session.above is not None:
        session = session.above
    return (session.client, session.id)


def context_of(run: ResolvedAgentExecution, over: Event) -> Context:
    """The context in which an approver is called that is asked for a call of this execution. For the manager.

    An approver is the host's, also where a tool led to the question: when the question is over, what the approver
    started may answer and resume turns.
    """
    context = copy_context()
    context.run(_asked.set, (*_asked.get(), (tree_of(run), over)))
    context.run(_acting.set, frozenset())
    return context


def over() -> bool:
    """For approvers that run in a thread: whether the answer is no longer wanted, so that they should return."""
    asked = _asked.get()
    return bool(asked) and asked[-1][1].is_set()


@contextmanager
def acting(run: ResolvedAgentExecution) -> Generator[None]:
    """While a tool of this execution runs: what it starts may call tools, but answers no question of its tree."""
    tree, call = tree_of(run), object()
    _at_work[call] = tree
    _acting.set(_acting.get() | {(tree, call)})
    try:
        yield
    finally:
        del _at_work[call]
        _acting.set(_acting.get() - {(tree, call)})


def refuse_if_asked(run: ResolvedAgentExecution) -> None:
    """For the loop and the gate. Raises PermitError inside an approver that is asked by the same tree."""
    tree = tree_of(run)
    if any(asking == tree and not ended.is_set() for asking, ended in _asked.get()):
        raise PermitError("an approver cannot set the agents to work that it is asked about")


def refuse_if_acting(run: ResolvedAgentExecution) -> None:
    """For answers. Raises PermitError inside a tool, or an approver, of the same tree, and anywhere while a tool of it runs."""
    refuse_if_asked(run)
    tree = tree_of(run)
    if any(inside == tree for inside, _ in _acting.get()):
        raise PermitError("a tool cannot answer for the agents that run it")
    if _runs(tree):
        raise PermitError("a call of these agents is under way: answer once their turn has paused")


def under_way(session: Session) -> bool:
    """Whether a call runs in this process that belongs to the tree of a session: then no answer to it is put on record."""
    return _runs(_tree_of(session))


def _runs(tree: Tree) -> bool:
    return tree in list(_at_work.values())  # a copy, in one step: calls begin and end in other threads


def at_work() -> bool:
    """Whether this is inside a running tool, of any tree."""
    return bool(_acting.get())
