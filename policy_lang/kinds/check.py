"""Kinds: every test fits the argument that it reads, on the side that it stands on.

In: `Bound`. Out: findings. A test must fit at least one tool of its rule; where it fits only some, the others are
warned of: there it is UNKNOWN (SPEC 7).
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from policy_lang import ast, codes
from policy_lang.bound import Bound
from policy_lang.conditions import leaves
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.gather import LoadedFile
from policy_lang.kinds.declared import show_kind
from policy_lang.kinds.fit import literal_fits, operand_text, operator_fits
from policy_lang.kinds.limits import limit_findings
from policy_lang.kinds.misfits import LeftSide, misfit, partly, unknown_argument, unknown_field
from policy_lang.kinds.operands import UNKNOWN_SHAPE, argument, fact, is_below_a_scalar
from policy_lang.source import Span
from policy_lang.tools import ToolInfo
from zcpolicy.shapes import Schema

_NUMERAL = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?")


class Kinds:
    """One pass over all statements; each is judged once, however many bodies use it."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self._memo: dict[tuple[frozenset[int], str, tuple[str, ...], str, str | None], LeftSide] = {}
        self._literals: dict[tuple[str, str, bool | None, object], str | None] = {}

    def check(self) -> Iterator[Diagnostic]:
        """Findings of all rules, limits and preconditions."""
        seen: set[int] = set()
        for body in (*self.bound.bodies(), *self.bound.profiles.values()):
            for placed in body.statements:
                if id(placed.node) not in seen:
                    seen.add(id(placed.node))
                    yield from self._statement(placed.node, placed.file)

    def _statement(self, node: ast.Statement, file: LoadedFile) -> Iterator[Diagnostic]:
        match node:
            case ast.Rule():
                yield from self._rule(node, file)
            case ast.Limit():
                yield from limit_findings(self.bound, node, file)
            case ast.Require():
                for operand in node.same:
                    yield from self._on_both_sides(operand, node, file)
            case _:
                pass

    # --- rules ---

    def _rule(self, node: ast.Rule, file: LoadedFile) -> Iterator[Diagnostic]:
        for leaf, grants in leaves(node):
            match leaf:
                case ast.Marked(label=label):
                    if grants:
                        message = (
                            f"`marked {label.text}` would grant: labels are only ever added, so they only withhold"
                        )
                        help_text = f"grant without it, and withhold with it: `ask … when marked {label.text}`"
                        yield Diagnostic(codes.LABEL_GRANTS, message, file.source, leaf.span, help=help_text)
                case ast.Has(operand=operand):
                    yield from self._declared(operand, node.tools, file)
                case ast.Bare(operand=operand):
                    test = ast.Test(operand, "==", ast.Boolean(True, leaf.span), None, leaf.span)
                    yield from self._test(test, node, file, grants)
                case ast.Test():
                    yield from self._test(leaf, node, file, grants)

    def _test(self, test: ast.Test, rule: ast.Rule, file: LoadedFile, grants: bool) -> Iterator[Diagnostic]:
        yield from self._polarity(test, file, grants)
        left = self._left(test, rule.tools)
        if left is None:
            yield unknown_field(self.bound, test.left, file)
        elif not left.fitting and self.bound.ids(rule.tools):
            yield misfit(self.bound, left, test, rule, file, grants)
        else:
            yield from partly(left, test, rule, file)
            yield from self._right(left, test, rule, file)

    def _polarity(self, test: ast.Test, file: LoadedFile, grants: bool) -> Iterator[Diagnostic]:
        wrong, right = ("runs any", "runs only") if grants else ("runs only", "runs any")
        if test.op != wrong:
            return
        side = "grants" if grants else "withholds"
        message = f"`{wrong}` cannot stand where its truth {side}"
        at = file.source.text.find("runs", test.left.span.end, test.right.span.start)
        fix = Fix((Edit(file.source, Span(at, test.right.span.start), f"{right} "),), safe=False) if at >= 0 else None
        yield Diagnostic(codes.WRONG_SIDE, message, file.source, test.span, (), f"write `{right}`", fix)

    def _left(self, test: ast.Test, tools: ast.ToolSet) -> LeftSide | None:
        """The left side on every tool of the rule; `None` for a field that does not exist."""
        ids, operand = self.bound.ids(tools), test.left
        key = (ids if operand.root == "args" else frozenset[int](), operand.root, operand.path, test.op, test.each)
        known = self._memo.get(key)
        if known is not None:
            return known
        out = LeftSide()
        if operand.root != "args":
            schema = fact(operand, self.bound.context)
            if schema is None:
                return None
            fit = operator_fits(test.op, schema, test.each)
            if fit == "fits":
                out.fitting.append(_element(schema, test))
            else:
                out.wrong[fit] = []
        else:
            for number in sorted(ids):
                self._on_tool(out, self.bound.catalogue.tools[number], test)
        self._memo[key] = out
        return out

    def _on_tool(self, out: LeftSide, tool: ToolInfo, test: ast.Test) -> None:
        schema = argument(tool.schema, test.left.path)
        if schema is None:
            (out.memberless if is_below_a_scalar(tool.schema, test.left.path) else out.undeclared).append(tool)
            return
        fit = operator_fits(test.op, schema, test.each)
        if fit != "fits":
            out.wrong.setdefault(fit, []).append((tool, schema))
        elif _element(schema, test) not in out.fitting:
            out.fitting.append(_element(schema, test))

    # --- the right side ---

    def _right(self, left: LeftSide, test: ast.Test, rule: ast.Rule, file: LoadedFile) -> Iterator[Diagnostic]:
        right = test.right
        if isinstance(right, ast.Operand):
            yield from self._operand_right(left, test, right, rule, file)
            return
        for item, span in self._items(right, file):
            if isinstance(item, ast.ListValue | ast.ObjectValue):
                yield Diagnostic(codes.WRONG_KIND, f"`{test.op}` takes plain values", file.source, span)
                continue
            reasons = [self._literal(test, schema, item) for schema in left.fitting]
            if reasons and all(reasons):
                code = (
                    codes.BAD_OPERAND
                    if test.op not in ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains")
                    else codes.WRONG_KIND
                )
                written = file.source.at(span)
                yield Diagnostic(
                    code,
                    f"`{written}` cannot stand here: {reasons[0]}",
                    file.source,
                    span,
                    help=_right_help(test, item, file),
                )

    def _items(self, right: ast.Right, file: LoadedFile) -> Iterator[tuple[ast.Value, Span]]:
        match right:
            case ast.ListValue(items=items):
                yield from ((item, item.span) for item in items)
            case ast.LetRef(name=name):
                yield from ((item, right.span) for item in self.bound.let_items(file, name) or ())
            case ast.Operand():
                return
            case _:
                yield right, right.span

    def _literal(self, test: ast.Test, schema: Schema, item: ast.Literal_) -> str | None:
        value = None if isinstance(item, ast.Null) else item.value
        key = (test.op, show_kind(schema), isinstance(value, bool), value)
        if key not in self._literals:
            self._literals[key] = literal_fits(test.op, schema, item)
        return self._literals[key]

    def _operand_right(
        self, left: LeftSide, test: ast.Test, right: ast.Operand, rule: ast.Rule, file: LoadedFile
    ) -> Iterator[Diagnostic]:
        if test.op not in ("==", "!=", "<", "<=", ">", ">=", "in", "not in") or right.root in ("paths", "urls"):
            message = f"`{test.op}` takes a value here, not another argument or fact"
            yield Diagnostic(codes.WRONG_KIND, message, file.source, right.span)
            return
        if right.root == "args":
            found = [
                argument(self.bound.catalogue.tools[n].schema, right.path) for n in sorted(self.bound.ids(rule.tools))
            ]
            schemas = [schema for schema in found if schema is not None]
            if not schemas:
                yield unknown_argument(self.bound, right, rule.tools, file)
                return
        else:
            schema = fact(right, self.bound.context)
            if schema is None:
                yield unknown_field(self.bound, right, file)
                return
            schemas = [schema]
        if not any(_comparable(a, b, test.op) for a in left.fitting for b in schemas):
            message = (
                f"a `{show_kind(left.fitting[0])}` is never compared with a `{show_kind(schemas[0])}`"
                if left.fitting
                else "never compared"
            )
            yield Diagnostic(codes.WRONG_KIND, message, file.source, test.span)

    # --- arguments that preconditions name ---

    def _on_both_sides(self, operand: ast.Operand, node: ast.Require, file: LoadedFile) -> tuple[Diagnostic, ...]:
        """One finding for one name, although both sets of tools may lack it."""
        earlier = tuple(self._declared(operand, node.earlier, file))
        return earlier or tuple(self._declared(operand, node.later, file))

    def _declared(self, operand: ast.Operand, tools: ast.ToolSet, file: LoadedFile) -> Iterator[Diagnostic]:
        ids = self.bound.ids(tools)
        if ids and all(argument(self.bound.catalogue.tools[number].schema, operand.path) is None for number in ids):
            yield unknown_argument(self.bound, operand, tools, file)


