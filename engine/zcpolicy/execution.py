"""One agent at work: what `resolve` hands out.

In: a stack of bodies, a session. Out: a sealed `ResolvedAgentExecution`, which decides calls and records what runs.
"""

from __future__ import annotations

from zcpolicy.authority import State, enrol, genuine, load, on_record, restack
from zcpolicy.combine import Verdict
from zcpolicy.decision import Decision
from zcpolicy.refusals import PermitError, ResolveError, UnknownAgent
from zcpolicy.sealed import Sealed, final, hidden, put
from zcpolicy.skills import known_skills, loadable, may_load, with_skill
from zcpolicy.stack import deciders_of, plans_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Never

    from zcpolicy.approvals.ask import ApprovalManager
    from zcpolicy.budgets import Budgets
    from zcpolicy.delegation import DelegationRights
    from zcpolicy.facts import Session, ToolName
    from zcpolicy.identity import Identity
    from zcpolicy.memory import MemoryAccess
    from zcpolicy.plan import Plan
    from zcpolicy.registry.scoped import ScopedToolRegistry
    from zcpolicy.resolver import Resolver
    from zcpolicy.runtime import RuntimeKnobs
    from zcpolicy.stack import Stack


MAX_PLANS: Final = 4_096
"""Tools of one agent whose plans are remembered."""


