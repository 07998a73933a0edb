"""References to tools of servers that the agent does not connect (SPEC 12).

In: `Survey`. Out: ZC3003 for each reference in an agent's own `allow`, `ask`, `auto_approve` whose every tool is outside
its bundles.
"""

from collections.abc import Iterator

from policy_lang import ast, codes
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import RuleAt, Survey, View, text_of, tool_names
from policy_lang.diagnostics import Diagnostic, Edit, Fix, Label
from policy_lang.nearest import or_list
from policy_lang.source import Span

EFFECTS: tuple[ast.Effect, ...] = ("allow", "ask", "auto_approve")


def check(reach: Reach) -> Iterator[Diagnostic]:
    """Every agent's own rules."""
    survey = reach.survey
    for name, view in survey.agents.items():
        inside = reach.host_tools | reach.connected_by_all(name)
        for effect in EFFECTS:
            for rule in view.own(effect):
                if not rule.ids <= inside:
                    yield from _outside(survey, view, rule, inside)


def _outside(survey: Survey, view: View, rule: RuleAt, inside: frozenset[int]) -> Iterator[Diagnostic]:
    for item in rule.node.tools.items:
        ids = _item(survey, rule, item)
        if ids and not ids & inside:
            yield _finding(survey, view, rule, item, ids)


def _item(survey: Survey, rule: RuleAt, item: ast.ToolItem) -> frozenset[int]:
    match item:
        case ast.ToolRef():
            return survey.bound.catalogue.match(item)
        case ast.GroupRef(name=name):
            full = survey.bound.full(rule.placed.file, "group", name)
            return survey.bound.ids(survey.bound.groups[full][0].tools) if full in survey.bound.groups else frozenset()
        case ast.AnyTool():
            return survey.bound.catalogue.everything()


def _finding(survey: Survey, view: View, rule: RuleAt, item: ast.ToolItem, ids: frozenset[int]) -> Diagnostic:
    bound = survey.bound
    servers = sorted({str(bound.catalogue.tools[number].key[0]) for number in ids})
    said = next((placed for placed in view.others if isinstance(placed.node, ast.Connect)), None)
    written = text_of(rule.source, item.span)
    message = f"`{view.body.name}` does not connect {or_list(servers)}, so `{written}` can never be called"
    label: tuple[Label, ...] = ()
    if said is not None:
        message = f"`{written}` is outside the bundles that `{view.body.name}` connects"
        label = (Label(said.file.source, said.node.span, f"without {tool_names(bound, ids)}"),)
    fitting = [full for full, bundle in bound.bundles.items() if bundle.tools & ids]
    if not fitting:
        made = " ".join(f"server {name}" for name in servers[:1])
        help_text = f"declare `bundle {servers[0]} {{ {made} }}`, and write `connect {servers[0]}` in the agent"
        return Diagnostic(codes.OUTSIDE_BUNDLES, message, rule.source, item.span, label, help_text)
    fix = None
    if said is None and rule.placed.via is None:
        start = view.body.node.body.span.start + 1
        fix = Fix((Edit(view.body.file.source, Span(start, start), f" connect {fitting[0]};"),), safe=False)
    help_text = f"write `connect {fitting[0]}` in the agent"
    return Diagnostic(codes.OUTSIDE_BUNDLES, message, rule.source, item.span, label, help_text, fix)
