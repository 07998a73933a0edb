"""One agent at work: what `resolve` hands out.

In: a stack of bodies, a session. Out: a sealed `ResolvedAgentExecution`, which decides calls and records what runs.
"""

from __future__ import annotations

from zcpolicy.combine import Verdict
from zcpolicy.decision import Decision
from zcpolicy.refusals import PermitError, ResolveError
from zcpolicy.sealed import Sealed, put
from zcpolicy.skills import known_skills, may_load, with_skill
from zcpolicy.windows import NoTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, Never

    from zcpolicy.facts import Session, ToolName
    from zcpolicy.plan import Plan
    from zcpolicy.resolver import Resolver
    from zcpolicy.stack import Stack


MAX_PLANS: Final = 4_096
"""Tools of one agent whose plans are remembered."""


class ResolvedAgentExecution(Sealed):
    """One agent at work, with all that bounds it. Made by `Resolver.resolve`."""

    __slots__ = ("_plans", "parent", "resolver", "session", "stack")
    _maker = "`Resolver.resolve`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self.resolver: Final[Resolver] = sealed
            self.session: Final[Session] = sealed
            self.stack: Final[Stack] = sealed
            self.parent: Final[ResolvedAgentExecution | None] = sealed
            self._plans: Final[dict[Any, Callable[[Any, ResolvedAgentExecution], Decision]]] = sealed

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
                decide = self._plans[tool]
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
        plan = self._plan(_bare(tool))
        if isinstance(plan, Verdict):
            return Decision(plan, {}, self, self.session.labels)
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[plan.name] = plan.decide
        return plan.decide(arguments, self)

    def _plan(self, tool: Any) -> Plan | Verdict:
        plans = self.stack.plans
        try:
            found: Plan | Verdict | None = plans.get(tool)
        except TypeError:  # what cannot be a key is no tool
            found = None
        if found is None:
            found = self.resolver.plan(self.stack, tool, self.session)
            if not isinstance(found, Verdict):
                if len(plans) >= MAX_PLANS:
                    plans.clear()
                plans[found.name] = found
        return found

    def tools(self) -> tuple[ToolName, ...]:
        """The tools that may be shown: none that could be called is left out."""
        try:
            self.keep_up()
        except ResolveError:  # under a skill of another policy nothing can be called
            return ()
        return tuple(name for name in self.resolver.program.tools if self._may_show(name))

    def _may_show(self, name: ToolName) -> bool:
        plan = self.plan_of(name)
        return plan is not None and plan.callable_at_all(self.session)

    def plan_of(self, name: ToolName) -> Plan | None:
        """The plan of a tool of the catalogue. For the engine."""
        plan = self._plan(name)
        return None if isinstance(plan, Verdict) else plan

    def permit(self, decision: Decision, *, approved: bool = False, ok: bool = True) -> Decision:
        """Records a call that runs now: its labels, what it spends, and in the history that it ran.

        Decides again first, so that nothing else is permitted than would be. `approved`: somebody said yes to an
        `ask`. `ok`: whether the tool reported success. Returns that decision. Raises PermitError.
        """
        if type(decision) is not Decision or decision.run is not self:
            raise PermitError("the decision is of another execution")
        from zcpolicy.permits import record

        with self.resolver.ledger.exclusive:
            again = self.decide(decision.tool, decision.arguments)
            if again.effect == "deny" or (again.effect == "ask" and approved is not True):
                raise PermitError(f"the call is not permitted: {again.reason}")
            try:
                record(again, ok is True)
            except NoTime:
                raise PermitError("the call cannot be recorded: the session's clock does not tell the time") from None
        return again

    def load_skill(self, skill: str) -> None:
        """Puts a skill's restrictions on this execution and on its session, for good. Raises ResolveError."""
        known_skills(self.resolver.program, (skill,))
        may_load(self.stack, skill)
        self.session.skills |= {skill}
        self.keep_up()

    def keep_up(self) -> None:
        """Takes on the skills that this session has loaded in whatever run. Raises ResolveError. For the engine."""
        skills = tuple(sorted(self.session.skills.difference(self.stack.own.skills)))
        known_skills(self.resolver.program, skills)
        for skill in skills:
            put(self, "stack", with_skill(self.stack, skill))
            put(self, "_plans", self.stack.decides)

    def finish(self) -> None:
        """The answer goes to the execution above, and this session's labels with it."""
        if self.parent is not None:
            self.parent.session.mark(self.session.labels)

    def explain(self, decision: Decision) -> list[dict[str, Any]]:
        """The whole trace of a decision of this execution."""
        return decision.trace()

    def __repr__(self) -> str:
        return f"<ResolvedAgentExecution {self.agent}, depth {self.depth}>"


def _bare(tool: Any) -> Any:
    """A name whose type is a subclass (an enum, a named tuple) as the text it is: it is found so once it is known."""
    if isinstance(tool, str):
        return str.__str__(tool)
    parts: Any = tool
    return tuple(map(_bare, parts)) if isinstance(tool, tuple) else tool


def execution(
    resolver: Resolver, stack: Stack, session: Session, parent: ResolvedAgentExecution | None
) -> ResolvedAgentExecution:
    run: ResolvedAgentExecution = object.__new__(ResolvedAgentExecution)
    put(run, "resolver", resolver)
    put(run, "session", session)
    put(run, "stack", stack)
    put(run, "parent", parent)
    put(run, "_plans", stack.decides)
    return run
