"""Rules that others of the same body cover.

In: `Survey`. Out: ZC3102 (covered), ZC4005 (`with approval` that a plain `allow` undoes). Rules are grouped by effect and
condition; within a group a rule is covered when the others name all its tools.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from policy_lang import ast, codes
from policy_lang.checks.edits import lasts, remove
from policy_lang.checks.literals import condition_key
from policy_lang.checks.survey import EFFECTS, RuleAt, Survey, View, tool_names
from policy_lang.checks.witness import Witnesses
from policy_lang.diagnostics import Diagnostic, Fix

Group = tuple[object, ...]
WORDS: dict[ast.Effect, str] = {
    "allow": "allowed", "ask": "asked about", "deny": "denied", "auto_approve": "approved", "mark": "marked",
}  # fmt: skip


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Every body and profile."""
    keys: dict[int, object] = {}
    witnesses = Witnesses(survey)
    for view in survey.bodies():
        for effect in EFFECTS:
            rules = [rule for rule in view.rules[effect] if rule.ids]
            if len(rules) > 1:
                groups = _groups(survey, rules, keys)
                for finding, rule in _effect(survey, rules, groups):
                    yield replace(finding, witness=witnesses.of_rule(view, rule) if not rule.always else None)
                if effect == "allow" and any(rule.node.approval for rule in rules):
                    yield from _approvals(survey, view, groups, witnesses)


def _groups(survey: Survey, rules: list[RuleAt], keys: dict[int, object]) -> dict[Group, list[RuleAt]]:
    """By condition; one that shares no tool with another rule is a group of its own, whatever its condition."""
    shared = (
        Counter(number for rule in rules for number in rule.ids)
        if any(not rule.always for rule in rules)
        else Counter[int]()
    )
    groups: dict[Group, list[RuleAt]] = {}
    for rule in rules:
        if not rule.always and id(rule.node) not in keys and all(shared[number] == 1 for number in rule.ids):
            groups[id(rule.node), rule.node.approval] = [rule]
        else:
            groups.setdefault(_group(survey, rule, keys), []).append(rule)
    return groups


def _effect(
    survey: Survey, rules: list[RuleAt], groups: dict[Group, list[RuleAt]]
) -> Iterator[tuple[Diagnostic, RuleAt]]:
    for group in groups.values():
        if len(group) > 1:
            yield from _within(survey, group)
    by_label: dict[str | None, list[RuleAt]] = {}
    for rule in rules:
        by_label.setdefault(rule.node.label.text if rule.node.label else None, []).append(rule)
    for same in by_label.values():
        always = _by_tool(rule for rule in same if rule.always and not rule.node.approval)
        if always:
            yield from _under_unconditional(survey, same, always)


def _by_tool(rules: Iterable[RuleAt]) -> dict[int, RuleAt]:
    """The first rule that names each tool."""
    out: dict[int, RuleAt] = {}
    for rule in rules:
        for number in rule.ids:
            out.setdefault(number, rule)
    return out


def _group(survey: Survey, rule: RuleAt, keys: dict[int, object]) -> Group:
    node = rule.node
    key: object = None
    if not rule.always:
        if id(node) not in keys:
            keys[id(node)] = condition_key(survey.bound, rule.placed.file, node)
        key = keys[id(node)]
    return (key, node.approval, node.label.text if node.label else None, node.unclear_ask)


def _within(survey: Survey, group: list[RuleAt]) -> Iterator[tuple[Diagnostic, RuleAt]]:
    """The smaller and later rules first: what is left covers what is reported."""
    if len(frozenset[int]().union(*(rule.ids for rule in group))) == sum(len(rule.ids) for rule in group):
        return
    count = Counter(number for rule in group for number in rule.ids)
    order = sorted(range(len(group)), key=lambda at: (len(group[at].ids), -at))
    dropped: set[int] = set()
    for at in order:
        rule = group[at]
        if rule.placed.via is None and all(count[number] > 1 for number in rule.ids):
            dropped.add(at)
            count.subtract(rule.ids)
    kept = _by_tool(rule for at, rule in enumerate(group) if at not in dropped)
    for at in sorted(dropped):
        yield _covered(survey, group[at], kept[min(group[at].ids)]), group[at]


def _covered(survey: Survey, rule: RuleAt, first: RuleAt) -> Diagnostic:
    word = WORDS[rule.node.effect]
    verb = "is" if len(rule.ids) == 1 else "are"
    on = "" if rule.always else " on the same condition"
    message = f"this `{rule.node.effect}` adds nothing: {tool_names(survey.bound, rule.ids)} {verb} {word} already{on}"
    reasons = {None if r.node.because is None else r.node.because.value for r in (rule, first)}
    lasting = lasts(rule.node.tools, rule.source, first.node.tools, first.source)
    same = len(reasons) == 1 or rule.node.because is None
    fix = Fix((remove(rule.source, rule.node.span),), safe=lasting and same)
    return Diagnostic(
        codes.REDUNDANT_RULE, message, rule.source, rule.node.tools.span, (first.label(f"{word} here"),), "drop it", fix
    )


def _under_unconditional(
    survey: Survey, rules: list[RuleAt], always: dict[int, RuleAt]
) -> Iterator[tuple[Diagnostic, RuleAt]]:
    """Conditional rules on tools that unconditional ones of the same effect name."""
    everywhere = frozenset(always)
    for rule in rules:
        if rule.always or rule.node.approval or rule.placed.via is not None or not rule.ids <= everywhere:
            continue
        first = always[min(rule.ids)]
        word = WORDS[rule.node.effect]
        verb = "is" if len(rule.ids) == 1 else "are"
        message = f"this condition decides nothing: {tool_names(survey.bound, rule.ids)} {verb} {word} on every call"
        help_text = f"drop this rule, or take its tools out of the other `{rule.node.effect}`"
        span = (rule.node.when or rule.node.unless or rule.node.tools).span
        fix = Fix((remove(rule.source, rule.node.span),), safe=False)
        label = first.label(f"{word} here without a condition")
        yield Diagnostic(codes.REDUNDANT_RULE, message, rule.source, span, (label,), help_text, fix), rule


def _approvals(
    survey: Survey, view: View, groups: dict[Group, list[RuleAt]], witnesses: Witnesses
) -> Iterator[Diagnostic]:
    """`with approval` on tools that a plain `allow` grants, on the same condition or on none."""
    plain: dict[object, dict[int, RuleAt]] = {}
    for key, group in groups.items():
        if not key[1]:
            plain.setdefault(key[0], {}).update(_by_tool(group))
    for key, group in groups.items():
        if not key[1]:
            continue
        covering = {**plain.get(key[0], {}), **plain.get(None, {})}
        for rule in group:
            undone = rule.ids & covering.keys()
            if undone and rule.placed.via is None:
                first = covering[min(undone)]
                verb = "is" if len(undone) == 1 else "are"
                message = f"nobody is asked: {tool_names(survey.bound, undone)} {verb} allowed without approval as well"
                help_text = "take the tools out of the plain `allow`, or write `ask` instead of `allow … with approval`"
                label = first.label("allowed here")
                shown = witnesses.any_of(view.body.name, undone, "allow") if view.body.kind == "agent" else None
                yield Diagnostic(
                    codes.COVERED_APPROVAL, message, rule.source, rule.node.tools.span, (label,), help_text, None, shown
                )
