"""How statements in bodies are printed.

In: nodes of `ast`, comments. Out: docs. The clauses of a statement stand on its line, or each on one of its own.
"""

from typing import Final, assert_never

from policy_lang import ast
from policy_lang.pretty import words
from policy_lang.pretty.blocks import Blocks
from policy_lang.pretty.doc import INDENT, WIDTH, Doc, Group, Line, Nest, Notes, group
from policy_lang.pretty.pieces import Clause

_ROOM: Final = WIDTH - 2 * INDENT
"""Columns of a statement in a body of a test or an agent, with some to spare."""


class Statements(Blocks):
    """Makes docs of statements."""

    def statement(self, one: ast.Statement) -> Doc:  # noqa: C901, PLR0912 -- one line per statement of the language
        match one:
            case ast.Rule():
                return self._rule(one)
            case ast.Only():
                return self._only(one)
            case ast.Autonomy():
                return self._autonomy(one)
            case ast.Limit():
                return self._limit(one)
            case ast.Connect():
                return group(["connect ", self._names_or_none(one.bundles)])
            case ast.Skills():
                return group(["skills ", self._names_or_none(one.names)])
            case ast.Memory():
                return self._memory(one)
            case ast.Delegate():
                independent = " independent" if one.independent else ""
                return self._clauses(["delegate to ", self.names(one.agents), independent], self._because(one.because))
            case ast.DelegateDepth():
                return f"delegate depth {one.depth.text}"
            case ast.DelegateNone():
                return "delegate none"
            case ast.Approval():
                return "approval none" if one.none else self._approval(one)
            case ast.Runtime():
                return self._runtime(one)
            case ast.Require():
                return self._require(one)
            case ast.OnDrift():
                return f"on drift {one.kind} {one.answer}" if one.kind else f"on drift {one.answer}"
            case ast.Use():
                return group(["use ", self.names(one.profiles)])
            case _:
                assert_never(one)

    # --- rules ---

    def _rule(self, rule: ast.Rule) -> Doc:
        head = f"mark {rule.label.text} on " if rule.label is not None else f"{rule.effect} "
        shown, clauses = self.tools(rule.tools)
        if rule.approval:
            clauses.append((Line(), "with approval"))
        for word, condition in (("when", rule.when), ("unless", rule.unless)):
            if condition is not None:
                line = self.woven.line(condition.span.start, continues=True)
                clauses.append((line, group([f"{word} ", self.condition(condition)])))
        clauses += self._because(rule.because)
        if rule.unclear_ask:
            clauses.append((Line(), "unclear ask"))
        return self._clauses([head, shown], clauses)

    def _only(self, one: ast.Only) -> Doc:
        if one.tools is None:
            return self._clauses(["only none"], self._because(one.because))
        shown, clauses = self.tools(one.tools)
        return self._clauses(["only ", shown], [*clauses, *self._because(one.because)])

    def _because(self, because: ast.String | None) -> list[Clause]:
        if because is None:
            return []
        return [(self.woven.line(because.span.start, continues=True), f"because {words.string(because)}")]

    def _clauses(self, head: list[Doc], clauses: list[Clause]) -> Doc:
        """A statement with its clauses; one that ends in a list may stay on the line up to the bracket."""
        if len(clauses) == 1 and clauses[0][0] == Line() and _opens_within([*head, " ", clauses[0][1]]):
            return group([*head, " ", clauses[0][1]])
        return group([*head, *(part for clause in clauses for part in clause)], indent=INDENT)

    def _names_or_none(self, names: tuple[ast.Name, ...]) -> Doc:
        return self.names(names) if names else "none"

    def _memory(self, one: ast.Memory) -> Doc:
        if one.read is None and one.write is None:
            return "memory none"
        parts: list[Doc] = ["memory"]
        for word, names in (("read", one.read), ("write", one.write)):
            if names is not None:
                parts += [f" {word} ", self.names(names)]
        return group(parts)

    # --- limits and history ---

    def _limit(self, one: ast.Limit) -> Doc:
        unit = f"sum {words.operand(one.argument)}" if one.argument is not None else one.unit
        parts: list[Doc] = [f"limit {one.amount.text}" if one.unit == "money" else f"limit {one.amount.text} {unit}"]
        clauses: list[Clause] = []
        if one.tools is not None:
            shown, clauses = self.tools(one.tools)
            parts += [" to ", shown]
        tail: list[Doc] = []
        if one.window is not None:
            zone = "" if one.window.zone is None else f" in {words.string(one.window.zone)}"
            tail.append(f" per {one.window.text}{zone}")
        if one.each is not None:
            pot = words.operand(one.each) if isinstance(one.each, ast.Operand) else one.each
            tail.append(f" for each {pot}")
        return group([*parts, *(part for clause in clauses for part in clause), *tail], indent=INDENT)

    def _require(self, one: ast.Require) -> Doc:
        parts: list[Doc] = ["require "]
        for tools, tail in ((one.earlier, " before "), (one.later, "")):
            shown, clauses = self.tools(tools)
            parts += [shown, *(part for clause in clauses for part in clause), tail]
        if one.within is not None:
            parts.append(f" within {one.within.text}")
        if one.same:
            parts += [" same ", self.listed(one.same, lambda operand: operand.span.start, words.operand)]
        if one.by_any_agent:
            parts.append(" by any agent")
        return self._clauses(parts, self._because(one.because))

    # --- blocks of settings ---

    def _autonomy(self, one: ast.Autonomy) -> Doc:
        if one.level is not None:
            return f"autonomy {one.level}"
        rows = [(one.span.start, f"{risk} {answer}") for risk, answer in one.table]
        return self.settings("autonomy", rows, one.span, "; ")

    def _approval(self, one: ast.Approval) -> Doc:
        rows: list[tuple[int, str]] = []
        if one.route is not None:
            rows.append((one.route.span.start, f"route {words.string(one.route)}"))
        if one.timeout is not None:
            rows.append((one.timeout.span.start, f"timeout {one.timeout.text}"))
        if isinstance(one.on_no_approver, ast.String):
            rows.append((one.on_no_approver.span.start, f"on_no_approver route {words.string(one.on_no_approver)}"))
        elif one.on_no_approver is not None:
            rows.append((one.span.start, f"on_no_approver {one.on_no_approver}"))
        if one.remember is not None:
            lasting = "" if one.remember_for is None else f" for {one.remember_for.text}"
            rows.append((one.span.start, f"remember {one.remember}{lasting}"))
        return self.settings("approval", rows, one.span, ", ")

    def _runtime(self, one: ast.Runtime) -> Doc:
        rows = [(item.span.start, f"{item.key} {_setting(item.value)}") for item in one.items]
        return self.settings("runtime", rows, one.span, ", ")


def _setting(value: ast.Boolean | ast.Number | ast.Duration) -> str:
    if isinstance(value, ast.Boolean):
        return "on" if value.value else "off"
    return value.text


def _opens_within(parts: list[Doc]) -> bool:
    """Whether the parts break only inside the brackets of a list, and what stands before it fits on a line."""
    room = _ROOM
    stack = list(reversed(parts))
    while stack and room >= 0:
        one = stack.pop()
        if isinstance(one, Nest):
            return True
        if isinstance(one, str):
            room -= len(one)
        elif isinstance(one, Group):
            stack.extend(reversed(one.parts))
            if not one.fill and any(isinstance(part, Line | Notes) for part in one.parts[:-2]):
                return False
        elif isinstance(one, Line):
            room -= len(one.flat)
        else:
            return False
    return False
