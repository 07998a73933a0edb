"""SPEC section 5: what each body says of a call, and the minimum of it all.

In: which conditions hold, as bits. Out: a `Verdict`. This is the one place where answers are combined: the plain
evaluator and the generated code both end here, and the outcome of equal bits is remembered by the plan.
"""

from __future__ import annotations

from zcpolicy.sealed import Fixed, hidden, put
from zcpolicy.stack import RuleRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from zcpolicy.facts import ToolName
    from zcpolicy.plan import Plan
    from zcpolicy.resolver import Resolver
    from zcpolicy.shapes import Answer
    from zcpolicy.stack import BodyRef

ALWAYS: Final = 1
"""The bit that is always set: of what has no condition."""
INTERACTIVE: Final = 2
PROTECTED: Final = 4
MAYBE_PROTECTED: Final = 8
FIRST_FREE: Final = 16

REASONS: Final = (
    "unknown-agent", "not-canonical", "unknown-tool", "malformed", "stale-policy", "protected", "drift",
    "not-connected", "not-granted", "outside-only", "denied", "precondition", "autonomy", "no-approver",
    "ledger-unavailable", "budget",
)  # fmt: skip
"""The reasons of a deny; the first that applies is the decision's."""
NOT_INTERACTIVE: Final = "the session is not interactive, so that nobody is there to be asked"
RANK: Final = {"deny": 0, "ask": 1, "allow": 2}


class Said(Fixed):
    """One body's answer to one call. `reasons`: why it denies. `rules`: the statements behind it."""

    __slots__ = ("body", "effect", "reasons", "rules")

    if TYPE_CHECKING:
        body: BodyRef | None
        effect: Answer
        reasons: tuple[str, ...]
        rules: tuple[RuleRef, ...]

    def __init__(
        self, body: BodyRef | None, effect: Answer, reasons: tuple[str, ...], rules: tuple[RuleRef, ...]
    ) -> None:
        put(self, "body", body)
        put(self, "effect", effect)
        put(self, "reasons", reasons)
        put(self, "rules", rules)

    @property
    def name(self) -> str:
        """The body's name; `protected` for the engine's own."""
        return "protected" if self.body is None else self.body.name


class Verdict:
    """The outcome of one combination. `note`: what to tell a host besides: what is wrong with a malformed call, which limit has
    no room, why the ledger cannot be asked. `rules`: the statements that decided.

    Of a call it is neither true nor false; what `budgets` says of a request is a deny, or None. Each part is set once: equal
    calls share a verdict, and nobody who holds one may change what they are told. `plan` is hidden.
    """

    __slots__ = ("bits", "effect", "note", "plan", "reason", "resolver", "retry_after", "rules", "said", "tool")

    if TYPE_CHECKING:
        tool: ToolName
        bits: int
        said: tuple[Said, ...]
        resolver: Resolver | None  # of the generation that decided, where it is not that of the execution

    def __init__(
        self,
        effect: Answer,
        reason: str,
        rules: tuple[RuleRef, ...] = (),
        said: tuple[Said, ...] = (),
        note: str = "",
        retry_after: float | None = None,
    ) -> None:
        self.effect: Answer = effect
        self.reason = reason
        self.rules = rules
        if said:
            self.said = said
        self.note = note
        self.retry_after = retry_after

    @property
    def for_model(self) -> str:
        """What to tell a model, as a decision's: for hosts that ask `budgets` themselves."""
        from zcpolicy.texts import for_model

        return for_model(self)

    def __repr__(self) -> str:
        return f"<Verdict {self.effect} ({self.reason})" + (f": {self.note}>" if self.note else ">")

    if not TYPE_CHECKING:

        def __bool__(self) -> bool:
            if self.tool:
                raise TypeError(
                    "a verdict of a call is neither true nor false: ask with `isinstance`, or compare `.effect`"
                )
            return True

        def __getattr__(self, name: str) -> object:
            """What was not set yet."""
            try:
                return _UNSAID[name]
            except KeyError:
                raise AttributeError(name) from None

        def __setattr__(self, name: str, value: object) -> None:
            try:
                object.__getattribute__(self, name)
            except AttributeError:
                put(self, name, value)
                return
            raise AttributeError(f"a verdict stands: its `{name}` cannot be set again")

        def __delattr__(self, name: str) -> None:
            raise AttributeError(f"a verdict stands: its `{name}` cannot be deleted")


_UNSAID: Final[dict[str, Any]] = {"tool": "", "bits": 0, "said": (), "resolver": None}
_PLAN: Final = hidden(Verdict, "plan")


def plan_behind(verdict: Verdict) -> Plan | None:
    """The plan of the tool; None where no tool was found."""
    try:
        plan: Plan = _PLAN.__get__(verdict)
    except AttributeError:
        return None
    return plan


def of_the_plan(plan: Plan, verdict: Verdict, bits: int = 0) -> Verdict:
    """Says of a new verdict which tool it is about, and what held."""
    verdict.tool, verdict.bits, verdict.resolver = plan.name, bits, None
    _PLAN.__set__(verdict, plan)
    return verdict


