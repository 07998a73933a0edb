"""The one resolver: from a program and the host's facts to executions, and from calls to decisions.

In: a `Program`, a `Session`, a `Narrowing`. Out: sealed `ResolvedAgentExecution`s, and `Decision`s.
"""

from __future__ import annotations

from zcpolicy.combine import Verdict
from zcpolicy.decision import Decision
from zcpolicy.delegation import is_independent, refusal, stack_below
from zcpolicy.execution import ResolvedAgentExecution, execution
from zcpolicy.facts import Entry, Narrowing, Session
from zcpolicy.mentions import sources
from zcpolicy.names import MAX_NAME_CHARACTERS, is_canonical, skeleton
from zcpolicy.narrowing import body_of
from zcpolicy.plan import Plan
from zcpolicy.program import Program, has_agent, head_of
from zcpolicy.refusals import PermitError, ResolveError, UnknownAgent
from zcpolicy.sealed import Sealed, put
from zcpolicy.skills import known_skills, may_load
from zcpolicy.stack import Level, Stack, level_of
from zcpolicy.windows import told

__all__ = ["PermitError", "ResolveError", "ResolvedAgentExecution", "Resolver", "UnknownAgent"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Final, Self, TypeGuard

    from zcpolicy.facts import ToolName
    from zcpolicy.ledgers.memory import MemoryLedger
    from zcpolicy.operands import Call
    from zcpolicy.stack import BodyRef

MAX_UNKNOWN_NAMES: Final = 4_096
"""Names of tools that do not exist which are remembered, so that asking again is cheap."""


class Resolver(Sealed):
    """Decides by one program. Made by `Resolver(program, …)`.

    `protected`: absolute paths of files that no tool above class `read` may touch. `generation`: the host's count of
    reloads. `ledger`: what was spent; by default in this process's memory.
    """

    __slots__ = (
        "_by_agent",
        "_clients",
        "_protected",
        "_skeletons",
        "_tool_ids",
        "_unknown",
        "generation",
        "ledger",
        "program",
    )
    _maker = "`Resolver(program)`"

    if TYPE_CHECKING:

        def __init__(
            self,
            program: Program,
            *,
            protected: Iterable[str] = (),
            generation: int = 1,
            ledger: MemoryLedger | None = None,
        ) -> None:
            made: Any = None
            self.program: Final[Program] = program
            self.generation: Final[int] = generation
            self.ledger: Final[MemoryLedger] = made
            self._protected: Final[Callable[[Any, Any], bool | None] | None] = made
            self._tool_ids: Final[dict[ToolName, int]] = made
            self._by_agent: Final[dict[str, Stack]] = made
            self._unknown: Final[dict[Any, str]] = made
            self._skeletons: Final[dict[str, set[str]]] = made
            self._clients: Final[dict[str, list[Entry]]] = made

    def __new__(
        cls,
        program: Program,
        *,
        protected: Iterable[str] = (),
        generation: int = 1,
        ledger: MemoryLedger | None = None,
    ) -> Self:
        from zcpolicy.ledgers.memory import MemoryLedger

        if type(program) is not Program:
            raise TypeError("a resolver is made from a Program")
        made = object.__new__(cls)
        files = tuple(protected)
        put(made, "program", program)
        put(made, "generation", generation)
        put(made, "ledger", ledger if ledger is not None else MemoryLedger())
        put(made, "_protected", _protection(files) if files else None)
        put(made, "_tool_ids", {name: index for index, name in enumerate(program.tools)})
        put(made, "_by_agent", {})
        put(made, "_unknown", {})
        put(made, "_skeletons", {})
        put(made, "_clients", {})
        return made

    def resolve(
        self,
        agent: str,
        *,
        session: Session | None = None,
        narrowing: Narrowing | None = None,
        parent: ResolvedAgentExecution | None = None,
        skills: Iterable[str] = (),
        independent: bool | None = None,
    ) -> ResolvedAgentExecution:
        """An agent at work. `parent`: the execution that delegates to it; `skills`: those loaded from the start.

        `independent=False` makes a child bounded although it may be independent. Raises UnknownAgent, ResolveError
        (not delegable, a skill that is not the agent's, a fact that is needed and never supplied), CompiledError.
        """
        wanted = tuple(dict.fromkeys(skills))
        known_skills(self.program, wanted)
        facts = _facts_of(session, parent)
        active = tuple(dict.fromkeys((*sorted(facts.skills), *wanted)))
        known_skills(self.program, active)
        if parent is None:
            stack = self._stack(agent, facts, narrowing, active)
        else:
            stack = self._below(agent, parent, narrowing, active, independent)
        for skill in wanted:
            may_load(stack, skill)
        facts.skills |= frozenset(wanted)
        if facts.never:
            from zcpolicy.needs import refuse_unmet

            refuse_unmet(stack, facts)
        return execution(self, stack, facts, parent)

    def decide(self, agent: str, tool: ToolName, arguments: object, *, session: Session | None = None) -> Decision:
        """One decision without holding an execution; an unknown agent, or a skill of another policy, is a deny."""
        facts = session if session is not None else Session()
        skills = tuple(sorted(facts.skills))
        try:
            known_skills(self.program, skills)
            stack = self._stack(agent, facts, None, skills)
        except ResolveError as error:
            verdict = Verdict("deny", "unknown-agent" if isinstance(error, UnknownAgent) else "stale-policy")
            verdict.tool = tool
            nobody = Stack(self.program, (Level(str(agent)[:60], (), (), 0, ()),), ())
            return Decision(verdict, {}, execution(self, nobody, facts, None), facts.labels)
        return execution(self, stack, facts, None).decide(tool, arguments)

    # --- for the engine ------------------------------------------------------------------------------------------

    def now(self, session: Session) -> float:
        """The session's clock, never before a time that was already acted on: a clock set back grants nothing.

        Raises NoTime.
        """
        return self.ledger.now(told(session.clock))

    def done_by(self, client: str) -> list[Entry]:
        """Calls that ran in this process for a client, in any session."""
        return self._clients.setdefault(client, [])

    def touches_protected(self, call: Call) -> bool | None:
        """Whether a call's paths hit a protected file; None: they may."""
        found: bool | None = False
        if self._protected is not None:
            for path in call.found.paths:
                hit = self._protected(path, call.where)
                if hit:
                    return True
                found = None if hit is None else found
        return found

    def plan(self, stack: Stack, tool: Any, session: Session) -> Plan | Verdict:
        """The plan of a tool, or the deny for a name that is none."""
        known = self._tool_ids.get(tool) if _is_name(tool) else None
        if known is not None and self._why_unknown(tool, known=True) != "not-canonical":
            data = head_of(self.program)["tools"][known]
            protects = self._protected is not None and any(sources(data["schema"]))
            return Plan(stack, known, data, protects, self.ledger.charged, session.drift.get(tool))
        verdict = Verdict("deny", self._why_unknown(tool, known=False))
        verdict.tool = tool
        return verdict

    def _why_unknown(self, tool: Any, *, known: bool) -> str:
        if not _is_name(tool):
            return "unknown-tool"
        found = self._unknown.get(tool)
        if found is None:
            parts = (tool,) if isinstance(tool, str) else tool
            found = "unknown-tool" if all(is_canonical(part, self._looks) for part in parts) else "not-canonical"
            if not known and sum(map(len, parts)) <= MAX_NAME_CHARACTERS:
                if len(self._unknown) >= MAX_UNKNOWN_NAMES:
                    self._unknown.clear()
                self._unknown[tool] = found
        return found

    def _looks(self) -> dict[str, set[str]]:
        """What known names look like, with the names that do; worked out when an odd name first comes."""
        if not self._skeletons:
            for name in self._tool_ids:
                for part in (name,) if isinstance(name, str) else name:
                    self._skeletons.setdefault(skeleton(part), set()).add(part)
        return self._skeletons

    def _stack(self, agent: str, session: Session, narrowing: Narrowing | None, skills: tuple[str, ...]) -> Stack:
        """An agent's stack; with nothing taken away and nothing drifted, one for all its runs."""
        plain = narrowing is None and not skills and not session.drift
        stack = self._by_agent.get(agent) if plain and type(agent) is str else None
        if stack is None:
            self._must_know(agent)
            level = level_of(self.program, agent, 0, skills, self._added(narrowing))
            stack = Stack(self.program, (level,), (level,))
            if plain:
                self._by_agent[agent] = stack
        return stack

    def _must_know(self, agent: str) -> None:
        if not has_agent(self.program, agent):
            raise UnknownAgent(f"there is no agent `{str(agent)[:60]}`")

    def _added(self, narrowing: Narrowing | None) -> tuple[BodyRef, ...]:
        return () if narrowing is None else (body_of(narrowing, self.program, self._tool_ids),)

    def _below(
        self,
        agent: str,
        parent: ResolvedAgentExecution,
        narrowing: Narrowing | None,
        skills: tuple[str, ...],
        independent: bool | None,
    ) -> Stack:
        above = parent.stack
        if parent.resolver is not self:
            raise ResolveError("the execution above is of another resolver")
        self._must_know(agent)
        why = refusal(above, agent)
        if why is not None:
            raise ResolveError(why)
        free = is_independent(above, agent)
        if independent and not free:
            raise ResolveError(f"agent `{agent}` may not be delegated to independently")
        return stack_below(above, agent, skills, self._added(narrowing), free and independent is not False)


def _facts_of(session: Session | None, parent: ResolvedAgentExecution | None) -> Session:
    """The session of an execution. The delegator's labels and its lack of interactivity reach a child."""
    if parent is None:
        return session if session is not None else Session()
    above = parent.session
    if session is None or session is above:
        return above
    session.mark(above.labels)
    session.interactive = session.interactive and above.interactive
    if session.above is None and not _stands_above(session, above):
        session.above = above
    return session


def _stands_above(session: Session, below: Session) -> bool:
    """Whether a session is itself above another: a host may run an agent and those below it in one session."""
    one: Session | None = below
    while one is not None:
        if one is session:
            return True
        one = one.above
    return False


def _protection(files: tuple[str, ...]) -> Callable[[Any, Any], bool | None]:
    from zcpolicy.predicates.path import protected_hit

    return protected_hit(files)


def _is_name(tool: Any) -> TypeGuard[ToolName]:
    parts = tool
    return type(tool) is str or (type(tool) is tuple and [*map(type, parts)] == [str, str])
