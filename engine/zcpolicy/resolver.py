"""The one resolver: from a program and the host's facts to executions, and from calls to decisions.

In: a `Program`, a `Session`, a `Narrowing`. Out: sealed `ResolvedAgentExecution`s, and `Decision`s.
"""

from __future__ import annotations

from _thread import RLock

from zcpolicy.authority import State, executions_of, genuine, load
from zcpolicy.combine import Verdict
from zcpolicy.decision import Decision
from zcpolicy.delegation import is_independent, refusal, stack_below
from zcpolicy.execution import ResolvedAgentExecution, execution, unlisted, unresolved
from zcpolicy.facts import MAX_HISTORY, Entry, Narrowing, Session
from zcpolicy.lineage import kept_up, placed, session_for
from zcpolicy.mentions import sources
from zcpolicy.names import MAX_NAME_CHARACTERS, is_canonical, is_tool_name, skeleton
from zcpolicy.narrowing import body_of, portable, refuse_unknown, restored
from zcpolicy.plan import Plan
from zcpolicy.program import Program, has_agent, head_of
from zcpolicy.refusals import PermitError, ResolveError, UnknownAgent
from zcpolicy.resolver_own import Generations, Own
from zcpolicy.sealed import Sealed, final, hidden, put
from zcpolicy.skills import known_skills, may_load
from zcpolicy.stack import Level, Stack, deciders_of, level_of
from zcpolicy.windows import told

