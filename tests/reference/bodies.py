"""One body's answer to one call: granted, blocked, prompted, capped. SPEC 5.

In: the statements of a body, a judged call, the circumstances. Out: a `PartAnswer`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from policy_lang import ast
from tests.reference.arguments import Found, Judged, look, same
from tests.reference.conditions import Circumstances, rule_truth
from tests.reference.host import Facts, Ran
from tests.reference.values import CLASSES, ToolName
from tests.reference.written import Page, Told, World
from zcpolicy.predicates.refs import Truth

Effect = Literal["deny", "ask", "allow"]
T = TypeVar("T", bound=ast.Statement)

LEVELS: Final[Mapping[str, tuple[Effect, ...]]] = {
    "readonly": ("allow", "deny", "deny", "deny"),
    "supervised": ("allow", "ask", "ask", "ask"),
    "full": ("allow", "allow", "allow", "allow"),
}
STRICTNESS: Final[Sequence[Effect]] = ("deny", "ask", "allow")


@dataclass(frozen=True)
class Part:
    """One body at work. `pot` names it for limits; `grants`: the root body of its execution."""

    pot: str
    told: tuple[Told, ...]
    grants: bool = False

    def of(self, kind: type[T]) -> list[tuple[T, Page]]:
        """Its statements of one kind."""
        return [(one.statement, one.page) for one in self.told if isinstance(one.statement, kind)]


@dataclass(frozen=True)
class PartAnswer:
    """What one body says: why not, or who asks, and which statements said so."""

    causes: dict[str, list[ast.Statement]]
    asks: list[ast.Statement] | None
    allows: list[ast.Statement]


@dataclass(frozen=True)
class Bench:
    """One call before the bodies: in these circumstances, with these facts."""

    now: Circumstances
    facts: Facts

    @property
    def world(self) -> World:
        """The policy."""
        return self.now.world

    @property
    def call(self) -> Judged:
        """The call."""
        return self.now.call

    def ask(self, part: Part) -> PartAnswer:
        """What one body says."""
        now, call = self.now, self.call
        rules = [
            (rule, rule_truth(rule, page, now))
            for rule, page in part.of(ast.Rule)
            if self.world.covers(rule.tools, page, call.tool.name)
        ]
        allows = [rule for rule, truth in rules if rule.effect == "allow" and truth is True]
        causes: dict[str, list[ast.Statement]] = {}
        if part.grants and not allows:
            causes["not-granted"] = []
        self._blocked(part, rules, causes)
        asks = [rule for rule, truth in rules if rule.effect == "ask" and truth is not False]
        asks += [rule for rule, truth in rules if rule.effect == "deny" and rule.unclear_ask and truth is None]
        if allows and all(rule.approval for rule in allows):
            asks += allows
        told = list[ast.Statement](asks)
        drift = self._drift(part)
        if drift == "deny":
            causes["drift"] = []
        prompted = drift == "ask" or bool(asks)
        cap, caps = self._cap(part)
        if cap == "deny":
            causes["autonomy"] = caps
        if cap == "ask" and not any(rule.effect == "auto_approve" and truth is True for rule, truth in rules):
            prompted, told = True, [*told, *caps]
        return PartAnswer(causes, told if prompted else None, list[ast.Statement](allows))

    def _blocked(self, part: Part, rules: list[tuple[ast.Rule, Truth]], causes: dict[str, list[ast.Statement]]) -> None:
        call = self.call
        denies = [
            rule
            for rule, truth in rules
            if rule.effect == "deny" and (truth is True or (truth is None and not rule.unclear_ask))
        ]
        if denies:
            causes["denied"] = list(denies)
        outside = [
            only
            for only, page in part.of(ast.Only)
            if only.tools is None or not self.world.covers(only.tools, page, call.tool.name)
        ]
        if outside:
            causes["outside-only"] = list(outside)
        if call.tool.name[0] is not None and not self._connected(part, call.tool.name):
            causes["not-connected"] = []
        unmet = [
            require
            for require, page in part.of(ast.Require)
            if self.world.covers(require.later, page, call.tool.name) and not self._met(require, page)
        ]
        if unmet:
            causes["precondition"] = list(unmet)

    def _connected(self, part: Part, tool: ToolName) -> bool:
        said = part.of(ast.Connect)
        if not said:
            return not part.grants
        return all(self.world.connects(connect, page, tool) for connect, page in said)

    def _met(self, require: ast.Require, page: Page) -> bool:
        """Whether a call that ran and reported success came before, recently enough, with equal arguments."""
        for ran in _before(self.facts):
            earlier = self.world.tool(ran.tool)
            if earlier is None or not ran.ok or not self.world.covers(require.earlier, page, ran.tool):
                continue
            if require.within is not None and self.facts.now - ran.at > require.within.seconds:
                continue
            before = Judged(earlier, dict(ran.arguments))
            if all(_equal(look(before, operand.path), look(self.call, operand.path)) for operand in require.same):
                return True
        return False

    def _cap(self, part: Part) -> tuple[Effect, list[ast.Statement]]:
        """The strictest cap of a body for the tool's class, and the statements that say it."""
        caps: list[tuple[Effect, ast.Statement]] = [
            (_level(one)[self.call.tool.risk], one) for one, _ in part.of(ast.Autonomy)
        ]
        strictest = strictest_of([cap for cap, _ in caps])
        return strictest, [one for cap, one in caps if cap == strictest]

    def _drift(self, part: Part) -> Effect:
        """What a body says of a tool whose live definition is another than the policy's."""
        kind = self.facts.drift.get(self.call.tool.name)
        if kind is None:
            return "allow"
        said: list[Effect] = [one.answer for one, _ in part.of(ast.OnDrift) if one.kind in (kind, "any", None)]
        if not said and part.grants:
            return "ask" if kind == "description" else "deny"
        return strictest_of(said)


def strictest_of(effects: list[Effect]) -> Effect:
    """The minimum; without any: allow."""
    for effect in STRICTNESS:
        if effect in effects:
            return effect
    return "allow"


def _before(facts: Facts | None) -> list[Ran]:
    """What ran in a session and in those above it."""
    return [*(facts.history or []), *_before(facts.above)] if facts is not None else []


def _equal(a: object, b: object) -> bool:
    return isinstance(a, Found) and isinstance(b, Found) and same(a.value, b.value)


def _level(autonomy: ast.Autonomy) -> dict[ast.RiskClass, Effect]:
    if autonomy.level is None:
        return dict(autonomy.table)
    return dict(zip(CLASSES, LEVELS[autonomy.level], strict=True))
