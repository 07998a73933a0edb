"""What the checks read: the statements of each body, sorted by kind once, with the tools that they mean.

In: `Bound`. Out: a `Survey`. A statement of a profile stands in every body that uses it, and once in `written`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from policy_lang import ast
from policy_lang.bound import Bound, BoundBody, Placed
from policy_lang.diagnostics import Label
from policy_lang.lower.settings import LEVELS, STRICTNESS
from policy_lang.source import Source, Span

MAX_ABOVE = 32
"""An agent is compared with so many of those that it narrows; a longer chain is judged in parts."""

Cap = dict[ast.RiskClass, ast.Answer]


class RuleAt(NamedTuple):
    """A rule, where it stands, and the ids of its tools."""

    node: ast.Rule
    placed: Placed
    ids: frozenset[int]

    @property
    def source(self) -> Source:
        """The text that the rule is written in."""
        return self.placed.file.source

    @property
    def always(self) -> bool:
        """Whether it has no condition."""
        return self.node.when is None and self.node.unless is None

    def label(self, text: str) -> Label:
        """A pointer at this rule."""
        return Label(self.source, head(self.node), text)


class OnlyAt(NamedTuple):
    """An `only`; `ids` is empty for `only none`."""

    node: ast.Only
    placed: Placed
    ids: frozenset[int]


class LimitAt(NamedTuple):
    """A limit; `ids` is `None` where it does not name tools."""

    node: ast.Limit
    placed: Placed
    ids: frozenset[int] | None


class CapAt(NamedTuple):
    node: ast.Autonomy
    placed: Placed
    cap: Cap


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One body by kinds of statements. `rules` by effect, in the order written."""

    body: BoundBody
    rules: dict[ast.Effect, list[RuleAt]]
    onlys: list[OnlyAt]
    limits: list[LimitAt]
    caps: list[CapAt]
    others: list[Placed] = field(default_factory=list[Placed])
    _first: dict[tuple[ast.Effect, bool], dict[int, RuleAt]] = field(
        default_factory=dict[tuple[ast.Effect, bool], dict[int, RuleAt]]
    )

    def own(self, effect: ast.Effect) -> Iterator[RuleAt]:
        """The rules of one effect that the body itself writes, not a profile of it."""
        return (rule for rule in self.rules[effect] if rule.placed.via is None)

    def always(self, effect: ast.Effect) -> frozenset[int]:
        """The tools that the unconditional rules of one effect name."""
        return frozenset[int]().union(*(rule.ids for rule in self.rules[effect] if rule.always))

    def first(self, effect: ast.Effect, ids: frozenset[int], *, always: bool = False) -> RuleAt | None:
        """The first rule of an effect, or the first unconditional one, that names one of the tools; by index."""
        index = self._first.get((effect, always))
        if index is None:
            index = self._first[effect, always] = {}
            for rule in self.rules[effect]:
                if rule.always or not always:
                    for number in rule.ids:
                        index.setdefault(number, rule)
        found = [index[number] for number in ids if number in index]
        return min(found, key=lambda rule: rule.node.span, default=None)

    def cap(self) -> Cap:
        """The strictest answer of all `autonomy` statements, by class."""
        cap: Cap = dict(LEVELS["full"])
        for at in self.caps:
            for risk, answer in at.cap.items():
                if STRICTNESS.index(answer) < STRICTNESS.index(cap[risk]):
                    cap[risk] = answer
        return cap


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """All bodies. `written`: each rule once, profiles' rules too."""

    bound: Bound
    agents: dict[str, View]
    ceilings: tuple[View, ...]
    skills: dict[str, View]
    profiles: dict[str, View]
    _roots: dict[str, View] = field(default_factory=dict[str, View])

    def deciding(self) -> Iterator[View]:
        """Every body that decides: agents, ceilings, skills."""
        yield from self.agents.values()
        yield from self.ceilings
        yield from self.skills.values()

    def bodies(self) -> Iterator[View]:
        """Those that decide, and profiles."""
        yield from self.deciding()
        yield from self.profiles.values()

    def written(self, *effects: ast.Effect) -> Iterator[RuleAt]:
        """Each rule once, where it is written; of the effects named, or of all."""
        return (rule for _, rule in self.written_in(*effects))

    def written_in(self, *effects: ast.Effect) -> Iterator[tuple[View, RuleAt]]:
        """The same, with the body or the profile that writes it."""
        for view in self.bodies():
            for effect in effects or EFFECTS:
                for rule in view.rules[effect]:
                    if rule.placed.via is None:
                        yield view, rule

    def root(self, name: str) -> View:
        """The body at the end of an agent's `narrows` chain: the one that grants."""
        trail: list[str] = []
        at = self.agents[name]
        while at.body.name not in self._roots and at.body.parent is not None and len(trail) < len(self.agents):
            trail.append(at.body.name)
            at = self.agents[at.body.parent]
        found = self._roots.get(at.body.name, at)
        for passed in (*trail, at.body.name):
            self._roots[passed] = found
        return found

    def above(self, name: str) -> tuple[View, ...]:
        """The nearest bodies that an agent narrows, at most `MAX_ABOVE`."""
        out: list[View] = []
        parent = self.agents[name].body.parent
        while parent is not None and len(out) < MAX_ABOVE:
            out.append(self.agents[parent])
            parent = self.agents[parent].body.parent
        return tuple(out)


EFFECTS: tuple[ast.Effect, ...] = ("allow", "ask", "deny", "auto_approve", "mark")


def survey(bound: Bound) -> Survey:
    """Sort the statements of every body."""
    return Survey(
        bound,
        {name: _view(bound, body) for name, body in bound.agents.items() if name not in bound.kept.agents},
        tuple(_view(bound, body) for body in bound.ceilings),
        {name: _view(bound, body) for name, body in bound.skills.items()},
        {name: _view(bound, body) for name, body in bound.profiles.items()},
    )


def _view(bound: Bound, body: BoundBody) -> View:
    rules: dict[ast.Effect, list[RuleAt]] = {effect: [] for effect in EFFECTS}
    view = View(body, rules, [], [], [])
    for placed in body.statements:
        node = placed.node
        match node:
            case ast.Rule():
                rules[node.effect].append(RuleAt(node, placed, bound.ids(node.tools)))
            case ast.Only(tools=tools):
                view.onlys.append(OnlyAt(node, placed, bound.ids(tools) if tools else frozenset()))
            case ast.Limit(tools=tools):
                view.limits.append(LimitAt(node, placed, bound.ids(tools) if tools else None))
            case ast.Autonomy():
                view.caps.append(CapAt(node, placed, _cap(node)))
            case _:
                view.others.append(placed)
    return view


def _cap(node: ast.Autonomy) -> Cap:
    if node.level is not None:
        return LEVELS[node.level]
    return {"read": "allow", "low": "allow", "medium": "allow", "high": "allow", **dict(node.table)}


def head(rule: ast.Rule) -> Span:
    """The words of a rule up to its last tool: what a reader recognises it by."""
    return Span(rule.span.start, rule.tools.span.end)


def text_of(source: Source, span: Span) -> str:
    """The user's text at a place, on one line."""
    return " ".join(source.at(span).split())


def tool_names(bound: Bound, ids: frozenset[int], most: int = 3) -> str:
    """`a`, `b`, `c` and 4 more: tools for a message, in the order of the catalogue."""
    ordered = sorted(ids)
    shown = [f"`{bound.catalogue.tools[number].shown}`" for number in ordered[:most]]
    if len(ordered) > most:
        return f"{', '.join(shown)} and {len(ordered) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "no tool"
