"""What is said of a test that does not fit the argument that it reads.

In: the left side of a test on all tools of its rule. Out: findings, with what to write instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from policy_lang import ast, codes
from policy_lang.bound import Bound
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.fit import HOST_TESTS, TYPED, Fit
from policy_lang.gather import LoadedFile
from policy_lang.kinds import show_kind
from policy_lang.nearest import nearest
from policy_lang.operands import field_names
from policy_lang.source import Span
from policy_lang.tools import ToolInfo
from zcpolicy.shapes import Schema

MAX_NAMED = 3
"""The most tools that a message lists."""


@dataclass(slots=True)
class LeftSide:
    """A left side on all tools of its rule: `fitting` schemas, and the tools where something is wrong."""

    fitting: list[Schema] = field(default_factory=list[Schema])
    undeclared: list[ToolInfo] = field(default_factory=list[ToolInfo])
    wrong: dict[Fit, list[tuple[ToolInfo, Schema]]] = field(default_factory=dict[Fit, list[tuple[ToolInfo, Schema]]])


def unknown_field(bound: Bound, operand: ast.Operand, file: LoadedFile) -> Diagnostic:
    written = file.source.text[operand.span.start : operand.span.end]
    known = field_names(operand, bound.context)
    near = nearest(operand.path[0], known) if operand.path else None
    help_text = f"did you mean `{operand.root}.{near}`?" if near else None
    if operand.root == "session" and near is None:
        help_text = "declare it with a `context` statement"
    fix = Fix((Edit(file.source, operand.span, f"{operand.root}.{near}"),), safe=False) if near else None
    return Diagnostic(codes.UNKNOWN_FIELD, f"unknown fact `{written}`", file.source, operand.span, (), help_text, fix)


def misfit(bound: Bound, left: LeftSide, test: ast.Test, rule: ast.Rule, file: LoadedFile, grants: bool) -> Diagnostic:
    written = file.source.text[test.left.span.start : test.left.span.end]
    if not left.wrong:
        return unknown_argument(bound, test.left, rule.tools, file)
    fit: Fit = next(kind for kind in ("unreviewed", "typed", "list", "misfit") if kind in left.wrong)
    examples = left.wrong[fit]
    if fit == "unreviewed":
        return _unreviewed(examples, test, written, file)
    if fit == "list":
        return _list(test, written, file)
    kind = show_kind(examples[0][1]) if examples else "a list"
    message = f"`{test.op}` cannot read `{written}`: it is a `{kind}`"
    if fit == "typed":
        return Diagnostic(
            codes.TEXT_TEST, message, file.source, test.span, help=_typed_advice(kind, written, test.op, grants)
        )
    return Diagnostic(
        codes.WRONG_KIND, message, file.source, test.span, help=_kind_advice(test, kind, written, examples)
    )


def _unreviewed(examples: list[tuple[ToolInfo, Schema]], test: ast.Test, written: str, file: LoadedFile) -> Diagnostic:
    wanted = TYPED[test.op]
    tool, name = examples[0][0], test.left.path[0]
    statement = f"tool {tool.shown}({name}: {wanted})"
    message = f"nobody has said that `{written}` of `{tool.shown}` is a {wanted}: it is an unreviewed string"
    at = _declaration_before(file, test.span)
    fix = Fix((Edit(file.source, Span(at, at), statement + "\n"),), safe=False) if len(test.left.path) == 1 else None
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
    written = file.source.text[operand.span.start : operand.span.end]
    infos = [bound.catalogue.tools[number] for number in sorted(bound.ids(tools))]
    known = sorted({name for tool in infos for name in tool.schema.get("fields", {})})
    near = nearest(operand.path[0], known) if operand.path else None
    shown = f"`{infos[0].shown}` has" if len(infos) == 1 else "these tools have"
    help_text = f"did you mean `args.{near}`?" if near else _arguments_of(infos, known)
    edit = Edit(file.source, operand.span, ".".join(("args", near, *operand.path[1:]))) if near else None
    fix = Fix((edit,), safe=False) if edit else None
    return Diagnostic(
        codes.UNKNOWN_ARGUMENT, f"{shown} no argument `{written}`", file.source, operand.span, (), help_text, fix
    )


def partly(left: LeftSide, test: ast.Test, rule: ast.Rule, file: LoadedFile) -> Iterator[Diagnostic]:
    """Tools of the rule on which the test can only be UNKNOWN."""
    wrong = [tool for examples in left.wrong.values() for tool, _ in examples]
    if rule.effect in ("allow", "auto_approve"):
        wrong = [*left.undeclared, *wrong]
    if wrong and left.fitting:
        written = file.source.text[test.left.span.start : test.left.span.end]
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


def _typed_advice(kind: str, written: str, op: ast.Operator, grants: bool) -> str:
    match kind:
        case "path":
            return f'write `{written} under "/folder"` or `{written} glob "**/name"`'
        case "url":
            if op in HOST_TESTS:
                return f'write `{written}.host {op} "…"`'
            return f'write `{written}.host in_domain "example.org"`, and `{written}.scheme == "https"`'
        case _:
            runs = "runs only" if grants else "runs any"
            return f'write `{written} {runs} ["git status ..."]`'


def _kind_advice(test: ast.Test, kind: str, written: str, examples: list[tuple[ToolInfo, Schema]]) -> str | None:
    wanted = TYPED.get(test.op)
    if wanted and kind == "string" and examples:
        tool = examples[0][0]
        return f"declare the parameter as `{test.left.path[0]}: {wanted}` in the `tool` statement of `{tool.shown}`"
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
