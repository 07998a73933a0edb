"""One agent's stack and one tool: only the statements that can matter, and the function that decides a call.

In: a `Stack` and a tool. Out: a `Plan`. It is built when the tool is first asked for, and shared by all runs of the
stack. Which conditions hold becomes bits; equal bits have equal outcomes, which are combined once.
"""

from __future__ import annotations

from zcpolicy.call import Malformed, judge
from zcpolicy.combine import (
    ALWAYS,
    FIRST_FREE,
    INTERACTIVE,
    MAYBE_PROTECTED,
    PROTECTED,
    RANK,
    BodyPlan,
    Verdict,
    conclude,
    of_the_call,
    of_the_plan,
)  # fmt: skip
from zcpolicy.condition import compile_condition, possible, truth_of
from zcpolicy.decision import Decision
from zcpolicy.generate import generate
from zcpolicy.operands import Call, Site
from zcpolicy.program import head_of, tools_in
from zcpolicy.refusals import ResolveError
from zcpolicy.stack import RuleRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from zcpolicy.condition import Node
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import Drift, Session, ToolName
    from zcpolicy.ledgers.contract import Ledger
    from zcpolicy.pots import Counting
    from zcpolicy.shapes import Answer, Rule, Tool
    from zcpolicy.stack import BodyRef, Stack

    Decide = Callable[[Any, "ResolvedAgentExecution"], Decision]

MAX_VERDICTS: Final = 4_096
"""Outcomes that one plan remembers."""

_SURELY: Final[frozenset[bool | None]] = frozenset((True,))
GRANTING: Final = ("allow", "auto_approve")
_DRIFT: Final[dict[str, Answer]] = {"description": "ask", "schema": "deny", "launch": "deny"}


class Question:
    """One condition that the decision depends on. `must`: the bit of TRUE; `may`: of not FALSE; 0: not wanted."""

    __slots__ = ("grants", "may", "must", "node")

    def __init__(self, node: Node, grants: bool) -> None:
        self.node = node
        self.grants = grants
        self.must = 0
        self.may = 0


