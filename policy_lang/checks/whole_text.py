"""Text patterns that read as if they looked for a part of the text: `like` and `matches` are held against all of it.

In: `Survey`. Out: ZC4014 (withholding patterns that meet one text only, or that end too early; anchors that say nothing).
Values that are closed lists are left alone: there the whole text is what is meant.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from policy_lang import ast, codes
from policy_lang.bound import Bound
from policy_lang.checks.survey import RuleAt, Survey
from policy_lang.conditions import leaves
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.kinds.operands import argument
from policy_lang.source import Span
from policy_lang.tools import quote

_WILDCARD: Final = re.compile(r"[*?\\]")
_OPERATORS: Final = frozenset("^$.*+?()[]{}|\\")
_END: Final = re.compile(r"(?<!\\)(?:\\\\)*+\$\Z")
_OPEN: Final = (".*", ".+")


class _Found(NamedTuple):
    """`says`: the message; `op`, `text`: the test to write instead; `why`: what it does."""

    says: str
    op: str
    text: str
    why: str


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Every pattern, where it is written."""
    for rule in survey.written():
        for leaf, grants in leaves(rule.node) if not rule.always else ():
            if (
                isinstance(leaf, ast.Test)
                and leaf.op in ("like", "matches")
                and not _is_closed(survey.bound, rule, leaf)
            ):
                for text, span in _patterns(survey.bound, rule, leaf.right):
                    found = _like(text, grants) if leaf.op == "like" else _matches(text, grants)
                    if found is not None:
                        yield _finding(rule, leaf, found, span)


def _is_closed(bound: Bound, rule: RuleAt, test: ast.Test) -> bool:
    """Whether the values are few and known: an enum, or no argument at all."""
    if test.left.root != "args":
        return True
    schemas = (argument(bound.catalogue.tools[number].schema, test.left.path) for number in rule.ids)
    elements = [(schema.get("item", schema) if test.each else schema) for schema in schemas if schema is not None]
    return all("enum" in element for element in elements)


def _patterns(bound: Bound, rule: RuleAt, right: ast.Right) -> Iterator[tuple[str, Span]]:
    match right:
        case ast.String(value=value, span=span):
            yield value, span
        case ast.ListValue(items=items):
            yield from ((item.value, item.span) for item in items if isinstance(item, ast.String))
        case ast.LetRef(name=name, span=span):
            items = bound.let_items(rule.placed.file, name) or ()
            yield from ((item.value, span) for item in items if isinstance(item, ast.String))
        case _:
            return


def _like(text: str, grants: bool) -> _Found | None:
    if grants or not text or _WILDCARD.search(text):
        return None
    says = f"this holds only where the whole text is `{text}`"
    return _Found(says, "like", f"*{text}*", "a text that holds it")


def _matches(text: str, grants: bool) -> _Found | None:
    begins, ends = text.startswith("^"), _END.search(text) is not None
    core = text[begins : len(text) - ends]
    if grants or (begins and ends) or not core:
        return _anchored(begins, ends)
    if _OPERATORS.isdisjoint(core):
        says = f"this holds only where the whole text is `{core}`"
        if begins:
            return _Found(says, "like", f"{core}*", "a text that begins so")
        if ends:
            return _Found(says, "like", f"*{core}", "a text that ends so")
        return _Found(says, "contains", core, "a text that holds it")
    if begins != ends and "|" in core:
        return None  # the anchor may belong to one branch
    if begins and not core.endswith(_OPEN):
        says = "the whole text has to match, not only its beginning"
        return _Found(says, "matches", f"{core}.*", "a text that begins so")
    if ends and not core.startswith(_OPEN):
        says = "the whole text has to match, not only its end"
        return _Found(says, "matches", f".*{core}", "a text that ends so")
    return _anchored(begins, ends)


def _anchored(begins: bool, ends: bool) -> _Found | None:
    """Anchors say nothing: the whole text has to match anyway."""
    signs = [f"`{sign}`" for sign, there in (("^", begins), ("$", ends)) if there]
    if not signs:
        return None
    verb = "say" if len(signs) > 1 else "says"
    return _Found(f"{' and '.join(signs)} {verb} nothing here: `matches` reads the whole text anyway", "", "", "")


def _finding(rule: RuleAt, test: ast.Test, found: _Found, span: Span) -> Diagnostic:
    source, written = rule.source, test.right
    if not found.op:
        return Diagnostic(
            codes.WHOLE_TEXT,
            found.says,
            source,
            span,
            (),
            "leave it out" if " and " not in found.says else "leave them out",
        )
    text = f'r"{found.text}"' if found.op == "matches" and '"' not in found.text else quote(found.text)
    help_text = f"for {found.why} write `{found.op} {text}`"
    if found.op == test.op and isinstance(written, ast.String | ast.ListValue):
        return Diagnostic(
            codes.WHOLE_TEXT, found.says, source, span, (), help_text, Fix((Edit(source, span, text),), safe=False)
        )
    at = source.text.find(test.op, test.left.span.end, span.start)
    fix = (
        Fix((Edit(source, Span(at, span.end), f"{found.op} {text}"),), safe=False)
        if at >= 0 and isinstance(written, ast.String)
        else None
    )
    return Diagnostic(codes.WHOLE_TEXT, found.says, source, span, (), help_text, fix)
