"""How declarations, tests and whole files are printed.

In: a file's tree with its comments. Out: its text in canonical layout.
"""

from functools import partial
from typing import assert_never

from policy_lang import ast
from policy_lang.pretty import words
from policy_lang.pretty.blocks import MAX_COLUMN, Columns, Item, in_columns
from policy_lang.pretty.doc import INDENT, Doc, Line, flat, group, lay_out
from policy_lang.pretty.statements import Statements
from policy_lang.source import Span


class Files(Statements):
    """Makes the text of a file."""

    def text(self, file: ast.File) -> str:
        """The whole file, ending in a newline; of nothing at all, nothing."""
        items = [Item(one.span, partial(self.declaration, one)) for one in file.declarations]
        note, rows = self.rows(items, 0, len(file.source.text) + 1)
        lines = [note] if note else []
        for row, doc in zip(rows, in_columns(rows), strict=True):
            lines += [""] if row.blank else []
            lines.append(lay_out(doc))
        return "\n".join(lines) + "\n" if lines else ""

    def declaration(self, one: ast.Declaration) -> Doc | Columns:
        match one:
            case ast.Tool():
                return self._tool(one)
            case ast.Agent():
                narrows = "" if one.narrows is None else f" narrows {one.narrows.text}"
                return self._body(f"agent {one.name.text}{narrows}", one.body)
            case ast.Profile():
                return self._body(f"profile {one.name.text}", one.body)
            case ast.Skill():
                return self._body(f"skill {one.name.text}", one.body)
            case ast.Ceiling():
                return self._body("ceiling", one.body)
            case ast.TestBlock():
                items = [Item(step.span, partial(self._step, step)) for step in one.steps]
                return self.block(f"test {words.string(one.name)}", items, _from(one.span, one.name.span.end), "; ")
            case ast.Bundle() | ast.Context() | ast.Server():
                return self._settings(one)
            case _:
                return self._plain(one)

    def _body(self, head: str, body: ast.Body) -> Doc:
        items = [Item(one.span, partial(self.statement, one)) for one in body.statements]
        return self.block(head, items, body.span, "; ")

    # --- on one line, lists apart ---

    def _plain(
        self, one: ast.Edition | ast.Catalog | ast.Import | ast.Risk | ast.Label | ast.Scope | ast.Let | ast.Group
        | ast.AgentsAllowed,
    ) -> Doc:  # fmt: skip
        match one:
            case ast.Edition():
                return f"zcpolicy {one.number.text}"
            case ast.Catalog():
                name = "" if one.server is None else f" as {words.pattern(one.server)}"
                return f"catalog {words.string(one.path)}{name}"
            case ast.Import():
                prefix = "" if one.prefix is None else f" as {one.prefix.text}"
                return f"import {words.string(one.path)}{prefix}"
            case ast.Risk():
                return self._tools(f"risk {one.risk} = ", one.tools)
            case ast.Group():
                return self._tools(f"group {one.name.text} = ", one.tools)
            case ast.Label():
                return group(["label ", self.names(one.names)])
            case ast.Scope():
                return group(["scope ", self.names(one.names)])
            case ast.Let():
                return group([f"let {one.name.text} = ", self.value(one.value)])
            case ast.AgentsAllowed():
                return "agents allowed"
            case _:
                assert_never(one)

    def _tools(self, head: str, tools: ast.ToolSet) -> Doc:
        shown, clauses = self.tools(tools)
        return group([head, shown, *(part for clause in clauses for part in clause)], indent=INDENT)

    def _tool(self, one: ast.Tool) -> Doc | Columns:
        parameters = self.bracketed(
            "()", one.span.end, one.parameters, lambda parameter: parameter.span.start, self._parameter
        )
        flags = [*(["runs tools"] if one.runs_tools else []), *([f"risk {one.risk}"] if one.risk else [])]
        return _columns(group([f"tool {words.tool(one.ref)}", parameters]), " ".join(flags))

    def _parameter(self, one: ast.Parameter) -> Doc:
        mark = "?" if one.optional else ""
        parts: list[Doc] = [f"{words.key(one.name, in_quotes=one.quoted)}{mark}: {words.kind(one.kind)}"]
        if one.default is not None:
            parts += [" = ", self.value(one.default)]
        return group(parts)

    def _settings(self, one: ast.Bundle | ast.Context | ast.Server) -> Doc:
        match one:
            case ast.Server():
                rows = [(one.span.start, "trust hints")] if one.trust_hints else []
                return self.settings(f"server {words.pattern(one.name)}", rows, _from(one.span, 0), "; ")
            case ast.Context():
                fields = [(each.span.start, f"{each.name.text}: {words.kind(each.kind)}") for each in one.fields]
                return self.settings("context", fields, one.span, ", ")
            case ast.Bundle():
                items = [Item(each.span, partial(self._bundle_item, each)) for each in one.items]
                return self.block(f"bundle {one.name.text}", items, one.span, "; ")

    def _bundle_item(self, one: ast.BundleItem) -> Doc:
        head = f"server {words.pattern(one.server)}"
        for word, names in (("only", one.only), ("except", one.excepted)):
            if names is not None:
                return group(
                    [f"{head} {word} ", self.pairs([(one.names_span.start, words.pattern(name)) for name in names])]
                )
        return head

    # --- tests ---

    def _step(self, one: ast.TestStep) -> Doc | Columns:
        match one:
            case ast.TestAgent():
                parents = "".join(f" as child of {parent.text}" for parent in one.parents)
                skills = f" with skill {', '.join(skill.text for skill in one.skills)}" if one.skills else ""
                return f"agent {one.agent.text}{parents}{skills}"
            case ast.Given():
                facts: list[tuple[int, Doc]] = [
                    (name.span.start, group([f"{name.text} = ", self.value(value)])) for name, value in one.facts
                ]
                marks: list[tuple[int, Doc]] = [(label.span.start, f"marked {label.text}") for label in one.marked]
                return group(["given ", self.pairs([*facts, *marks])])
            case ast.Wait():
                return f"wait {one.duration.text}"
            case ast.Call():
                return self._call(one)

    def _call(self, one: ast.Call) -> Doc | Columns:
        arguments = self.bracketed(
            "()", one.span.end, one.arguments, lambda argument: argument[1].span.start, self._argument
        )
        reason = "" if one.reason is None else f" {one.reason.text}"
        right: list[Doc] = [f"=> {one.effect}{reason}"]
        if one.because is not None:
            right += [Line(), f"because {words.string(one.because)}"]
        return _columns(group([f"call {words.tool(one.tool)}", arguments]), group(right, indent=INDENT))

    def _argument(self, argument: tuple[str, ast.Value]) -> Doc:
        name, value = argument
        return group([f"{words.key(name)}: ", self.value(value)])


def _columns(left: Doc, right: Doc) -> Doc | Columns:
    """Two parts of a statement, lined up if the first is short enough."""
    if right == "":
        return left
    text = flat(left)
    if text is not None and len(text) <= MAX_COLUMN:
        return Columns(text, right)
    return group([left, " ", right])


def _from(span: Span, place: int) -> Span:
    return Span(max(span.start, place), span.end)
