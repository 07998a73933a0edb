"""What delegations give and take (SPEC 4, 5).

In: `Survey`. Out: ZC3006 (to itself), ZC3112 (a bounded delegate is left with nothing), ZC4006 (what `independent` adds).
"""

from collections.abc import Iterator
from dataclasses import replace

from policy_lang import ast, codes
from policy_lang.bound import Placed
from policy_lang.checks.edits import remove
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import Survey, View, tool_names
from policy_lang.checks.witness import Witnesses
from policy_lang.diagnostics import Diagnostic, Fix, Label


def check(reach: Reach) -> Iterator[Diagnostic]:
    """Every `delegate to` that an agent writes itself; what a profile says to several agents may fit some of them."""
    survey, witnesses = reach.survey, Witnesses(reach.survey)
    for name, view in survey.agents.items():
        for placed in view.others:
            node = placed.node
            if isinstance(node, ast.Delegate) and placed.via is None:
                for child in node.agents:
                    full = survey.bound.full(placed.file, "agent", child.text)
                    if full == name:
                        yield _itself(placed, node, child)
                    elif full is not None:
                        for finding in _child(reach, view, placed, node, (child, full)):
                            shown = None
                            if finding.code == codes.INDEPENDENT_ADDS:
                                added = reach.callable(full) - reach.callable(name)
                                shown = witnesses.any_of(full, added, "allow") or witnesses.any_of(full, added, "ask")
                            yield replace(finding, witness=shown)


def _itself(placed: Placed, node: ast.Delegate, child: ast.Name) -> Diagnostic:
    fix = Fix((remove(placed.file.source, node.span),), safe=False) if len(node.agents) == 1 else None
    message = f"`{child.text}` delegates to itself"
    help_text = "drop it; for a weaker copy declare `agent NEW narrows " + child.text + " { … }` and delegate to that"
    return Diagnostic(codes.SELF_DELEGATION, message, placed.file.source, child.span, (), help_text, fix)


def _child(
    reach: Reach, view: View, placed: Placed, node: ast.Delegate, child: tuple[ast.Name, str]
) -> Iterator[Diagnostic]:
    written, full = child
    bound, source = reach.survey.bound, placed.file.source
    own, wanted = reach.callable(view.body.name), reach.callable(full)
    if node.independent and wanted - own:
        message = f"independent, `{full}` may call {tool_names(bound, wanted - own)}, and `{view.body.name}` may not"
        help_text = "keep it if `because` covers that; without `independent` it is left with what both may"
        yield Diagnostic(
            codes.INDEPENDENT_ADDS, message, source, written.span, (_declared(reach.survey, full),), help_text
        )
    elif not node.independent and wanted and not wanted & own:
        message = f"under `{view.body.name}` nothing is left of `{full}`: {tool_names(bound, wanted)} is taken from it"
        if len(wanted) > 1:
            message = message.replace(" is taken from it", " are taken from it")
        help_text = f'allow in `{view.body.name}` what `{full}` needs, or write `independent because "…"`'
        yield Diagnostic(
            codes.CHILD_WITH_NOTHING, message, source, written.span, (_declared(reach.survey, full),), help_text
        )


def _declared(survey: Survey, name: str) -> Label:
    view = survey.agents[name]
    node = view.body.node
    span = node.name.span if isinstance(node, ast.Agent) else node.span
    return Label(view.body.file.source, span, "the delegate")
