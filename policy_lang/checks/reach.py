"""What an agent can call at all, and what it can call without asking, as far as unconditional statements tell.

In: `Survey`. Out: sets of tools per agent. Conditions are taken for possible: a tool is in reach unless some statement
withholds it on every call.
"""

from dataclasses import dataclass, field

from policy_lang.checks.survey import RuleAt, Survey, View

Ids = frozenset[int]


@dataclass(slots=True)
class Reach:
    """Sets per body and per agent, computed once."""

    survey: Survey
    _open: dict[int, Ids] = field(default_factory=dict[int, Ids])
    _callable: dict[str, Ids] = field(default_factory=dict[str, Ids])
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
        root = self.survey.chain(name)[-1]
        return frozenset[int]().union(*(rule.ids for rule in root.rules["allow"]))

    def granted_by_any(self) -> Ids:
        """What some agent's root grants."""
        roots = (view for view in self.survey.agents.values() if view.body.kind == "agent")
        return frozenset[int]().union(*(rule.ids for view in roots for rule in view.rules["allow"]))

    def callable(self, name: str) -> Ids:
        """What an agent can call at all: granted, and withheld by no body of its execution on every call."""
        known = self._callable.get(name)
        if known is None:
            known = self.granted(name)
            for view in (*self.survey.chain(name), *self.survey.ceilings):
                known &= self.left_by(view)
            self._callable[name] = known
        return known

    def asked(self, name: str) -> Ids:
        """What is asked about on every call, unless a rule waives it."""
        out: Ids = frozenset()
        for view in (*self.survey.chain(name), *self.survey.ceilings):
            waived = frozenset[int]().union(*(rule.ids for rule in view.rules["auto_approve"]))
            out |= view.always("ask") | (self.capped(view, "ask") - waived)
        return out

    def plainly(self, name: str, rule: RuleAt) -> Ids:
        """The tools of an unconditional `allow` that run without anybody being asked, whatever the arguments."""
        if rule.node.approval or not rule.always:
            return frozenset()
        return rule.ids & self.callable(name) - self.asked(name)
