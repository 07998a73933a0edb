"""Agents that can call nothing, and granting agents without an `autonomy`.

In: `Survey`. Out: ZC3111, ZC4004.
"""

from collections.abc import Iterator
from dataclasses import replace

from policy_lang import ast, codes
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import View, tool_names
from policy_lang.checks.witness import Witnesses
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.source import Span


def check(reach: Reach) -> Iterator[Diagnostic]:
    """Every agent."""
    survey = reach.survey
    witnesses = Witnesses(survey)
    capped = any(view.caps for view in survey.ceilings)
    for name, view in survey.agents.items():
        node = view.body.node
        if not isinstance(node, ast.Agent):
            continue
        if not reach.callable(name):
            shown = witnesses.any_of(name, reach.granted(name), "deny")
            yield from (replace(finding, witness=shown) for finding in _idle(reach, view, node))
        elif view.body.grants and not view.caps and not capped:
            yield _without_autonomy(view, node)


def _idle(reach: Reach, view: View, node: ast.Agent) -> Iterator[Diagnostic]:
    name, bound = view.body.name, reach.survey.bound
    if any(isinstance(placed.node, ast.Delegate) and placed.node.independent for placed in view.others):
        return
    granted = reach.granted(name)
    if not granted and not view.body.grants:
        return  # its root is told
    message, help_text = f"`{name}` can call nothing: it allows no tool", "write `allow` with the tools that it needs"
    if granted and view.body.grants:
        message = f"`{name}` can call nothing: all that it allows is withheld, {tool_names(bound, granted)}"
        help_text = "drop the `deny`, `only` or `autonomy` that withholds it, or the agent"
    elif granted:
        parent = view.body.parent
        if parent is None or not reach.callable(parent):
            return
        message = f"`{name}` can call nothing: it withholds all that `{parent}` may, {tool_names(bound, reach.callable(parent))}"
        help_text = "leave it something with `only`, or drop the agent"
    yield Diagnostic(codes.CALLS_NOTHING, message, view.body.file.source, node.name.span, (), help_text)


def _without_autonomy(view: View, node: ast.Agent) -> Diagnostic:
    start = node.body.span.start + 1
    fix = Fix((Edit(view.body.file.source, Span(start, start), " autonomy supervised;"),), safe=False)
    message = f"`{view.body.name}` has no `autonomy`: what it allows runs without a question, whatever its class"
    help_text = "write `autonomy supervised`, or `autonomy full` if that is meant"
    return Diagnostic(codes.NO_AUTONOMY, message, view.body.file.source, node.name.span, (), help_text, fix)
