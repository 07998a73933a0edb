"""Bundles and what agents allow, held against each other (SPEC 12).

In: `Survey`. Out: ZC3003 for each reference in an agent's own `allow`, `ask`, `auto_approve` whose every tool is outside
its bundles; ZC3115 for each bundle of which the agent that connects it allows nothing.
"""

from collections.abc import Iterator

from policy_lang import ast, codes
from policy_lang.bound import Placed
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import RuleAt, Survey, View, text_of, tool_names
from policy_lang.diagnostics import Diagnostic, Edit, Fix, Label
from policy_lang.nearest import or_list
from policy_lang.source import Span
from policy_lang.tools import show

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
        if view.body.kind == "agent":
            yield from _for_nothing(reach, view)


def _for_nothing(reach: Reach, view: View) -> Iterator[Diagnostic]:
    """Where nothing at all is allowed, that is the finding (`agents`)."""
    bound, granted = reach.survey.bound, reach.granted(view.body.name)
    for placed in view.others if granted else ():
        if not isinstance(placed.node, ast.Connect) or placed.via is not None:
            continue
        for name in placed.node.bundles:
            full = bound.full(placed.file, "bundle", name.text)
            tools = bound.bundles[full].tools if full in bound.bundles else frozenset[int]()
            if tools and not tools & granted:
                yield _nothing_of(reach.survey, view, placed, name, tools)


def _nothing_of(survey: Survey, view: View, placed: Placed, name: ast.Name, tools: frozenset[int]) -> Diagnostic:
    bare = next((rule for rule in view.own("allow") if _names_bare(rule)), None)
    message = f"`{view.body.name}` allows no tool of `{name.text}`, so it is connected for nothing"
    label = (bare.label("`*` means tools of the host only"),) if bare is not None else ()
    servers = sorted({str(survey.bound.catalogue.tools[number].key[0]) for number in tools})
    wanted = ", ".join(f"{show((None, server))}/*" for server in servers)
    help_text = f"write `allow {wanted}`, or drop it"
    return Diagnostic(codes.CONNECTED_FOR_NOTHING, message, placed.file.source, name.span, label, help_text)


def _names_bare(rule: RuleAt) -> bool:
    """Whether a pattern without a server stands in the rule."""
    return any(
        isinstance(item, ast.ToolRef) and item.server is None and item.name.is_pattern for item in rule.node.tools.items
    )


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