class Plan:
    """What a stack can say of one tool, and `decide(arguments, run)`."""

    __slots__ = (
        "_decide",
        "_free",
        "_sites",
        "_verdicts",
        "bodies",
        "ledger",
        "limits",
        "marks",
        "name",
        "protects",
        "questions",
        "requires",
        "stack",
        "tool",
        "tool_id",
    )  # fmt: skip

    def __init__(
        self,
        stack: Stack,
        tool_id: int,
        tool: Tool,
        protects: bool,
        ledger: Ledger,
        drift: frozenset[Drift] = frozenset(),
    ) -> None:
        self.ledger = ledger
        self.stack = stack
        self.tool_id = tool_id
        self.tool = tool
        self.name: ToolName = tool["name"] if tool["server"] is None else (tool["server"], tool["name"])
        self.questions: dict[tuple[str, bool], Question] = {}
        self.requires: list[tuple[RuleRef, int]] = []
        self.marks: list[tuple[RuleRef, Node | None]] = []
        self.limits: list[Counting] = []
        self._free = FIRST_FREE
        self._verdicts: dict[int, Verdict] = {}
        own, context = stack.own, head_of(stack.program)["context"]
        self._sites = {grants: Site(tool, own.agent, own.depth, context, grants) for grants in (True, False)}
        self.bodies = [self._body(body, drift) for body in stack.bodies()]
        self._limit()
        self.protects = protects and tool["class"] != "read"
        self._decide: Decide | None = None

    # --- building ------------------------------------------------------------------------------------------------

    def _has(self, ids: str) -> bool:
        return self.tool_id in tools_in(self.stack.program, ids)

    def _body(self, body: BodyRef, drift: frozenset[Drift]) -> BodyPlan:
        plan, data = BodyPlan(body), body.data
        for index, rule in enumerate(data.get("rules", ())):
            if self._has(rule["tools"]):
                self._rule(plan, RuleRef(body, "rules", index), rule)
        plan.outside = tuple(
            RuleRef(body, "only", index)
            for index, only in enumerate(data.get("only", ()))
            if not self._has(only["tools"])
        )
        if self.tool["server"] is not None and "connect" in data and not self._has(data["connect"]["tools"]):
            plan.unconnected = RuleRef(body, "connect")
        if "autonomy" in data:
            plan.cap = (data["autonomy"][self.tool["class"]], RuleRef(body, "autonomy", about=self.tool["class"]))
        for index, require in enumerate(data.get("require", ())):
            if self._has(require["later"]):
                found = (RuleRef(body, "require", index), self._bit())
                plan.requires.append(found)
                self.requires.append(found)
        said: Mapping[Any, Answer] = data.get("drift", {})
        answers: list[Answer] = [said.get(kind, _DRIFT[kind]) for kind in drift if body.grants or kind in said]
        if answers:
            strictest = min(answers, key=RANK.__getitem__)
            plan.drift = (strictest, RuleRef(body, "drift"))
        return plan

    def _rule(self, plan: BodyPlan, ref: RuleRef, rule: Rule) -> None:
        effect = rule["effect"]
        if effect == "mark":
            condition = rule.get("if")
            node = compile_condition(condition, self._sites[False]) if condition is not None else None
            self.marks.append((ref, node))
        elif effect == "deny":
            unclear = "unclear" in rule
            must = self._must(rule) if unclear else ALWAYS
            plan.denies.append((ref, must, self._may(rule), unclear))
        elif effect == "ask":
            plan.asks.append((ref, self._may(rule)))
        elif effect == "allow" and plan.body.grants:
            plan.allows.append((ref, self._must(rule), bool(rule.get("approval"))))
        elif effect == "auto_approve" and plan.body.grants:
            plan.waivers.append((ref, self._must(rule)))

    def _bit(self) -> int:
        bit = self._free
        self._free <<= 1
        return bit

    def _question(self, rule: Rule) -> Question | None:
        condition = rule.get("if")
        if condition is None:
            return None
        grants = rule["effect"] in GRANTING
        key = (repr(condition), grants)  # parsed from canonical text, so that equal conditions look alike
        if key not in self.questions:
            self.questions[key] = Question(compile_condition(condition, self._sites[grants]), grants)
        return self.questions[key]

    def _must(self, rule: Rule) -> int:
        question = self._question(rule)
        if question is None:
            return ALWAYS
        question.must = question.must or self._bit()
        return question.must

    def _may(self, rule: Rule) -> int:
        question = self._question(rule)
        if question is None:
            return ALWAYS
        question.may = question.may or self._bit()
        return question.may

    def _limit(self) -> None:
        if any("limits" in body.data for level in self.stack.counted for body in level.bodies):
            from zcpolicy.pots import limits_of

            self.limits = limits_of(self.stack, self.tool_id)

    def speaks(self, rule: Rule) -> bool:
        """Whether a rule is about this tool."""
        return self._has(rule["tools"])

    def site(self, effect: str) -> Site:
        """Where the conditions of such rules stand."""
        return self._sites[effect in GRANTING]

    @property
    def decide(self) -> Decide:
        """The function that decides a call, made when a call first comes."""
        if self._decide is None:
            self._decide = generate(self, self._verdicts)
        return self._decide

    # --- deciding ------------------------------------------------------------------------------------------------

    def verdict(self, bits: int) -> Verdict:
        """The outcome of these bits, remembered."""
        found = self._verdicts.get(bits)
        if found is None:
            found = of_the_plan(self, conclude(self.bodies, bits), bits)
            if len(self._verdicts) >= MAX_VERDICTS:
                self._verdicts.clear()
            self._verdicts[bits] = found
        return found

    def slowly(self, arguments: object, run: ResolvedAgentExecution) -> Decision:
        """The plain way: exact judging, three-valued evaluation. What the generated function must agree with."""
        session = run.session
        labels = session.labels
        if not session.skills <= {*self.stack.own.skills}:
            return self._under_skills(arguments, run)
        try:
            judged = judge(self.tool["schema"], arguments, session.supplies_defaults)
        except Malformed as error:
            return Decision(self.failed("malformed", str(error)), {}, run, labels)
        call = Call(judged, session, labels, self.tool)
        bits = base_bits(session) | self.bits_of(call)
        if self.requires or self.protects:
            bits |= self.facts_bits(call, run)
        return self.settled(self.verdict(bits), judged, run, labels)

    def _under_skills(self, arguments: object, run: ResolvedAgentExecution) -> Decision:
        """The decision of a run whose session has loaded skills elsewhere: it takes them on first."""
        try:
            run.keep_up()
        except ResolveError as error:  # a skill of another policy: of that before a reload
            return Decision(self.failed("stale-policy", str(error)), {}, run, run.session.labels)
        return run.decide(self.name, arguments)

    def bits_of(self, call: Call) -> int:
        """The bits of all conditions, by the plain evaluator."""
        bits = 0
        for question in self.questions.values():
            truth = truth_of(question.node, call)
            if truth is True:
                bits |= question.must
            if truth is not False:
                bits |= question.may
        return bits

    def facts_bits(self, call: Call, run: ResolvedAgentExecution) -> int:
        """The bits of what was done before (`require`), and of protected files."""
        bits = 0
        if self.requires:
            from zcpolicy.history import unmet

            for rule, bit in self.requires:
                if unmet(rule.data, call.arguments, run, self.stack):
                    bits |= bit
        if self.protects:
            hit = run.resolver.touches_protected(call)
            bits |= PROTECTED if hit else MAYBE_PROTECTED if hit is None else 0
        return bits

    def settled(
        self, verdict: Verdict, judged: dict[str, Any], run: ResolvedAgentExecution, labels: frozenset[str]
    ) -> Decision:
        """The decision, after a look at the limits that the call would count in."""
        if self.limits and verdict.effect != "deny":
            from zcpolicy.room import exhausted

            over = exhausted(self, judged, run)
            if over is not None:
                verdict = of_the_call(verdict, over)
        return Decision(verdict, judged, run, labels)

    def failed(self, reason: str, note: str = "") -> Verdict:
        """A deny that no rule decided."""
        return of_the_plan(self, Verdict("deny", reason, note=note))

    def callable_at_all(self, session: Session) -> bool:
        """Whether some arguments may lead to anything but a deny: conditions that look at them count as it helps."""
        if any(one.fits is False for one in self.limits):  # a limit of none
            return False
        call = Call({}, session, session.labels, self.tool)
        bits = base_bits(session)
        for question in self.questions.values():
            truths = possible(question.node, call)
            if question.grants:
                bits |= question.must if True in truths else 0
                continue
            bits |= question.may if False not in truths else 0
            bits |= question.must if truths == _SURELY else 0
        return conclude(self.bodies, bits).effect != "deny"


def base_bits(session: Session) -> int:
    """The bits that a call begins with."""
    return ALWAYS | INTERACTIVE if session.interactive else ALWAYS
