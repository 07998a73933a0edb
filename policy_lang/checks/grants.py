"""Grants without a condition: of every tool, of a shell, of class high.

In: `Survey`. Out: ZC4001, ZC4002, ZC4003, one per rule. A grant counts where nobody is asked either: no `with approval`,
no `autonomy` and no unconditional `ask` in any body.
"""

from collections.abc import Iterator
from dataclasses import replace

from policy_lang import ast, codes
from policy_lang.checks.parameters import runs_text
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import RuleAt, Survey, tool_names
from policy_lang.checks.witness import Witnesses
from policy_lang.diagnostics import Diagnostic, Label

ADVICE = "add `when …` or `with approval`, or write `autonomy supervised` in the agent"


def check(reach: Reach) -> Iterator[Diagnostic]:
    """Every granting agent's own rules."""
    survey = reach.survey
    shells = frozenset(number for number, tool in enumerate(survey.bound.catalogue.tools) if runs_text(tool))
    high = reach.of_class("high")
    witnesses = Witnesses(survey)
    for name, view in survey.agents.items():
        for rule in view.own("allow"):
            if not rule.always or rule.node.approval:
                continue
            every = next((item for item in rule.node.tools.items if isinstance(item, ast.AnyTool)), None)
            if every is None and not rule.ids & (shells | high):
                continue
            plain = reach.plainly(name, rule)
            if plain <= reach.of_class("read") and reach.asked(name):
                continue  # what is above class `read` is asked about
            if plain:
                waiver = view.first("auto_approve", plain) if view.caps else None
                labels = (waiver.label("the question of `autonomy` is waived here"),) if waiver is not None else ()
                found = _grant(survey, rule, every, (plain, plain & shells, plain & high), labels)
                shown = (plain & shells) or (plain & high) or plain
                yield from (replace(finding, witness=witnesses.any_of(name, shown, "allow")) for finding in found)


def _grant(
    survey: Survey, rule: RuleAt, every: ast.AnyTool | None, sets: tuple[frozenset[int], ...], labels: tuple[Label, ...]
) -> Iterator[Diagnostic]:
    """`sets`: all that the rule plainly grants; of it the shells, and what is of class high."""
    bound, source = survey.bound, rule.source
    plain, shells, high = sets
    if every is not None:
        message = f"`any` is allowed on every call, without a question: {len(plain)} tools"
        if high:
            message += f", {tool_names(bound, high)} of class high"
        help_text = "name the tools that the agent needs, or write `autonomy supervised`"
        yield Diagnostic(
            codes.GRANT_OF_ANY, message.replace(": 1 tools", ": 1 tool"), source, every.span, labels, help_text
        )
    elif shells:
        message = f"{tool_names(bound, shells)} runs whatever text it is sent, without a question"
        help_text = 'add `when args.… runs only ["git status ..."]` or `with approval`; `deny … runs any` is a guard rail, no wall'
        yield Diagnostic(codes.GRANT_OF_SHELL, message, source, rule.node.tools.span, labels, help_text)
    elif high:
        verb = "is" if len(high) == 1 else "are"
        message = f"{tool_names(bound, high)} {verb} of class high, and allowed on every call without a question"
        help_text = (
            ADVICE if not labels else "name fewer tools in `auto_approve`, or add `when …` or `with approval` here"
        )
        if any(bound.catalogue.tools[number].risk is None for number in high):
            help_text += "; a tool whose class nobody states is high: `risk read = …` states it"
        yield Diagnostic(codes.GRANT_OF_HIGH, message, source, rule.node.tools.span, labels, help_text)
