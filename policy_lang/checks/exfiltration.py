"""Private data, untrusted content and a way out, open together in one agent.

In: `Survey`. Out: ZC4007, once per agent. Private: what a label of such a name marks, and readers of files. Untrusted: what a
label of such a name marks, and what fetches a url or is said to reach the open world. A way out: a url, a command, an
open-world tool or one named for sending that does not only read. It is closed where somebody is asked, or where a label or the target decides.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policy_lang import ast, codes
from policy_lang.checks.parameters import runs_text, takes
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import RuleAt, View, tool_names
from policy_lang.checks.witness import Witnesses
from policy_lang.conditions import leaves
from policy_lang.diagnostics import Diagnostic, Label

_PRIVATE = re.compile(r"(?i)privat|secret|confidential|sensitiv|personal|internal|\bpii\b")
_SENDS = re.compile(
    r"(?i)(?:^|[_\-./])(?:send|e?mail|post|publish|upload|push|comment|message|notify|webhook|share|tweet)(?:[_\-./]|$)"
)
_UNTRUSTED = re.compile(r"(?i)untrusted|tainted|external|foreign")


@dataclass(frozen=True, slots=True)
class _Sides:
    """What every tool is by its own declaration."""

    readers: frozenset[int]
    fetchers: frozenset[int]
    ways_out: frozenset[int]


def check(reach: Reach) -> Iterator[Diagnostic]:
    """Every granting agent."""
    bound, survey = reach.survey.bound, reach.survey
    tools = tuple(enumerate(bound.catalogue.tools))
    open_world = frozenset(
        n for n, tool in tools if tool.key[0] in bound.catalogue.trusted and tool.hints.get("openWorldHint")
    )
    reads = frozenset(n for n, _ in tools if bound.classes[n] == "read")
    urls = frozenset(n for n, tool in tools if takes(tool, "url"))
    shells = frozenset(n for n, tool in tools if runs_text(tool))
    paths = frozenset(n for n, tool in tools if takes(tool, "path"))
    sends = frozenset(n for n, tool in tools if _SENDS.search(tool.key[1]))
    sides = _Sides(paths & reads, urls | open_world, urls | shells | ((open_world | sends) - reads))
    witnesses = Witnesses(reach.survey)
    for view in survey.agents.values():
        if view.body.kind == "agent":
            yield from _agent(reach, view, sides, witnesses)


def _agent(reach: Reach, view: View, sides: _Sides, witnesses: Witnesses) -> Iterator[Diagnostic]:
    name = view.body.name
    callable_ = reach.callable(name)
    out = (callable_ & sides.ways_out) - reach.asked(name)
    if not out:
        return
    views = (view, *reach.survey.ceilings)
    out -= frozenset[int]().union(*(_watched(each) for each in views))
    private = callable_ & (sides.readers | _marked(views, _PRIVATE))
    untrusted = callable_ & (sides.fetchers | _marked(views, _UNTRUSTED))
    if not out or not private or not untrusted:
        return
    rule = view.first("allow", out)
    if rule is None or rule.placed.via is not None:
        return
    bound = reach.survey.bound
    message = (
        f"`{name}` can read private data ({tool_names(bound, private, 2)}), meet untrusted content "
        f"({tool_names(bound, untrusted, 2)}) and send it out ({tool_names(bound, out, 2)}) without a question"
    )
    labels = tuple(_places(view, rule, (("private data", private), ("untrusted content", untrusted))))
    help_text = "`mark` what it reads and fetches, and write `ask` or `deny … when marked …` on the way out"
    yield Diagnostic(
        codes.EXFILTRATION,
        message,
        rule.source,
        rule.node.tools.span,
        labels,
        help_text,
        None,
        witnesses.any_of(name, out, "allow"),
    )


def _watched(view: View) -> frozenset[int]:
    """Tools whose way out a rule watches: a label, a host or a command decides, or somebody is asked."""
    out: frozenset[int] = frozenset()
    plain: frozenset[int] = frozenset()
    for rule in view.rules["allow"]:
        limited = rule.node.approval or any(_looks_out(leaf) for leaf, _ in leaves(rule.node))
        out, plain = (out | rule.ids, plain) if limited else (out, plain | rule.ids)
    out -= plain
    for rule in view.rules["ask"]:
        out |= rule.ids
    for rule in view.rules["deny"]:
        if any(isinstance(leaf, ast.Marked) for leaf, _ in leaves(rule.node)):
            out |= rule.ids
    return out


def _looks_out(leaf: ast.Condition) -> bool:
    match leaf:
        case ast.Marked():
            return True
        case ast.Test(left=left, op=op):
            return left.root == "urls" or op in ("in_domain", "in_net", "runs only") or left.path[-1:] == ("host",)
        case _:
            return False


def _marked(views: tuple[View, ...], pattern: re.Pattern[str]) -> frozenset[int]:
    """Tools that mark a session with a label of such a name."""
    rules = [rule for view in views for rule in view.rules["mark"]]
    return frozenset[int]().union(
        *(rule.ids for rule in rules if rule.node.label and pattern.search(rule.node.label.text))
    )


def _places(view: View, way_out: RuleAt, sides: tuple[tuple[str, frozenset[int]], ...]) -> Iterator[Label]:
    """The rules that open the other two sides, where they are others."""
    for text, ids in sides:
        rules = [rule for rule in view.rules["allow"] if rule.ids & ids]
        if rules and way_out not in rules:
            yield rules[0].label(text)
