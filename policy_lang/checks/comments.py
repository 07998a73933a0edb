"""Grants whose condition was commented out.

In: `Survey`. Out: ZC4013: an unconditional `allow` or `auto_approve`, and on the next line a comment that begins like its
condition.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from policy_lang import ast, codes
from policy_lang.checks.survey import RuleAt, Survey
from policy_lang.checks.witness import Witnesses
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.source import Source

_CONDITION = re.compile(r"\s*(when|unless|with\s+approval)\b")


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Every unconditional grant, once."""
    below: dict[int, dict[int, ast.Comment]] = {}
    witnesses = Witnesses(survey)
    for view, rule in survey.written_in("allow", "auto_approve"):
        if rule.always:
            file = rule.placed.file
            if id(file) not in below:
                below[id(file)] = dict(_conditions(file.source, file.file.comments))
            comment = (
                below[id(file)].get(file.source.position(rule.node.span.end).line + 1) if below[id(file)] else None
            )
            if comment is not None:
                shown = witnesses.any_of(view.body.name, rule.ids, "allow") if view.body.kind == "agent" else None
                yield replace(_finding(rule, comment), witness=shown)


def _conditions(source: Source, comments: tuple[ast.Comment, ...]) -> Iterator[tuple[int, ast.Comment]]:
    """The comments that stand alone and begin like a condition, by line."""
    for comment in comments:
        if comment.alone and _CONDITION.match(comment.text):
            yield source.position(comment.span.start).line, comment


def _finding(rule: RuleAt, comment: ast.Comment) -> Diagnostic:
    found = _CONDITION.match(comment.text)
    word = " ".join(found.group(1).split()) if found else "when"
    message = f"the `{word}` of this `{rule.node.effect}` is a comment, so it grants on every call"
    start = comment.span.start
    fix = Fix((Edit(rule.source, comment.span._replace(end=start + 1), " "),), safe=False)
    help_text = f"write `{word}` without the `#`, or move the comment above the `{rule.node.effect}`"
    return Diagnostic(
        codes.COMMENTED_CONDITION, message, rule.source, comment.span, (rule.label("the grant"),), help_text, fix
    )
