"""The private record of what `Resolver.resolve` made: whatever is not in it, or was altered since, carries no authority.

In: executions as they are made. Out: `genuine(run)`, the `State` behind one. Everything that acts (permits, gates, loops,
registries, approvals, budgets, delegation) reads its state here and not from the object it was handed.
"""

from __future__ import annotations

from _weakref import ref

from zcpolicy.sealed import put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zcpolicy.approvals.ask import ApprovalManager
    from zcpolicy.budgets import Budgets
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import Session
    from zcpolicy.memory import MemoryAccess
    from zcpolicy.registry.scoped import ScopedToolRegistry
    from zcpolicy.resolver import Resolver
    from zcpolicy.stack import Stack


class SealError(TypeError):
    """An execution that no resolver made, or that was altered after it was made."""


class State:
    """What one execution is. `narrowing`: in its portable form, None where nothing is taken away. `independent`: it is
    its delegator's independent child. `later`: a call of its parent started it for later. `successor`: what it became
    under a newer generation. The surfaces are made when they are first wanted.
    """

    __slots__ = (
        "__weakref__",
        "approvals", "budgets", "independent", "later", "memory", "narrowing", "parent", "registry", "resolver",
        "session", "stack", "successor", "surface",
    )  # fmt: skip

    def __init__(
        self,
        resolver: Resolver,
        stack: Stack,
        session: Session,
        parent: ResolvedAgentExecution | None,
        surface: str,
        narrowing: dict[str, Any] | None,
        independent: bool,
        later: bool,
    ) -> None:
        self.resolver = resolver
        self.stack = stack
        self.session = session
        self.parent = parent
        self.surface = surface
        self.narrowing = narrowing
        self.independent = independent
        self.later = later
        self.successor: ResolvedAgentExecution | None = None
        self.registry: ScopedToolRegistry | None = None
        self.memory: MemoryAccess | None = None
        self.approvals: ApprovalManager | None = None
        self.budgets: Budgets | None = None


_made: dict[int, tuple[ref[ResolvedAgentExecution], ref[State]]] = {}
"""By identity. An execution holds its own state alive; if another is put in its place, the one on record is gone."""


def enrol(run: ResolvedAgentExecution, state: State) -> None:
    """Puts an execution on record. For its maker alone."""
    key = id(run)
    _made[key] = (ref(run, lambda _gone: _made.pop(key, None)), ref(state))


def genuine(run: ResolvedAgentExecution) -> State:
    """The state of an execution, if it and all above it are as they were made. Raises SealError."""
    found = _state(run)
    one = found.parent
    while one is not None:
        one = _state(one).parent
    return found


def on_record(run: ResolvedAgentExecution) -> bool:
    """Whether an execution is on record at all. Those that only answer are not."""
    entry = _made.get(id(run))
    return entry is not None and entry[0]() is run


def _state(run: ResolvedAgentExecution) -> State:
    entry = _made.get(id(run))
    if entry is None or entry[0]() is not run:
        raise SealError(f"{type(run).__name__[:60]} is no execution that `Resolver.resolve` made")
    state = entry[1]()
    if state is None:
        raise SealError("the execution was altered after `Resolver.resolve` made it")
    try:
        as_made = (
            run.resolver is state.resolver
            and run.stack is state.stack
            and run.session is state.session
            and run.parent is state.parent
            and run.surface == state.surface
        )
    except AttributeError:
        as_made = False
    if not as_made:
        raise SealError("the execution was altered after `Resolver.resolve` made it")
    return state


def executions_of(resolver: Resolver) -> list[ResolvedAgentExecution]:
    """Those that a resolver made and that somebody still holds."""
    return [run for run, state in _held() if state.resolver is resolver]


def load(session: Session, skills: frozenset[str]) -> None:
    """Puts skills on a session, and on those of all executions below it, that stand already: a skill reaches every child."""
    put(session, "skills", session.skills | skills)
    for _, state in _held():
        above = state.parent
        while above is not None and above.session is not session:
            above = above.parent
        if above is not None:
            put(state.session, "skills", state.session.skills | skills)


def plan_anew(session: Session) -> None:
    """A fact that plans are made of has changed: executions of a session, and those below it, forget theirs.

    They get stacks of their own: another session under the same agent knows nothing of the fact.
    """
    from zcpolicy.stack import Stack

    for run, state in _held():
        line = [state, *(genuine(one) for one in run.above())]
        if any(one.session is session for one in line):
            restack(run, state, Stack(state.stack.program, state.stack.levels, state.stack.counted))


def restack(run: ResolvedAgentExecution, state: State, stack: Stack) -> None:
    """Another stack for an execution. For the engine."""
    state.stack = stack
    put(run, "stack", stack)


def _held() -> list[tuple[ResolvedAgentExecution, State]]:
    found = [(made(), state()) for made, state in list(_made.values())]
    return [(run, state) for run, state in found if run is not None and state is not None]
