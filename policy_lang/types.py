"""Kinds: every test fits the argument that it reads, on the side that it stands on.

In: `Bound`. Out: findings. A test must fit at least one tool of its rule; where it fits only some, the others are
warned of: there it is UNKNOWN (SPEC 7).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from policy_lang import ast, codes
from policy_lang.bound import Bound
from policy_lang.conditions import leaves
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.fit import HOST_TESTS, TYPED, Fit, literal_fits, operator_fits
from policy_lang.gather import LoadedFile
from policy_lang.kinds import show_kind
from policy_lang.nearest import nearest
from policy_lang.operands import UNKNOWN_SHAPE, argument, fact, field_names
from policy_lang.source import Span
from policy_lang.tools import ToolInfo
from zcpolicy.shapes import Schema

MAX_NAMED = 3
"""The most tools that a message lists."""


@dataclass(slots=True)
class _Operand:
    """A left side on all tools of its rule: `fitting` schemas, and the tools where something is wrong."""

    fitting: list[Schema] = field(default_factory=list[Schema])
    undeclared: list[ToolInfo] = field(default_factory=list[ToolInfo])
    wrong: dict[Fit, list[tuple[ToolInfo, Schema]]] = field(default_factory=dict[Fit, list[tuple[ToolInfo, Schema]]])


class Kinds:
    """One pass over all statements; each is judged once, however many bodies use it."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self._memo: dict[tuple[frozenset[int], str, tuple[str, ...], str, str | None], _Operand] = {}
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
                yield from self._limit(node, file)
            case ast.Require():
                for operand in node.same:
                    for tools in (node.earlier, node.later):
                        yield from self._declared(operand, tools, file)
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
            yield self._unknown_field(test.left, file)
        elif not left.fitting and self.bound.ids(rule.tools):
            yield self._misfit(left, test, rule, file, grants)
        else:
            yield from self._partly(left, test, rule, file)
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

    def _left(self, test: ast.Test, tools: ast.ToolSet) -> _Operand | None:
        """The left side on every tool of the rule; `None` for a field that does not exist."""
        ids, operand = self.bound.ids(tools), test.left
        key = (ids if operand.root == "args" else frozenset[int](), operand.root, operand.path, test.op, test.each)
        known = self._memo.get(key)
        if known is not None:
            return known
        out = _Operand()
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

    def _on_tool(self, out: _Operand, tool: ToolInfo, test: ast.Test) -> None:
        schema = argument(tool.schema, test.left.path)
        if schema is None:
            out.undeclared.append(tool)
            return
        fit = operator_fits(test.op, schema, test.each)
        if fit != "fits":
            out.wrong.setdefault(fit, []).append((tool, schema))
        elif _element(schema, test) not in out.fitting:
            out.fitting.append(_element(schema, test))

    def _unknown_field(self, operand: ast.Operand, file: LoadedFile) -> Diagnostic:
        written = file.source.text[operand.span.start : operand.span.end]
        known = field_names(operand, self.bound.context)
        near = nearest(operand.path[0], known) if operand.path else None
        help_text = f"did you mean `{operand.root}.{near}`?" if near else None
        if operand.root == "session" and near is None:
            help_text = "declare it with a `context` statement"
        fix = Fix((Edit(file.source, operand.span, f"{operand.root}.{near}"),), safe=False) if near else None
        return Diagnostic(
            codes.UNKNOWN_FIELD, f"unknown fact `{written}`", file.source, operand.span, (), help_text, fix
        )

    # --- what does not fit ---

    def _misfit(self, left: _Operand, test: ast.Test, rule: ast.Rule, file: LoadedFile, grants: bool) -> Diagnostic:
        written = file.source.text[test.left.span.start : test.left.span.end]
        if not left.wrong:
            return self._unknown_argument(test.left, rule.tools, file)
        fit: Fit = next(kind for kind in ("unreviewed", "typed", "list", "misfit") if kind in left.wrong)
        examples = left.wrong[fit]
        if fit == "unreviewed":
            return self._unreviewed(examples, test, written, file)
        if fit == "list":
            return self._list(test, written, file)
        kind = show_kind(examples[0][1]) if examples else "a list"
        message = f"`{test.op}` cannot read `{written}`: it is a `{kind}`"
        if fit == "typed":
            return Diagnostic(
                codes.TEXT_TEST, message, file.source, test.span, help=_typed_advice(kind, written, test.op, grants)
            )
        return Diagnostic(
            codes.WRONG_KIND, message, file.source, test.span, help=_kind_advice(test, kind, written, examples)
        )

    def _unreviewed(
        self, examples: list[tuple[ToolInfo, Schema]], test: ast.Test, written: str, file: LoadedFile
    ) -> Diagnostic:
        wanted = TYPED[test.op]
        tool, name = examples[0][0], test.left.path[0]
        statement = f"tool {tool.shown}({name}: {wanted})"
        message = f"nobody has said that `{written}` of `{tool.shown}` is a {wanted}: it is an unreviewed string"
        at = _declaration_before(file, test.span)
        fix = (
            Fix((Edit(file.source, Span(at, at), statement + "\n"),), safe=False) if len(test.left.path) == 1 else None
        )
        help_text = f"review the tool, then write `{statement}`"
        return Diagnostic(codes.UNREVIEWED, message, file.source, test.span, (), help_text, fix)

    def _list(self, test: ast.Test, written: str, file: LoadedFile) -> Diagnostic:
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

    def _unknown_argument(self, operand: ast.Operand, tools: ast.ToolSet, file: LoadedFile) -> Diagnostic:
        written = file.source.text[operand.span.start : operand.span.end]
        infos = [self.bound.catalogue.tools[number] for number in sorted(self.bound.ids(tools))]
        known = sorted({name for tool in infos for name in tool.schema.get("fields", {})})
        near = nearest(operand.path[0], known) if operand.path else None
        shown = f"`{infos[0].shown}` has" if len(infos) == 1 else "these tools have"
        help_text = f"did you mean `args.{near}`?" if near else _arguments_of(infos, known)
        edit = Edit(file.source, operand.span, ".".join(("args", near, *operand.path[1:]))) if near else None
        fix = Fix((edit,), safe=False) if edit else None
        return Diagnostic(
            codes.UNKNOWN_ARGUMENT, f"{shown} no argument `{written}`", file.source, operand.span, (), help_text, fix
        )

    def _partly(self, left: _Operand, test: ast.Test, rule: ast.Rule, file: LoadedFile) -> Iterator[Diagnostic]:
        """Tools of the rule on which the test can only be UNKNOWN."""
        wrong = [tool for examples in left.wrong.values() for tool, _ in examples]
        if rule.effect in ("allow", "auto_approve"):
            wrong = [*left.undeclared, *wrong]
        if wrong and left.fitting:
            written = file.source.text[test.left.span.start : test.left.span.end]
            names = ", ".join(f"`{tool.shown}`" for tool in wrong[:MAX_NAMED]) + (
                f" and {len(wrong) - MAX_NAMED} more" if len(wrong) > MAX_NAMED else ""
            )
            effect = (
                "grants nothing there" if rule.effect in ("allow", "auto_approve") else "holds there whatever is sent"
            )
            message = f"`{written}` cannot be tested on {names}: the rule {effect}"
            yield Diagnostic(
                codes.PARTLY_FITS,
                message,
                file.source,
                test.left.span,
                help="name only tools that have it, or give it a kind with `tool`",
            )

    # --- the right side ---

    def _right(self, left: _Operand, test: ast.Test, rule: ast.Rule, file: LoadedFile) -> Iterator[Diagnostic]:
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
                written = file.source.text[span.start : span.end]
                yield Diagnostic(
                    code,
                    f"`{written}` cannot stand here: {reasons[0]}",
                    file.source,
                    span,
                    help=_null_help(test, item, file),
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
        self, left: _Operand, test: ast.Test, right: ast.Operand, rule: ast.Rule, file: LoadedFile
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
                yield self._unknown_argument(right, rule.tools, file)
                return
        else:
            schema = fact(right, self.bound.context)
            if schema is None:
                yield self._unknown_field(right, file)
                return
            schemas = [schema]
        if not any(_comparable(a, b, test.op) for a in left.fitting for b in schemas):
            message = (
                f"a `{show_kind(left.fitting[0])}` is never compared with a `{show_kind(schemas[0])}`"
                if left.fitting
                else "never compared"
            )
            yield Diagnostic(codes.WRONG_KIND, message, file.source, test.span)

    # --- arguments that limits and preconditions name ---

    def _declared(self, operand: ast.Operand, tools: ast.ToolSet, file: LoadedFile) -> Iterator[Diagnostic]:
        ids = self.bound.ids(tools)
        if ids and all(argument(self.bound.catalogue.tools[number].schema, operand.path) is None for number in ids):
            yield self._unknown_argument(operand, tools, file)

    def _limit(self, node: ast.Limit, file: LoadedFile) -> Iterator[Diagnostic]:
        for operand, kinds in ((node.argument, ("integer", "number", "any")), (node.each, None)):
            if not isinstance(operand, ast.Operand):
                continue
            if node.tools is None:
                message = "a limit on an argument needs the tools that have it"
                yield Diagnostic(
                    codes.LIMIT_WITHOUT_TOOLS, message, file.source, operand.span, help="write `to TOOL` before `per`"
                )
                continue
            ids = self.bound.ids(node.tools)
            schemas = [argument(self.bound.catalogue.tools[number].schema, operand.path) for number in ids]
            missing = [self.bound.catalogue.tools[n].shown for n, s in zip(ids, schemas, strict=True) if s is None]
            if missing and len(missing) == len(ids):
                yield self._unknown_argument(operand, node.tools, file)
            elif kinds and any(schema is not None and schema["kind"] not in kinds for schema in schemas):
                written = file.source.text[operand.span.start : operand.span.end]
                yield Diagnostic(
                    codes.WRONG_KIND, f"`{written}` is no number on every tool of this limit", file.source, operand.span
                )


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


def _null_help(test: ast.Test, item: ast.Literal_, file: LoadedFile) -> str | None:
    if not isinstance(item, ast.Null):
        return None
    written = file.source.text[test.left.span.start : test.left.span.end]
    return f"write `not has {written}`" if test.op in ("==", "in") else f"write `has {written}`"


def _declaration_before(file: LoadedFile, span: Span) -> int:
    """Where the declaration that holds a span begins."""
    starts = [node.span.start for node in file.file.declarations if node.span.start <= span.start]
    return max(starts, default=0)
