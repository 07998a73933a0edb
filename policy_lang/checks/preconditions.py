"""`require`s that can never be met: none of the earlier tools can run before one of them has.

In: `Reach`. Out: ZC3114. What a session remembers may be the work of any agent, so all of them are looked at together: a
tool may run where some agent may call it and meets what holds it back. Agents whose file may not be looked at again
(`incremental`) count with all that they grant; where there are no agents, or lower layers may add some, every tool may be
granted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, NamedTuple

from policy_lang import ast, codes
from policy_lang.bound import Placed
from policy_lang.checks.reach import Ids, Reach
from policy_lang.checks.survey import Survey, View, tool_names
from policy_lang.checks.witness import Witnesses
from policy_lang.diagnostics import Diagnostic, Label
from policy_lang.gather import stands_alone

MAX_REQUIRES: Final = 100
"""`require`s of one policy that are judged; where there are more, none is."""
MAX_SHOWN: Final = 2
"""Other `require`s that a finding points at."""


class _Require(NamedTuple):
    node: ast.Require
    placed: Placed
    earlier: Ids
    later: Ids


@dataclass(slots=True)
class _Callers:
    """Agents that the same `require`s hold back. `tools`: what some of them may call; `names`: of those looked at one by one."""

    requires: tuple[_Require, ...]
    tools: Ids = frozenset()
    names: list[str] = field(default_factory=list[str])


def check(reach: Reach) -> Iterator[Diagnostic]:
    """Of every ceiling, skill and agent, with their profiles; one finding for each cause."""
    survey = reach.survey
    told = _once(one for view in survey.deciding() if not _stands_alone(view) for one in _requires(survey, view))
    if not 0 < len(told) <= MAX_REQUIRES:
        return
    callers = _callers(reach)
    callable_ = frozenset[int]().union(*(group.tools for group in callers))
    ran = _may_run(callers)
    known = _once((*told, *(one for group in callers for one in group.requires)))
    never = [
        one._replace(earlier=one.earlier & callable_)
        for one in known
        if one.later & callable_ and not one.earlier & ran
    ]
    witnesses, told_nodes = Witnesses(survey), {id(one.node) for one in told}
    for one in never:
        if id(one.node) in told_nodes and (not one.earlier or _waits_for_itself(one, never)):
            yield replace(_finding(survey, one, never), witness=_shown(reach, witnesses, callers, one))


def _once(requires: Iterable[_Require]) -> list[_Require]:
    """A profile's stand in every body that uses it."""
    return list({id(one.node): one for one in requires}.values())


def _requires(survey: Survey, view: View) -> Iterator[_Require]:
    """Those of a body whose names are known."""
    for placed in view.others:
        node = placed.node
        if isinstance(node, ast.Require) and survey.bound.ids(node.earlier):
            yield _Require(node, placed, survey.bound.ids(node.earlier), survey.bound.ids(node.later))


def _stands_alone(view: View) -> bool:
    return stands_alone(view.body.file.file)


def _callers(reach: Reach) -> list[_Callers]:
    survey = reach.survey
    bound = survey.bound
    everywhere = tuple(one for view in survey.ceilings for one in _requires(survey, view))
    left = reach.everything
    for ceiling in survey.ceilings:
        left &= reach.left_by(ceiling)
    if not bound.agents or any(
        isinstance(node, ast.AgentsAllowed) for file in bound.gathered.files for node in file.file.declarations
    ):
        return [_Callers(everywhere, left)]
    groups: dict[tuple[int, ...], _Callers] = {(): _Callers(everywhere, bound.kept.granted & left)}
    for name, view in survey.agents.items():
        if _stands_alone(view):
            if view.body.grants:
                groups[()].tools |= reach.granted(name) & left
            continue
        own = tuple(one for body in bound.chain(name) for one in _requires(survey, survey.agents[body.name]))
        group = groups.setdefault(tuple(id(one.node) for one in own), _Callers((*everywhere, *own)))
        group.tools |= reach.callable(name)
        group.names.append(name)
    return list(groups.values())


def _may_run(callers: list[_Callers]) -> Ids:
    """Every tool that some order of calls reaches: each round meets a `require`, or is the last."""
    ran: Ids = frozenset()
    while True:
        before = ran
        for group in callers:
            held = (one.later for one in group.requires if not one.earlier & ran)
            ran |= group.tools - frozenset[int]().union(*held)
        if ran == before:
            return ran


def _waits_for_itself(one: _Require, never: list[_Require]) -> bool:
    """Whether what it waits for waits, by way of others or not, for what it holds back: then it is a cause."""
    needed, before = one.earlier, frozenset[int]()
    while needed != before:
        before = needed
        needed |= frozenset[int]().union(*(other.earlier for other in never if other.later & before))
    return bool(one.later & needed)


def _finding(survey: Survey, one: _Require, never: list[_Require]) -> Diagnostic:
    names = tool_names(survey.bound, one.earlier or survey.bound.ids(one.node.earlier))
    message, help_text = f"no agent may call {names}", "drop it, or `allow` what it waits for"
    labels: tuple[Label, ...] = ()
    if one.earlier:
        message = f"{names} {'waits' if len(one.earlier) == 1 else 'wait'} as well"
        help_text = "let one of them go first: leave it out of what waits, with `except`"
        others = (other for other in never if other.later & one.earlier and other.node is not one.node)
        labels = tuple(
            Label(other.placed.file.source, other.node.span, "held back here") for other in islice(others, MAX_SHOWN)
        )
    source, message = one.placed.file.source, f"this `require` can never be met: {message}"
    return Diagnostic(codes.NEVER_MET, message, source, one.node.span, labels, help_text)


def _shown(reach: Reach, witnesses: Witnesses, callers: list[_Callers], one: _Require) -> str | None:
    """A call that it denies."""
    for group in callers:
        if any(other.node is one.node for other in group.requires):
            for name in group.names:
                for tool in sorted(one.later & reach.callable(name))[:1]:
                    return witnesses.of(name, tool, "deny", reason="precondition")
    return None