def check_kinds(bound: Bound) -> tuple[Diagnostic, ...]:
    """All findings about kinds."""
    return tuple(Kinds(bound).check())


def _element(schema: Schema, test: ast.Test) -> Schema:
    return schema if test.each is None else schema.get("item", UNKNOWN_SHAPE)


def _comparable(a: Schema, b: Schema, op: ast.Operator) -> bool:
    if op in ("in", "not in"):
        if b["kind"] not in ("list", "any"):
            return False
        b = b.get("item", UNKNOWN_SHAPE)
    numbers = ("integer", "number")
    return "any" in (a["kind"], b["kind"]) or a["kind"] == b["kind"] or (a["kind"] in numbers and b["kind"] in numbers)


def _right_help(test: ast.Test, item: ast.Literal_, file: LoadedFile) -> str | None:
    """What to write instead of a value that cannot stand on the right."""
    written = file.source.at(test.left.span)
    if isinstance(item, ast.Null):
        return f"write `not has {written}`" if test.op in ("==", "in") else f"write `has {written}`"
    if not isinstance(item, ast.String):
        return None
    text = item.value
    if test.op == "in_net" and operand_text("in_domain", item) is None:
        return f'for a name write `{written} in_domain "{text}"`'
    if test.op == "glob" and text and operand_text("glob", replace(item, value=f"**/{text}")) is None:
        return f'for such files in any folder write `"**/{text}"`'
    if test.op == "under" and "*" in text and operand_text("glob", item) is None:
        return f'for a pattern write `{written} glob "{text}"`'
    if test.op == "under" and not text.startswith("/"):
        return 'name the folder from the root, as in `"/repo/docs"`'
    if test.op not in ("under", "glob") and _NUMERAL.fullmatch(text):
        return f"a number stands without quotes: `{text}`"
    return None
