"""Rules that never decide, because their tools are withheld on every call or granted on none.

In: `Survey`. Out: ZC3101 (all its tools are withheld anyway), ZC3105 (nothing grants them), ZC3106 (`auto_approve` with no
prompt to waive). An agent's own rules only: what a profile says to several agents may fit some of them.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from policy_lang import ast, codes
from policy_lang.checks.edits import lasts, remove
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import RuleAt, View, tool_names
from policy_lang.checks.witness import Witnesses
from policy_lang.diagnostics import Diagnostic, Fix, Label

MAX_BLAMED = 2
"""The most places that a finding points at."""

NEEDS_A_GRANT: tuple[ast.Effect, ...] = ("ask", "auto_approve", "mark")
ADVICE: dict[ast.Effect, str] = {
    "ask": "`ask` grants nothing: write `allow … with approval` to grant with a question",
    "auto_approve": "`auto_approve` grants nothing: write `allow` as well, or drop it",
    "mark": "drop it, or `allow` the tools",
}


def check(reach: Reach) -> Iterator[Diagnostic]:
    """Every agent's own rules; in skills what their own `only` and `deny` withhold."""
    survey = reach.survey
    witnesses = Witnesses(survey)
    shared = reach.everything
    for ceiling in survey.ceilings:
        shared &= reach.left_by(ceiling)
    for view in survey.deciding():
        left, granted = reach.left_by(view), reach.everything
        if view.body.kind in ("agent", "narrows"):
            left &= shared
            granted = reach.granted(view.body.name)
            for finding, ids in _ungranted(reach, view, granted):
                yield replace(finding, witness=witnesses.any_of(view.body.name, ids, "deny"))
        for effect in ("allow", *NEEDS_A_GRANT):
            for rule in view.own(effect):
                if rule.ids and not rule.ids & left and rule.ids & granted:
                    shown = (
                        witnesses.any_of(view.body.name, rule.ids, "deny")
                        if view.body.kind in ("agent", "narrows")
                        else None
                    )
                    yield replace(_dead(reach, view, rule), witness=shown)
        yield from _outside_only(reach, view)
        yield from _nothing_to_waive(reach, view, granted & left)


def _ungranted(reach: Reach, view: View, granted: frozenset[int]) -> Iterator[tuple[Diagnostic, frozenset[int]]]:
    bound = reach.survey.bound
    for effect in NEEDS_A_GRANT:
        for rule in view.own(effect):
            if rule.ids and not rule.ids & granted:
                verb = "is" if len(rule.ids) == 1 else "are"
                message = f"{tool_names(bound, rule.ids)} {verb} not allowed in `{view.body.name}`, so this `{effect}` never applies"
                yield (
                    Diagnostic(codes.NOTHING_GRANTED, message, rule.source, rule.node.tools.span, (), ADVICE[effect]),
                    rule.ids,
                )
    for limit in view.limits:
        if limit.ids and not limit.ids & granted and limit.placed.via is None and limit.node.tools is not None:
            message = (
                f"{tool_names(bound, limit.ids)} cannot be called by `{view.body.name}`, so this limit counts nothing"
            )
            span = limit.node.tools.span
            source = limit.placed.file.source
            yield (
                Diagnostic(codes.NOTHING_GRANTED, message, source, span, (), "drop it, or `allow` the tools"),
                limit.ids,
            )


def _dead(reach: Reach, view: View, rule: RuleAt) -> Diagnostic:
    labels = tuple(islice(_blame(reach, view, rule.ids), MAX_BLAMED))
    verb = "is" if len(rule.ids) == 1 else "are"
    message = f"this `{rule.node.effect}` never decides: {tool_names(reach.survey.bound, rule.ids)} {verb} withheld on every call"
    fix = Fix((remove(rule.source, rule.node.span),), safe=False)
    return Diagnostic(
        codes.DEAD_RULE, message, rule.source, rule.node.tools.span, labels, "drop it, or withhold less", fix
    )


def _blame(reach: Reach, view: View, ids: frozenset[int]) -> Iterator[Label]:
    """The statements that withhold some of the tools, each named for what no earlier one withholds."""
    left = set(ids)
    for body in (view, *reach.survey.ceilings):
        while (rule := body.first("deny", frozenset(left), always=True)) is not None:
            left -= rule.ids
            yield rule.label("denied here")
        for only in body.onlys:
            if left - only.ids:
                left &= only.ids
                yield Label(only.placed.file.source, only.node.span, "outside this `only`")
        for cap in body.caps:
            denied = reach.of_class(*(risk for risk, answer in cap.cap.items() if answer == "deny"))
            if left & denied:
                left -= denied
                yield Label(cap.placed.file.source, cap.node.span, "denied by this `autonomy`")


def _outside_only(reach: Reach, view: View) -> Iterator[Diagnostic]:
    """A `deny` of tools that an `only` of the same body forbids already."""
    if not view.onlys:
        return
    left = reach.inside_onlys(view)
    for rule in view.own("deny"):
        if rule.ids and not rule.ids & left:
            only = next(only for only in view.onlys if rule.ids - only.ids)
            message = f"this `deny` adds nothing: {tool_names(reach.survey.bound, rule.ids)} lies outside the `only` of this body"
            label = Label(only.placed.file.source, only.node.span, "forbidden here")
            lasting = lasts(rule.node.tools, rule.source, None, only.placed.file.source)
            fix = Fix((remove(rule.source, rule.node.span),), safe=lasting)
            yield Diagnostic(codes.DEAD_RULE, message, rule.source, rule.node.tools.span, (label,), "drop it", fix)


def _nothing_to_waive(reach: Reach, view: View, reachable: frozenset[int]) -> Iterator[Diagnostic]:
    if not view.rules["auto_approve"]:
        return
    prompts = reach.capped(view, "ask")
    asked = view.always("ask")
    for rule in view.own("auto_approve"):
        if not rule.ids & reachable or rule.ids & prompts - asked:
            continue
        label: tuple[Label, ...] = ()
        if rule.ids & prompts:
            ask = view.first("ask", rule.ids, always=True)
            label = (ask.label("still asked about here"),) if ask is not None else ()
            message = "this `auto_approve` waives nothing: an `ask` asks all the same"
        elif not view.caps:
            message = f"this `auto_approve` waives nothing: `{view.body.name}` has no `autonomy` that asks"
        else:
            label = tuple(
                Label(cap.placed.file.source, cap.node.span, "asks about none of these tools") for cap in view.caps[:1]
            )
            message = "this `auto_approve` waives nothing: `autonomy` asks about none of these tools"
        fix = Fix((remove(rule.source, rule.node.span),), safe=True)
        help_text = "drop it; it waives only the questions of this body's own `autonomy`"
        yield Diagnostic(codes.NOTHING_TO_WAIVE, message, rule.source, rule.node.tools.span, label, help_text, fix)