@final
class ResolvedAgentExecution(Sealed):
    """One agent at work, with all that bounds it. Made by `Resolver.resolve`."""

    __slots__ = ("__weakref__", "_state", "parent", "resolver", "session", "stack", "surface")
    _maker = "`Resolver.resolve`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self.resolver: Final[Resolver] = sealed
            self.session: Final[Session] = sealed
            self.stack: Final[Stack] = sealed
            self.parent: Final[ResolvedAgentExecution | None] = sealed
            self.surface: Final[str] = sealed

    @property
    def agent(self) -> str:
        """The acting agent's name."""
        return self.stack.own.agent

    @property
    def depth(self) -> int:
        """How many executions stand above this one."""
        return self.stack.own.depth

    def above(self) -> list[ResolvedAgentExecution]:
        """The executions above this one, nearest first."""
        found: list[ResolvedAgentExecution] = []
        one = self.parent
        while one is not None:
            found.append(one)
            one = one.parent
        return found

    def decide(self, tool: ToolName, arguments: object) -> Decision:
        """The decision for one call. `arguments`: a dictionary of JSON values, or JSON text. Never raises.

        A fault of the engine itself is a deny, reason `malformed`, whose `note` names it: no host has to guess what an
        exception means.
        """
        try:
            try:
                decide = deciders_of(self.stack)[tool]
            except (KeyError, TypeError):
                return self._first(tool, arguments)
            return decide(arguments, self)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the call does not run
            return self._fault(tool, fault)

    def _fault(self, tool: ToolName, fault: Exception) -> Decision:
        verdict = Verdict("deny", "malformed", note=f"the call could not be judged: {type(fault).__name__}")
        verdict.tool = _bare(tool)
        return Decision(verdict, {}, self, self.session.labels)

    def _first(self, tool: Any, arguments: object) -> Decision:
        if self.resolver.newest is not self.resolver:
            return self._under_newest(tool, arguments)
        plan = _planned(self, _bare(tool))
        if isinstance(plan, Verdict):
            return Decision(plan, {}, self, self.session.labels)
        known = deciders_of(plan.stack)  # this execution may have another one by now: it was drift that was heard
        if len(known) >= MAX_PLANS:
            known.clear()
        known[plan.name] = plan.decide
        if self.resolver.newest is not self.resolver:  # published while this was worked out: nothing may stay behind
            known.clear()
            return self._under_newest(tool, arguments)
        return plan.decide(arguments, self)

    def _under_newest(self, tool: Any, arguments: object) -> Decision:
        """The decision of the newest generation; a deny where it has no such execution. What is on no record cannot follow:
        who made it to have an answer (`Resolver.decide`) asks again.
        """
        if not on_record(self):
            return unmade(self, tool, ResolveError("a newer policy was published meanwhile"))
        try:
            return self.renewed().decide(tool, arguments)
        except ResolveError as error:
            return unmade(self, tool, error)

    def tools(self) -> tuple[ToolName, ...]:
        """The tools that may be shown: none that could be called is left out."""
        try:
            self.keep_up()
        except ResolveError:  # under a skill of another policy nothing can be called
            return ()
        plans = ((name, plan_of(self, name)) for name in self.resolver.program.tools)
        return tuple(name for name, plan in plans if plan is not None and plan.callable_at_all(self.session))

    def permit(self, decision: Decision, *, approved: bool = False, ok: bool = True) -> Decision:
        """Records a call that runs now: its labels, what it spends, and in the history that it ran.

        Decides again first, so that nothing else is permitted than would be. `approved`: somebody said yes to an
        `ask`. `ok`: whether the tool reported success. Returns that decision. Raises PermitError.
        """
        genuine(self)
        if type(decision) is not Decision or decision.run not in (self, self.renewed()):
            raise PermitError("the decision is of another execution")
        from zcpolicy.permits import record

        with self.resolver.exclusive:
            again = self.decide(decision.tool, decision.arguments)
            if again.effect == "deny" or (again.effect == "ask" and approved is not True):
                raise PermitError(f"the call is not permitted: {again.reason}", again)
            record(again, ok is True)
        return again

    def load_skill(self, skill: str) -> None:
        """Puts a skill's restrictions on this execution and on its session, for good. Raises ResolveError."""
        genuine(self)
        run = self.renewed()
        run.keep_up()
        known_skills(run.resolver.program, (skill,))
        may_load(run.stack, skill)
        load(run.session, frozenset((skill,)))
        run.keep_up()

    def keep_up(self) -> None:
        """Takes on the skills that this session has loaded in whatever run. Raises ResolveError. For the engine."""
        skills = tuple(sorted(self.session.skills.difference(self.stack.own.skills)))
        known_skills(self.resolver.program, skills)
        if not skills:
            return
        state = genuine(self)
        stack = state.stack
        for skill in skills:
            stack = with_skill(stack, skill)
        restack(self, state, stack)

    def renewed(self) -> ResolvedAgentExecution:
        """This execution under the newest generation of its policy: itself, if there is no newer one.

        Raises ResolveError where the newest one has no such execution (its agent is gone, its delegator may not
        delegate to it any more).
        """
        newest = self.resolver.newest
        if newest is self.resolver:
            return self
        state = genuine(self)
        if state.successor is None or state.successor.resolver is not newest:
            state.successor = newest.again(state, self.agent)
        return state.successor

    def _as_of_now(self) -> State:
        """The state under every skill that the session has loaded in whatever run. Raises SealError, ResolveError."""
        genuine(self)
        self.keep_up()
        return genuine(self)

    # --- the surfaces --------------------------------------------------------------------------------------------

    @property
    def identity(self) -> Identity:
        """Who acts, and for whom."""
        from zcpolicy.identity import Identity

        session = self.session
        line = tuple((one.agent, one.session.id) for one in self.above())
        return Identity(self.agent, session.client, session.id, session.turn, self.surface, self.depth, line)

    @property
    def runtime(self) -> RuntimeKnobs:
        """What the loop keeps to."""
        from zcpolicy.runtime import knobs_of

        return knobs_of(self._as_of_now().stack)

    @property
    def rights(self) -> DelegationRights:
        """Whom this execution may delegate to."""
        from zcpolicy.delegation import rights_of

        return rights_of(self._as_of_now().stack)

    @property
    def loadable(self) -> tuple[str, ...]:
        """The skills that it may load."""
        return loadable(self._as_of_now().stack)

    @property
    def memory(self) -> MemoryAccess:
        """What it may recall and remember."""
        from zcpolicy.memory import MemoryAccess

        state = genuine(self)
        state.memory = state.memory or MemoryAccess.of(self)
        return state.memory

    @property
    def approvals(self) -> ApprovalManager:
        """Who is asked, and what was answered."""
        from zcpolicy.approvals.ask import ApprovalManager

        state = genuine(self)
        state.approvals = state.approvals or ApprovalManager(self)
        return state.approvals

    @property
    def budgets(self) -> Budgets:
        """What it may spend, reserved and settled."""
        from zcpolicy.budgets import Budgets

        state = self._as_of_now()
        state.budgets = state.budgets or Budgets(self)
        return state.budgets

    @property
    def registry(self) -> ScopedToolRegistry:
        """The tools that `ScopedToolRegistry.assemble` made for it. Raises ResolveError where none was."""
        found = genuine(self).registry
        if found is None:
            raise ResolveError("no registry was assembled for this execution")
        return found

    def ticket(self) -> dict[str, Any]:
        """JSON from which `Resolver.resume` makes this execution again, those above it included.

        What it makes stands under the policy of then. See `tickets`: a host keeps it as it keeps sessions.
        """
        from zcpolicy.tickets import ticket_of

        return ticket_of(self)

    def finish(self) -> None:
        """The answer goes to the execution above, and this session's labels with it."""
        if self.parent is not None:
            self.parent.session.mark(self.session.labels)

    def explain(self, decision: Decision) -> list[dict[str, Any]]:
        """The whole trace of a decision of this execution."""
        return decision.trace()

    def __repr__(self) -> str:
        return f"<ResolvedAgentExecution {self.agent}, depth {self.depth}>"