def of_the_call(first: Verdict, verdict: Verdict) -> Verdict:
    """Says of a new verdict that it is about the call of another, in whose place it comes."""
    verdict.tool, verdict.bits, verdict.said, verdict.resolver = first.tool, first.bits, first.said, first.resolver
    plan = plan_behind(first)
    if plan is not None:
        _PLAN.__set__(verdict, plan)
    return verdict


class BodyPlan:
    """What one body can say of one tool: its statements with the bits that switch them.

    `allows`: (rule, bit, with approval); `denies`: (rule, bit of TRUE, bit of not FALSE, unclear asks).
    """

    __slots__ = ("allows", "asks", "body", "cap", "denies", "drift", "outside", "requires", "unconnected", "waivers")

    def __init__(self, body: BodyRef) -> None:
        self.body = body
        self.allows: list[tuple[RuleRef, int, bool]] = []
        self.asks: list[tuple[RuleRef, int]] = []
        self.denies: list[tuple[RuleRef, int, int, bool]] = []
        self.waivers: list[tuple[RuleRef, int]] = []
        self.requires: list[tuple[RuleRef, int]] = []  # set: not met
        self.outside: tuple[RuleRef, ...] = ()
        self.unconnected: RuleRef | None = None
        self.cap: tuple[Answer, RuleRef] | None = None
        self.drift: tuple[Answer, RuleRef] | None = None

    def answer(self, bits: int) -> Said:
        """This body's own decision."""
        reasons, rules = self._blocks(bits)
        granted = [(rule, approval) for rule, bit, approval in self.allows if bits & bit]
        if self.body.grants and not granted:
            reasons.append("not-granted")
        if reasons:
            return Said(self.body, "deny", tuple(reasons), tuple(rules))
        asked = self._prompts(bits, granted)
        waived = [rule for rule, bit in self.waivers if bits & bit]
        if self.cap and self.cap[0] == "ask" and not waived:
            asked.append(self.cap[1])
        if asked:
            return Said(self.body, "ask", (), tuple(asked))
        return Said(self.body, "allow", (), tuple([rule for rule, _ in granted] + (waived if self.cap else [])))

    def _blocks(self, bits: int) -> tuple[list[str], list[RuleRef]]:
        reasons: list[str] = []
        rules: list[RuleRef] = []

        def block(reason: str, found: Sequence[RuleRef]) -> None:
            if found:
                reasons.append(reason)
                rules.extend(found)

        block("drift", [self.drift[1]] if self.drift and self.drift[0] == "deny" else [])
        block("not-connected", [self.unconnected] if self.unconnected else [])
        block("outside-only", self.outside)
        block("denied", [rule for rule, must, may, unclear in self.denies if bits & (must if unclear else may)])
        block("precondition", [rule for rule, bit in self.requires if bits & bit])
        block("autonomy", [self.cap[1]] if self.cap and self.cap[0] == "deny" else [])
        return reasons, rules

    def _prompts(self, bits: int, granted: list[tuple[RuleRef, bool]]) -> list[RuleRef]:
        asked = [rule for rule, bit in self.asks if bits & bit]
        # INVARIANT: no deny is TRUE here, or its body had been blocked.
        asked += [rule for rule, _, may, unclear in self.denies if unclear and bits & may]
        if granted and all(approval for _, approval in granted):
            asked += [rule for rule, _ in granted]
        if self.drift and self.drift[0] == "ask":
            asked.append(self.drift[1])
        return asked


def conclude(bodies: Sequence[BodyPlan], bits: int) -> Verdict:
    """The minimum over all bodies of all levels, and what a deny is called."""
    said = [body.answer(bits) for body in bodies]
    if bits & PROTECTED:
        said.append(Said(None, "deny", ("protected",), ()))
    elif bits & MAYBE_PROTECTED:
        said.append(Said(None, "ask", (), ()))
    answers: list[Answer] = [one.effect for one in said] or ["deny"]  # where nobody grants anything
    effect = min(answers, key=RANK.__getitem__)
    deciding = [one for one in said if one.effect == effect]
    rules = tuple(rule for one in deciding for rule in one.rules)
    if effect == "deny":
        reasons = {reason for one in deciding for reason in one.reasons}
        return Verdict(
            "deny", next((reason for reason in REASONS if reason in reasons), "not-granted"), rules, tuple(said)
        )
    if effect == "ask":
        unheard = _nobody_to_ask(bodies, deciding, bits)
        if unheard is not None:
            note = "" if unheard else NOT_INTERACTIVE
            return Verdict("deny", "no-approver", (*rules, *unheard), tuple(said), note)
        return Verdict("ask", "asked", rules, tuple(said))
    return Verdict("allow", "allowed", rules, tuple(said))


def _nobody_to_ask(bodies: Sequence[BodyPlan], asking: list[Said], bits: int) -> list[RuleRef] | None:
    """The statements that leave nobody to ask (none, where the session is just not interactive); None: somebody is.

    Each asking body has to name somebody: who is named by one answers for no other.
    """
    silent = [RuleRef(body.body, "approval") for body in bodies if body.body.data.get("approval", {}).get("none")]
    if silent:
        return silent
    return None if bits & INTERACTIVE or all(_routes(one) for one in asking) else []


def _routes(one: Said) -> bool:
    approval: Any = one.body.data.get("approval", {}) if one.body is not None else {}
    return bool(approval.get("routes") or approval.get("fallback"))