__all__ = ["PermitError", "ResolveError", "ResolvedAgentExecution", "Resolver", "UnknownAgent"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Final, Self

    from zcpolicy.facts import ToolName
    from zcpolicy.ledgers.contract import Ledger
    from zcpolicy.operands import Call
    from zcpolicy.stack import BodyRef

MAX_UNKNOWN_NAMES: Final = 4_096
"""Names of tools that do not exist which are remembered, so that asking again is cheap."""
MAX_ONCE: Final = 100_000
"""Tools of earlier policies, the last one's aside, that narrowings may still name."""


@final
class Resolver(Sealed):
    """Decides by one program. Made by `Resolver(program, …)`; its successors by `publish`.

    `protected`: absolute paths of files that no tool above class `read` may touch. `policy_files`: such paths too, but
    of this generation: `publish` may name others. `generation`: the host's count of reloads. `ledger`: what was spent; by
    default in this process's memory. `suspended`: why nothing is decided any more but denies; "" if it is.
    """

    __slots__ = (
        "_files",
        "_own",
        "generation",
        "ledger",
        "program",
        "suspended",
    )
    _maker = "`Resolver(program)`"

    if TYPE_CHECKING:

        def __init__(
            self,
            program: Program,
            *,
            protected: Iterable[str] = (),
            policy_files: Iterable[str] = (),
            generation: int = 1,
            ledger: Ledger | None = None,
        ) -> None:
            made: Any = None
            self.program: Final[Program] = program
            self.generation: Final[int] = generation
            self.ledger: Final[Ledger] = made
            self.suspended: Final[str] = made
            self._files: Final[tuple[tuple[str, ...], tuple[str, ...]]] = made

    def __new__(
        cls,
        program: Program,
        *,
        protected: Iterable[str] = (),
        policy_files: Iterable[str] = (),
        generation: int = 1,
        ledger: Ledger | None = None,
    ) -> Self:
        from zcpolicy.ledgers.memory import MemoryLedger

        kept = ledger if ledger is not None else MemoryLedger()
        made = object.__new__(cls)
        files = (*protected, *kept.files), tuple(policy_files)
        _fill(made, program, generation, kept, files, "", {}, Generations(made))
        return made

    # --- generations ---------------------------------------------------------------------------------------------

    @property
    def newest(self) -> Resolver:
        """The resolver of the newest generation: itself until `publish`. One whose time is over is suspended now."""
        line = _own(self).line
        if line.lapsed is not None and not line.newest.suspended and line.why_lapsed():
            with line.exclusive:  # somebody may just have heard from the source
                why = line.why_lapsed()
                if why:
                    self.suspend(why)
        return line.newest

    @property
    def exclusive(self) -> RLock:
        """Held from the last look at a call until it is on record; by all generations."""
        return _own(self).line.exclusive

    def publish(
        self, program: Program, *, policy_files: Iterable[str] | None = None, generation: int | None = None
    ) -> Resolver:
        """Makes the next generation, which from now on decides every call, also of executions that stand already.

        It shares the ledger, what ran before, and the protected files; `policy_files`: takes the place of those of before.
        `generation`: its number, by default the next one. Raises ValueError for a number that was passed already.
        """
        files = None if policy_files is None else tuple(policy_files)
        return self._follow(lambda old: (program, old.generation + 1 if generation is None else generation, files, ""))

    def suspend(self, why: str) -> Resolver:
        """From now on every call is denied, reason `stale-policy`, until `publish` or `reinstate`. `why`: the decisions' note."""
        return self._follow(lambda old: (old.program, old.generation, None, why or "the policy is suspended"))

    def reinstate(self) -> Resolver:
        """What was suspended decides again; the generation is the same."""
        return self._follow(lambda old: (old.program, old.generation, None, ""))

    def lapse_when(self, why: Callable[[], str]) -> None:
        """Has calls ask `why` before they are permitted, and suspends the policy once it answers with a text, or raises.

        It must be quick, and never wait. What `decide` alone answers is not held up: the host suspends in good time.
        """
        _own(self).line.lapsed = why

    def _follow(self, of: Callable[[Resolver], tuple[Program, int, tuple[str, ...] | None, str]]) -> Resolver:
        """Puts another resolver in the place of the newest: program, number, files of the policy, why it is suspended."""
        line = _own(self).line
        with line.exclusive:
            old = line.newest
            program, number, files, why = of(old)
            if number < old.generation or (number == old.generation and program is not old.program):
                raise ValueError(f"generation {number} does not come after {old.generation}")
            made: Resolver = object.__new__(Resolver)
            whole = old._files if files is None else (old._files[0], files)
            _fill(made, program, number, old.ledger, whole, why, _own(old).clients, line)
            if program is not old.program:
                line.once = {*sorted(line.once, key=str)[:MAX_ONCE], *old.program.tools}
            line.newest = made
            stacks = [*_own(old).by_agent.values(), *(run.stack for run in executions_of(old))]
            for stack in stacks:  # what they remember of the old policy must not decide again
                deciders_of(stack).clear()
        return made

    def resolve(
        self,
        agent: str,
        *,
        session: Session | None = None,
        surface: str = "run",
        narrowing: Narrowing | None = None,
        parent: ResolvedAgentExecution | None = None,
        skills: Iterable[str] = (),
        independent: bool | None = None,
        later: bool = False,
    ) -> ResolvedAgentExecution:
        """An agent at work, by the newest generation.

        `surface`: the path that builds the turn; it stamps records and decides nothing. `parent`: the execution that
        delegates to it. `skills`: those loaded from the start. `independent=False` makes a child bounded although it
        may be independent. `later`: a call of `parent` started this run for later; it may be of the same agent.

        Raises UnknownAgent, ResolveError (not delegable, no delegation left, a child's session without its delegator,
        a skill that is not the agent's, a fact that is needed and never supplied, a label or a fact of the context that is
        nearly a declared one, a narrowing that names what is no tool), CompiledError, SealError.
        """
        self._must_fit(session)
        if narrowing is not None:
            newest = _own(self.newest)
            refuse_unknown(narrowing, newest.tool_ids, newest.line.once)
        charged = parent is not None and not (later and agent == parent.agent)
        return self.newest._resolve(
            agent, session, surface, narrowing, parent, skills, independent, later, charged=charged
        )  # fmt: skip

    def _resolve(
        self,
        agent: str,
        session: Session | None,
        surface: str,
        narrowing: Narrowing | None,
        parent: ResolvedAgentExecution | None,
        skills: Iterable[str],
        independent: bool | None,
        later: bool,
        *,
        charged: bool,
        saved: dict[str, Any] | None = None,
    ) -> ResolvedAgentExecution:
        """INVARIANT: what is made without a charge was charged before: `remade` is for tickets and generations alone.

        `saved`: the narrowing in its portable form, where it came in that.
        """
        self._must_stand()
        parent = None if parent is None else kept_up(parent)
        wanted = tuple(dict.fromkeys(skills))
        known_skills(self.program, wanted)
        facts = session_for(session, parent)
        active = tuple(dict.fromkeys((*sorted(facts.skills), *wanted)))
        known_skills(self.program, active)
        free = False
        if parent is None:
            stack = self._stack(agent, facts, narrowing, active)
        else:
            free = self._is_free(agent, parent, independent, later)
            stack = stack_below(parent.stack, agent, active, self._added(narrowing), free)
        for skill in wanted:
            may_load(stack, skill)
        if facts.never:
            from zcpolicy.needs import refuse_unmet

            refuse_unmet(stack, facts)
        if parent is not None and charged:
            self._charge_delegation(parent, agent)
        placed(facts, agent, parent, independent=free)
        if wanted:
            load(facts, frozenset(wanted))
        if narrowing is not None and saved is None:
            saved = portable(narrowing, self.program)
        return execution(State(self, stack, facts, parent, surface, saved, free, later))

    def remade(
        self,
        agent: str,
        *,
        session: Session,
        surface: str,
        narrowing: dict[str, Any] | None,
        parent: ResolvedAgentExecution | None,
        skills: Iterable[str] = (),
        independent: bool,
        later: bool,
    ) -> ResolvedAgentExecution:
        """What `resolve` made before, again: nothing is charged. `narrowing`: in its portable form. For the engine.

        Raises as `resolve`.
        """
        again, saved = (None, None) if narrowing is None else restored(narrowing, _own(self).tool_ids)
        free = None if parent is None else independent
        return self._resolve(agent, session, surface, again, parent, skills, free, later, charged=False, saved=saved)

    def resume(self, ticket: Mapping[str, Any], sessions: Callable[[str], Session | None]) -> ResolvedAgentExecution:
        """The execution of a ticket, and those above it, under the newest generation; nothing is charged again.

        `sessions`: by id. Raises as `resolve`, and ResolveError for what is no ticket.
        """
        from zcpolicy.tickets import resumed

        return resumed(self.newest, ticket, sessions)

    def again(self, state: State, agent: str) -> ResolvedAgentExecution:
        """What an execution of an earlier generation is under this one. For the engine. Raises ResolveError."""
        run = self.remade(
            agent,
            session=state.session,
            surface=state.surface,
            narrowing=state.narrowing,
            parent=None if state.parent is None else state.parent.renewed(),
            independent=state.independent,
            later=state.later,
        )
        genuine(run).registry = state.registry
        return run

    def decide(self, agent: str, tool: ToolName, arguments: object, *, session: Session | None = None) -> Decision:
        """One decision without holding an execution. What `resolve` would refuse is a deny.

        It is an answer and no more: the decision's `run` is on no record, so that nothing can be permitted with it.
        """
        if self.newest is not self:
            return self.newest.decide(agent, tool, arguments, session=session)
        facts = session if session is not None else Session()
        skills = tuple(sorted(facts.skills))
        try:
            self._must_stand()
            self._must_fit(session_for(facts, None))
            known_skills(self.program, skills)
            stack = self._stack(agent, facts, None, skills)
        except ResolveError as error:
            verdict = Verdict("deny", unresolved(error), note=str(error))
            verdict.tool = tool
            nobody = Stack(self.program, (Level(str(agent)[:60], (), (), 0, ()),), ())
            return Decision(verdict, {}, self._alone(nobody, facts), facts.labels)
        found = self._alone(stack, facts).decide(tool, arguments)
        newest = self.newest
        return found if newest is self else newest.decide(agent, tool, arguments, session=session)

    def _alone(self, stack: Stack, session: Session) -> ResolvedAgentExecution:
        return unlisted(State(self, stack, session, None, "decide", None, False, False))

    # --- for the engine ------------------------------------------------------------------------------------------

    def now(self, session: Session) -> float:
        """The session's clock, never before a time that was already acted on: a clock set back grants nothing.

        Raises NoTime.
        """
        return self.ledger.now(told(session.clock))

    def done_by(self, client: str) -> Sequence[Entry]:
        """Calls that ran in this process for a client, in any session."""
        return _own(self).clients.get(client, ())

    def did(self, client: str, entry: Entry) -> None:
        """A call ran for a client. Of one without a name nothing is kept: nobody knows whose it is."""
        if client:
            done = _own(self).clients.setdefault(client, [])
            done.append(entry)
            if len(done) > MAX_HISTORY:
                del done[: MAX_HISTORY // 10]

    def touches_protected(self, call: Call) -> bool | None:
        """Whether a call's paths hit a protected file; None: they may."""
        found: bool | None = False
        protects = _own(self).protects
        if protects is not None:
            for path in call.found.paths:
                hit = protects(path, call.where)
                if hit:
                    return True
                found = None if hit is None else found
        return found

    def plan(self, stack: Stack, tool: Any, session: Session) -> Plan | Verdict:
        """The plan of a tool, or the deny for a name that is none."""
        known = _own(self).tool_ids.get(tool) if is_tool_name(tool) else None
        if known is not None and self._why_unknown(tool, known=True) != "not-canonical":
            data = head_of(self.program)["tools"][known]
            protects = _own(self).protects is not None and any(sources(data["schema"]))
            return Plan(stack, known, data, protects, self.ledger, session.drift_of(tool))
        verdict = Verdict("deny", self._why_unknown(tool, known=False))
        verdict.tool = tool
        return verdict

    def _why_unknown(self, tool: Any, *, known: bool) -> str:
        if not is_tool_name(tool):
            return "unknown-tool"
        unknown = _own(self).unknown
        found = unknown.get(tool)
        if found is None:
            parts = (tool,) if isinstance(tool, str) else tool
            found = "unknown-tool" if all(is_canonical(part, self._looks) for part in parts) else "not-canonical"
            if not known and sum(map(len, parts)) <= MAX_NAME_CHARACTERS:
                if len(unknown) >= MAX_UNKNOWN_NAMES:
                    unknown.clear()
                unknown[tool] = found
        return found

    def _looks(self) -> dict[str, set[str]]:
        """What known names look like, with the names that do; worked out when an odd name first comes."""
        own = _own(self)
        if not own.looks:
            for name in own.tool_ids:
                for part in (name,) if isinstance(name, str) else name:
                    own.looks.setdefault(skeleton(part), set()).add(part)
        return own.looks

    def _stack(self, agent: str, session: Session, narrowing: Narrowing | None, skills: tuple[str, ...]) -> Stack:
        """An agent's stack; with nothing taken away and nothing drifted, one for all its runs."""
        plain = narrowing is None and not skills and not session.drift and session.above is None
        stack = _own(self).by_agent.get(agent) if plain and type(agent) is str else None
        if stack is None:
            self._must_know(agent)
            level = level_of(self.program, agent, 0, skills, self._added(narrowing))
            stack = Stack(self.program, (level,), (level,))
            if plain:
                _own(self).by_agent[agent] = stack
        return stack

    def _must_fit(self, session: Session | None) -> None:
        """Only where a host brings a session to an agent: runs that stand go on under a policy that calls things otherwise."""
        if type(session) is Session and (session.labels or session.context):
            from zcpolicy.needs import refuse_misfits

            refuse_misfits(self.newest.program, session)

    def _must_stand(self) -> None:
        if self.suspended:
            raise ResolveError(self.suspended)

    def _must_know(self, agent: str) -> None:
        if not has_agent(self.program, agent):
            raise UnknownAgent(f"there is no agent `{str(agent)[:60]}`")

    def _added(self, narrowing: Narrowing | None) -> tuple[BodyRef, ...]:
        return () if narrowing is None else (body_of(narrowing, self.program, _own(self).tool_ids),)

    def _charge_delegation(self, parent: ResolvedAgentExecution, agent: str) -> None:
        """Here, so that no path can forget it. Raises ResolveError where none is left."""
        from os import urandom

        over = parent.budgets.delegation(f"delegation {urandom(16).hex()}")
        if over is not None:
            raise ResolveError(f"no delegation to `{agent}` is left ({over.reason})")

    def _is_free(self, agent: str, parent: ResolvedAgentExecution, independent: bool | None, later: bool) -> bool:
        """Whether a child is independent. Raises ResolveError where it may not be at all."""
        if parent.resolver is not self:
            raise ResolveError("the execution above is of another resolver")
        self._must_know(agent)
        why = refusal(parent.stack, agent, later=later)
        if why is not None:
            raise ResolveError(why)
        free = not later and is_independent(parent.stack, agent)
        if independent and not free:
            raise ResolveError(f"agent `{agent}` may not be delegated to independently")
        return free and independent is not False


_OWN: Final = hidden(Resolver, "_own")


def _own(resolver: Resolver) -> Own:
    found: Own = _OWN.__get__(resolver)
    return found


def _fill(
    made: Resolver,
    program: Program,
    generation: int,
    ledger: Ledger,
    files: tuple[tuple[str, ...], tuple[str, ...]],
    suspended: str,
    clients: dict[str, list[Entry]],
    line: Generations,
) -> None:
    """`files`: those protected for good, those of this generation."""
    if type(program) is not Program:
        raise TypeError("a resolver is made from a Program")
    put(made, "program", program)
    put(made, "generation", generation)
    put(made, "ledger", ledger)
    put(made, "suspended", suspended)
    put(made, "_files", files)
    _OWN.__set__(made, Own(program, (*files[0], *files[1]), clients, line))