_STATE: Final = hidden(ResolvedAgentExecution, "_state")


def plan_of(run: ResolvedAgentExecution, name: ToolName) -> Plan | None:
    """The plan of a tool of the catalogue. For the engine."""
    plan = _planned(run, name)
    return None if isinstance(plan, Verdict) else plan


def _planned(run: ResolvedAgentExecution, tool: Any) -> Plan | Verdict:
    stack = run.stack
    plans = plans_of(stack)
    try:
        found: Plan | Verdict | None = plans.get(tool)
    except TypeError:  # what cannot be a key is no tool
        found = None
    if found is None:
        found = run.resolver.plan(stack, tool, run.session)
        if not isinstance(found, Verdict):
            if len(plans) >= MAX_PLANS:
                plans.clear()
            plans[found.name] = found
    return found


def _bare(tool: Any) -> Any:
    """A name whose type is a subclass (an enum, a named tuple) as the text it is: it is found so once it is known."""
    if isinstance(tool, str):
        return str.__str__(tool)
    parts: Any = tool
    return tuple(map(_bare, parts)) if isinstance(tool, tuple) else tool


def unresolved(error: ResolveError) -> str:
    """What a decision is called that no execution could make."""
    return "unknown-agent" if isinstance(error, UnknownAgent) else "stale-policy"


def unmade(run: ResolvedAgentExecution, tool: Any, error: ResolveError) -> Decision:
    """The deny for a call of an execution that the newest generation does not have, by that one. For the engine."""
    verdict = Verdict("deny", unresolved(error), note=str(error))
    verdict.tool, verdict.resolver = _bare(tool), run.resolver.newest
    return Decision(verdict, {}, run, run.session.labels)


def execution(state: State) -> ResolvedAgentExecution:
    """The execution of a state, on record. For `Resolver`."""
    run = unlisted(state)
    enrol(run, state)
    return run


def unlisted(state: State) -> ResolvedAgentExecution:
    """An execution that can decide, and has no authority: nothing acts with it. For `Resolver`."""
    run: ResolvedAgentExecution = object.__new__(ResolvedAgentExecution)
    put(run, "resolver", state.resolver)
    put(run, "session", state.session)
    put(run, "stack", state.stack)
    put(run, "parent", state.parent)
    put(run, "surface", state.surface)
    _STATE.__set__(run, state)
    return run
