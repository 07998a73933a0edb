"""What an agent can call at all, and what it can call without asking, as far as unconditional statements tell.

In: `Survey`. Out: sets of tools per agent. Conditions are taken for possible: a tool is in reach unless some statement
withholds it on every call.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from policy_lang.checks.survey import RuleAt, Survey, View

Ids = frozenset[int]


@dataclass(slots=True)
class Reach:
    """Sets per body and per agent, computed once."""

    survey: Survey
    _open: dict[int, Ids] = field(default_factory=dict[int, Ids])
    _callable: dict[str, Ids] = field(default_factory=dict[str, Ids])
    _asked: dict[str, Ids] = field(default_factory=dict[str, Ids])
    _connected: dict[str, Ids] = field(default_factory=dict[str, Ids])
    _by_class: dict[str, Ids] = field(default_factory=dict[str, Ids])

    @property
    def everything(self) -> Ids:
        """Every tool of the catalogue."""
        return self.survey.bound.catalogue.everything()

    def of_class(self, *classes: str) -> Ids:
        """The tools of some risk classes."""
        if not self._by_class:
            for number, risk in enumerate(self.survey.bound.classes):
                self._by_class[risk] = self._by_class.get(risk, frozenset()) | {number}
        return frozenset[int]().union(*(self._by_class.get(name, frozenset()) for name in classes))

    def capped(self, view: View, answer: str) -> Ids:
        """The tools for which a body's `autonomy` gives an answer."""
        if not view.caps:
            return self.everything if answer == "allow" else frozenset()
        cap = view.cap()
        return self.of_class(*(risk for risk, given in cap.items() if given == answer))

    def inside_onlys(self, view: View) -> Ids:
        """What every `only` of a body leaves."""
        left = self.everything
        for only in view.onlys:
            left &= only.ids
        return left

    def connected(self, view: View) -> Ids:
        """The host's tools, and those of servers that the body lets be connected."""
        ids = self.survey.bound.connected(view.body)
        return self.everything if ids is None else ids | self.host_tools

    @property
    def host_tools(self) -> Ids:
        """The host's own tools."""
        return frozenset(self.survey.bound.catalogue.ids.get(None, {}).values())

    def left_by(self, view: View) -> Ids:
        """What a body does not withhold on every call."""
        known = self._open.get(id(view))
        if known is None:
            withheld = view.always("deny") | self.capped(view, "deny")
            known = (self.inside_onlys(view) & self.connected(view)) - withheld
            self._open[id(view)] = known
        return known

    def granted(self, name: str) -> Ids:
        """What the root of an agent grants, on conditions or without."""
        return _union(rule.ids for rule in self.survey.root(name).rules["allow"])

    def granted_by_any(self) -> Ids:
        """What some agent's root grants."""
        roots = (view for view in self.survey.agents.values() if view.body.kind == "agent")
        return self.survey.bound.kept.granted | _union(rule.ids for view in roots for rule in view.rules["allow"])

    def callable(self, name: str) -> Ids:
        """What an agent can call at all: granted, and withheld by no body of its execution on every call."""
        return self._down(name, self._callable, self._callable_from)

    def asked(self, name: str) -> Ids:
        """What is asked about on every call, unless a rule waives it."""
        return self._down(name, self._asked, self._asked_from)

    def connected_by_all(self, name: str) -> Ids:
        """The MCP tools that every body of an agent's chain lets be connected."""
        return self._down(name, self._connected, self._connected_from)

    def _down(self, name: str, memo: dict[str, Ids], step: Callable[[View, Ids | None], Ids]) -> Ids:
        """A set that each body of a `narrows` chain makes out of its parent's, from the root down; each body once."""
        trail: list[View] = []
        at: str | None = name
        while at is not None and at not in memo and len(trail) <= len(self.survey.agents):
            trail.append(self.survey.agents[at])
            at = trail[-1].body.parent
        above = memo[at] if at is not None and at in memo else None
        for view in reversed(trail):
            above = memo[view.body.name] = step(view, above)
        return memo[name]

    def _callable_from(self, view: View, above: Ids | None) -> Ids:
        if above is None:
            above = self.granted(view.body.name)
            for ceiling in self.survey.ceilings:
                above &= self.left_by(ceiling)
        return above & self.left_by(view)

    def _asked_from(self, view: View, above: Ids | None) -> Ids:
        if above is None:
            above = _union(self._asks(ceiling) for ceiling in self.survey.ceilings)
        return above | self._asks(view)

    def _asks(self, view: View) -> Ids:
        waived = _union(rule.ids for rule in view.rules["auto_approve"])
        return view.always("ask") | (self.capped(view, "ask") - waived)

    def _connected_from(self, view: View, above: Ids | None) -> Ids:
        said = self.survey.bound.connected(view.body)
        before = self.everything if above is None else above
        return before if said is None else before & said

    def plainly(self, name: str, rule: RuleAt) -> Ids:
        """The tools of an unconditional `allow` that run without anybody being asked, whatever the arguments."""
        if rule.node.approval or not rule.always:
            return frozenset()
        return rule.ids & self.callable(name) - self.asked(name)


def _union(sets: Iterable[Ids]) -> Ids:
    return frozenset[int]().union(*sets)
