"""What is said of a test that does not fit the argument that it reads.

In: the left side of a test on all tools of its rule. Out: findings, with what to write instead.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from policy_lang import ast, codes
from policy_lang.bound import Bound
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.gather import LoadedFile
from policy_lang.kinds.declared import show_kind
from policy_lang.kinds.fit import HOST_TESTS, TYPED, Fit
from policy_lang.kinds.operands import UNKNOWN_SHAPE, URL_PARTS, argument, fact, field_names
from policy_lang.nearest import nearest
from policy_lang.source import Span
from policy_lang.tools import ToolInfo, show
from zcpolicy.shapes import Schema

MAX_NAMED = 3
"""The most tools that a message lists."""

_WORDS: Final = re.compile(r"[\w./-]{1,60}(?: [\w./-]{1,60}){0,8}")
_DOMAIN: Final = re.compile(r"[\w-]+(?:\.[\w-]+)+")


@dataclass(slots=True)
class LeftSide:
    """A left side on all tools of its rule: `fitting` schemas, and the tools where something is wrong."""

    fitting: list[Schema] = field(default_factory=list[Schema])
    undeclared: list[ToolInfo] = field(default_factory=list[ToolInfo])
    memberless: list[ToolInfo] = field(default_factory=list[ToolInfo])  # they have it, but it has no members
    wrong: dict[Fit, list[tuple[ToolInfo, Schema]]] = field(default_factory=dict[Fit, list[tuple[ToolInfo, Schema]]])


def unknown_field(bound: Bound, operand: ast.Operand, file: LoadedFile) -> Diagnostic:
    written = file.source.at(operand.span)
    known = field_names(operand, bound.context)
    near = nearest(operand.path[0], known) if operand.path else None
    help_text = f"did you mean `{operand.root}.{near}`?" if near else None
    if operand.root == "session" and near is None:
        help_text = "declare it with a `context` statement"
    fix = Fix((Edit(file.source, operand.span, f"{operand.root}.{near}"),), safe=False) if near else None
    return Diagnostic(codes.UNKNOWN_FIELD, f"unknown fact `{written}`", file.source, operand.span, (), help_text, fix)


def misfit(bound: Bound, left: LeftSide, test: ast.Test, rule: ast.Rule, file: LoadedFile, grants: bool) -> Diagnostic:
    written = file.source.at(test.left.span)
    if not left.wrong:
        return _part_of_no_url(bound, test, rule, file) or unknown_argument(bound, test.left, rule.tools, file)
    fit: Fit = next(kind for kind in ("unreviewed", "typed", "list", "misfit") if kind in left.wrong)
    examples = left.wrong[fit]
    if fit == "unreviewed":
        return _unreviewed(examples, test, written, file, TYPED[test.op])
    if fit == "list":
        return _list(test, written, file)
    schema = examples[0][1] if examples else fact(test.left, bound.context) or UNKNOWN_SHAPE
    message = f"`{test.op}` cannot read `{written}`: it is a `{show_kind(schema)}`"
    tested = f"{test.each} {written}" if test.each else written
    kind = show_kind(schema.get("item", UNKNOWN_SHAPE) if test.each else schema)
    if fit == "typed":
        advice = _typed_advice(kind, tested, test, grants)
        return Diagnostic(codes.TEXT_TEST, message, file.source, test.span, help=advice)
    meant = _kind_advice(test, kind, tested, examples)
    return Diagnostic(codes.WRONG_KIND, message, file.source, test.span, help=meant)


def _part_of_no_url(bound: Bound, test: ast.Test, rule: ast.Rule, file: LoadedFile) -> Diagnostic | None:
    """`args.link.host` where `link` is text that could be a url, had somebody said so."""
    operand = test.left
    if operand.root != "args" or len(operand.path) < 2 or operand.path[-1] not in URL_PARTS:
        return None
    for number in sorted(bound.ids(rule.tools)):
        tool = bound.catalogue.tools[number]
        schema = argument(tool.schema, operand.path[:-1])
        element = schema.get("item", UNKNOWN_SHAPE) if schema is not None and schema["kind"] == "list" else schema
        if schema is None or element is None or element["kind"] != "string":
            continue
        text = file.source.at(operand.span)
        whole = replace(operand, path=operand.path[:-1])
        written = text[: -len(operand.path[-1]) - 1]
        if element.get("unreviewed"):
            return _unreviewed([(tool, schema)], replace(test, left=whole), written, file, "url")
        message = f"`{written}` has no `.{operand.path[-1]}`: it is a `{show_kind(schema)}`"
        parameter = _parameter(tool, operand.path[0], schema, "url")
        advice = f"declare the parameter as `{parameter}` in the `tool` statement of `{tool.shown}`"
        return Diagnostic(codes.WRONG_KIND, message, file.source, test.span, help=advice)
    return None


def _parameter(tool: ToolInfo, name: str, schema: Schema, wanted: str) -> str:
    """`name: path` as a `tool` statement writes it: as optional, and as much of a list, as it is."""
    mark = "" if name in tool.schema.get("required", ()) else "?"
    kind = f"list<{wanted}>" if schema["kind"] == "list" else wanted
    return f"{show((None, name))}{mark}: {kind}"


def _unreviewed(
    examples: list[tuple[ToolInfo, Schema]], test: ast.Test, written: str, file: LoadedFile, wanted: str
) -> Diagnostic:
    tool, schema = examples[0]
    message = f"nobody has said that `{written}` of `{tool.shown}` is a {wanted}: it is an unreviewed string"
    name, *below = test.left.path
    if below:
        help_text = "a `tool` statement gives a kind to whole arguments only: test this one as text"
        return Diagnostic(codes.UNREVIEWED, message, file.source, test.span, (), help_text)
    statement = f"tool {tool.shown}({_parameter(tool, name, schema, wanted)})"
    at = _declaration_before(file, test.span)
    fix = Fix((Edit(file.source, Span(at, at), statement + "\n"),), safe=False)
    help_text = f"review the tool, then write `{statement}`"
    return Diagnostic(codes.UNREVIEWED, message, file.source, test.span, (), help_text, fix)


def _list(test: ast.Test, written: str, file: LoadedFile) -> Diagnostic:
    if test.each is not None:
        message, help_text = (
            f"`{test.each}` needs a list, and `{written}` is none",
            f"write the test without `{test.each}`",
        )
    else:
        message, help_text = (
            f"`{written}` is a list, and `{test.op}` reads one value",
            f"write `some {written} …` or `every {written} …`",
        )
    return Diagnostic(codes.QUANTIFIER, message, file.source, test.span, help=help_text)


def unknown_argument(bound: Bound, operand: ast.Operand, tools: ast.ToolSet, file: LoadedFile) -> Diagnostic:
    written = file.source.at(operand.span)
    infos = [bound.catalogue.tools[number] for number in sorted(bound.ids(tools))]
    known = sorted({name for tool in infos for name in tool.schema.get("fields", {})})
    first = operand.path[0] if operand.path else ""
    near = nearest(first, known) if first not in known else None
    shown = f"`{infos[0].shown}` has" if len(infos) == 1 else "these tools have"
    help_text = f"did you mean `args.{near}`?" if near else _arguments_of(infos, known)
    if first in known:
        help_text = f"`args.{first}` is there, and has no such member"
    edit = Edit(file.source, operand.span, ".".join(("args", near, *operand.path[1:]))) if near else None
    fix = Fix((edit,), safe=False) if edit else None
    return Diagnostic(
        codes.UNKNOWN_ARGUMENT, f"{shown} no argument `{written}`", file.source, operand.span, (), help_text, fix
    )


def partly(left: LeftSide, test: ast.Test, rule: ast.Rule, file: LoadedFile) -> Iterator[Diagnostic]:
    """Tools of the rule on which the test can only be UNKNOWN."""
    wrong = [*left.memberless, *(tool for examples in left.wrong.values() for tool, _ in examples)]
    if rule.effect in ("allow", "auto_approve"):
        wrong = [*left.undeclared, *wrong]
    if wrong and left.fitting:
        written = file.source.at(test.left.span)
        names = ", ".join(f"`{tool.shown}`" for tool in wrong[:MAX_NAMED]) + (
            f" and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
        )
        effect = "grants nothing there" if rule.effect in ("allow", "auto_approve") else "holds there whatever is sent"
        message = f"`{written}` cannot be tested on {names}: the rule {effect}"
        yield Diagnostic(
            codes.PARTLY_FITS,
            message,
            file.source,
            test.left.span,
            help="name only tools that have it, or give it a kind with `tool`",
        )


def _typed_advice(kind: str, written: str, test: ast.Test, grants: bool) -> str:
    """The typed test to write, of the same text where it can stand there."""
    own = _plain_text(test.right)
    match kind:
        case "path":
            own, name = own.rstrip("/"), own.rstrip("/").rpartition("/")[2]
            if own.startswith("/"):
                return f'write `{written} under "{own}"`'
            return f'write `{written} under "/folder"` or `{written} glob "**/{name or "name"}"`'
        case "url":
            domain = own if _DOMAIN.fullmatch(own) else "example.org"
            if test.op in HOST_TESTS:
                return f'write `{written}.host {test.op} "…"`'
            return f'write `{written}.host in_domain "{domain}"`, and `{written}.scheme == "https"`'
        case _:
            runs = "runs only" if grants else "runs any"
            return f'write `{written} {runs} ["{own or "git status"} ..."]`'


def _plain_text(right: ast.Right) -> str:
    """The first text of a right side, without wildcards at its ends; "" where it is no plain words."""
    first = right.items[0] if isinstance(right, ast.ListValue) and right.items else right
    text = (
        first.value.removeprefix("^").removesuffix("$").removeprefix(".*").removesuffix(".*").strip("* ")
        if isinstance(first, ast.String)
        else ""
    )
    return text if _WORDS.fullmatch(text) else ""


def _kind_advice(test: ast.Test, kind: str, written: str, examples: list[tuple[ToolInfo, Schema]]) -> str | None:
    wanted = TYPED.get(test.op)
    if wanted and kind == "string" and examples:
        tool, schema = examples[0]
        parameter = _parameter(tool, test.left.path[0], schema, wanted)
        return f"declare the parameter as `{parameter}` in the `tool` statement of `{tool.shown}`"
    if wanted == "path" and kind == "url":
        return f'write `{written}.host in_domain "…"`'
    return None


def _arguments_of(infos: list[ToolInfo], known: list[str]) -> str | None:
    if not known:
        return "it takes no arguments" if len(infos) == 1 else "they take no arguments"
    return (
        "known are " + ", ".join(f"`{name}`" for name in known[:MAX_NAMED]) + (" …" if len(known) > MAX_NAMED else "")
    )


def _declaration_before(file: LoadedFile, span: Span) -> int:
    """Where the declaration that holds a span begins."""
    starts = [node.span.start for node in file.file.declarations if node.span.start <= span.start]
    return max(starts, default=0)
