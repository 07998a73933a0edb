"""Arguments that a call may leave out, where that decides, and lists that a call may send empty.

In: `Survey`. Out: ZC3113 (a test on an optional argument without `has`), ZC4010 (`every`, standing for granting, on a list
that may be empty).
"""

from collections.abc import Iterator
from dataclasses import replace

from policy_lang import ast, codes
from policy_lang.checks.literals import parts_of
from policy_lang.checks.operands import Operands
from policy_lang.checks.survey import LimitAt, RuleAt, Survey, text_of, tool_names
from policy_lang.checks.witness import Witnesses, sample
from policy_lang.conditions import Leaf, leaves, stands_for_granting, walk
from policy_lang.diagnostics import Diagnostic

DECIDES: dict[ast.Effect, str] = {
    "allow": "this `allow` grants nothing",
    "auto_approve": "this `auto_approve` waives nothing",
    "ask": "this `ask` asks",
    "deny": "this `deny` denies",
    "mark": "this `mark` marks",
}

_Empty = tuple[int, str]
"""A tool, and an argument of it that is a list."""


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Every rule with a condition, and every limit, once."""
    operands, witnesses = Operands(survey.bound), Witnesses(survey)
    for view, rule in survey.written_in():
        if rule.always or not rule.ids:
            continue
        agent = view.body.name if view.body.kind in ("agent", "narrows") else None
        for finding in _optional(survey, operands, rule):
            yield replace(finding, witness=_without(witnesses, agent, rule))
        for finding, place in _empty(operands, rule):
            yield replace(finding, witness=_with_empty(witnesses, agent, rule, place))

    for view in survey.bodies():
        for limit in view.limits:
            if limit.ids and limit.placed.via is None:
                yield from _limited(operands, limit, limit.ids)


def _limited(operands: Operands, limit: LimitAt, ids: frozenset[int]) -> Iterator[Diagnostic]:
    """A limit that counts by an optional argument denies the calls without it."""
    for operand in (limit.node.argument, limit.node.each):
        optional = operands.range(ids, operand).optional if isinstance(operand, ast.Operand) else frozenset[int]()
        if isinstance(operand, ast.Operand) and optional:
            source = limit.placed.file.source
            written = text_of(source, operand.span)
            verb = "need" if len(optional) > 1 else "needs"
            message = (
                f"{tool_names(operands.bound, optional)} {verb} no `{written}`, and without it this `limit` denies"
            )
            help_text = "count by an argument that is always sent; a default in the `tool` statement settles it too"
            yield Diagnostic(codes.ABSENT_ARGUMENT, message, source, operand.span, (), help_text)


def _without(witnesses: Witnesses, agent: str | None, rule: RuleAt) -> str | None:
    """A call without optional arguments that the rule denies, or asks about."""
    reason = {"deny": "denied", "ask": "asked"}.get(rule.node.effect)
    if agent is None or reason is None:
        return None
    return witnesses.of(agent, min(rule.ids), rule.node.effect, reason=reason)


def _with_empty(witnesses: Witnesses, agent: str | None, rule: RuleAt, place: _Empty) -> str | None:
    """A call with an empty list that the rule grants."""
    tool, name = place
    sent = sample(witnesses.survey.bound.catalogue.tools[tool].schema)
    if agent is None or rule.node.effect != "allow" or sent is None:
        return None
    return witnesses.of(agent, tool, "allow", {**sent, name: []})


def _optional(survey: Survey, operands: Operands, rule: RuleAt) -> Iterator[Diagnostic]:
    """Once per argument: where it is missing, the test is UNKNOWN."""
    others = set(_alternatives(rule))
    guarded = {leaf.operand.path for leaf, _ in leaves(rule.node) if isinstance(leaf, ast.Has)}
    for leaf, _ in leaves(rule.node):
        operand = _tested(leaf)
        if operand is None or any(operand.path[: len(path)] == path for path in guarded):
            continue
        optional = operands.range(rule.ids, operand).optional
        if not optional or id(leaf) in others:
            continue
        guarded.add(operand.path)
        written = text_of(rule.source, operand.span)
        verb = "need" if len(optional) > 1 else "needs"
        message = (
            f"{tool_names(survey.bound, optional)} {verb} no `{written}`, and without it {DECIDES[rule.node.effect]}"
        )
        help_text = f"if that is meant, say so with `has {written}`; a default in the `tool` statement settles it too"
        yield Diagnostic(codes.ABSENT_ARGUMENT, message, rule.source, operand.span, (), help_text)


def _tested(leaf: Leaf) -> ast.Operand | None:
    match leaf:
        case ast.Test(left=operand) | ast.Bare(operand=operand):
            return operand if operand.root == "args" else None
        case _:
            return None


def _alternatives(rule: RuleAt) -> Iterator[int]:
    """The ids of tests below an `or` in a grant: where one of them is UNKNOWN, another may still grant."""
    if stands_for_granting(rule.node.effect):
        for part, _ in parts_of(rule.node):
            yield from _below_or(part)


def _below_or(node: ast.Condition) -> Iterator[int]:
    match node:
        case ast.Or():
            yield from (id(leaf) for leaf, _ in walk(node, True))
        case ast.And(items=items):
            for item in items:
                yield from _below_or(item)
        case ast.Not(inner=inner):
            yield from _below_or(inner)
        case _:
            return


def _empty(operands: Operands, rule: RuleAt) -> Iterator[tuple[Diagnostic, _Empty]]:
    """Each finding, with a tool and the list of it that may be empty."""
    tests = [
        (leaf, grants) for leaf, grants in leaves(rule.node) if isinstance(leaf, ast.Test) and leaf.each is not None
    ]
    also_some = {(leaf.left.root, leaf.left.path) for leaf, _ in tests if leaf.each == "some"}
    for leaf, grants in tests:
        if not grants or leaf.each != "every" or (leaf.left.root, leaf.left.path) in also_some:
            continue
        found = (
            _empty_argument(operands, rule, leaf) if leaf.left.root == "args" else _empty_lists(operands, rule, leaf)
        )
        if found is None:
            continue
        written = text_of(rule.source, leaf.left.span)
        message = f"`every {written} …` holds for an empty list as well"
        if leaf.left.root != "args":
            tool = operands.bound.catalogue.tools[found[0]].shown
            message = f"`every {written} …` holds for an empty `{found[1]}` of `{tool}` as well"
        rest = text_of(rule.source, leaf.span).split(maxsplit=1)[-1]
        help_text = f"if an empty list must not pass, add `and some {rest}`"
        yield Diagnostic(codes.EMPTY_EVERY, message, rule.source, leaf.span, (), help_text), found


def _empty_argument(operands: Operands, rule: RuleAt, leaf: ast.Test) -> _Empty | None:
    if not operands.range(rule.ids, leaf.left).kinds & {"list", "any"}:
        return None
    return min(rule.ids), leaf.left.path[0]


def _empty_lists(operands: Operands, rule: RuleAt, leaf: ast.Test) -> _Empty | None:
    """The first tool all of whose paths (or urls) stand in lists."""
    kind = "path" if leaf.left.root == "paths" else "url"
    for tool in sorted(rule.ids):
        schema = operands.bound.catalogue.tools[tool].schema
        fields = schema.get("fields", {})
        lists = [
            name
            for name, inner in fields.items()
            if inner["kind"] == "list" and inner.get("item", {}).get("kind") == kind
        ]
        if lists and not any(
            fields[name]["kind"] in (kind, "shell", "command") for name in schema.get("required", []) if name in fields
        ):
            return tool, lists[0]
    return None
