"""How lists, tool sets, values and conditions are printed.

In: nodes of `ast`, comments. Out: docs. A list in brackets fills its lines; `and` and `or` begin theirs.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from policy_lang import ast
from policy_lang.pretty import words
from policy_lang.pretty.doc import INDENT, Broken, Doc, Group, Line, Nest, Notes, group
from policy_lang.pretty.woven import Woven

_Item = TypeVar("_Item")
Clause = tuple[Line | Notes, Doc]
"""Where the statement may break, and what follows."""


class Pieces:
    """Makes docs of the parts of statements, in the order of the text: comments are taken as they are passed."""

    def __init__(self, woven: Woven) -> None:
        self.woven = woven

    # --- lists ---

    def listed(
        self, items: Sequence[_Item], place: Callable[[_Item], int], show: Callable[[_Item], Doc], *, indent: int = INDENT
    ) -> Group:  # fmt: skip
        """Items with commas; as many on a line as fit."""
        parts: list[Doc] = []
        for number, item in enumerate(items):
            if number:
                parts.append(self.woven.line(place(item)))
            shown = show(item)
            parts.append(group([shown, ","]) if number < len(items) - 1 else shown)
        return group(parts or [""], indent=indent, fill=True)

    def bracketed(
        self, brackets: str, end: int, items: Sequence[_Item], place: Callable[[_Item], int], show: Callable[[_Item], Doc]
    ) -> Doc:  # fmt: skip
        """Items in brackets; broken, each bracket ends a line and a comma follows the last item."""
        if not items:
            return brackets
        first = self.woven.line(place(items[0]), "")
        listed = self.listed(items, place, show, indent=0)
        inner: list[Doc] = [first, listed, Broken(",")]
        if last := self.woven.before(end):
            inner.append(Notes(tuple(map(self.woven.note, last)), last=True))
        return group([brackets[0], Nest(tuple(inner)), Line(""), brackets[1]])

    def pairs(self, pairs: Sequence[tuple[int, Doc]]) -> Group:
        """Docs with their places, with commas."""
        return self.listed(pairs, lambda pair: pair[0], lambda pair: pair[1])

    def names(self, names: Sequence[ast.Name]) -> Doc:
        return self.listed(names, lambda one: one.span.start, lambda one: one.text)

    def items(self, items: Sequence[ast.ToolItem]) -> Doc:
        return self.listed(items, lambda one: one.span.start, words.tool)

    def tools(self, tools: ast.ToolSet) -> tuple[Doc, list[Clause]]:
        """The tools, and the clause `except …` where there is one."""
        shown = self.items(tools.items)
        if not tools.excepted:
            return shown, []
        line = self.woven.line(tools.excepted[0].span.start, continues=True)
        return shown, [(line, group(["except ", self.items(tools.excepted)]))]

    # --- values ---

    def value(self, value: ast.Value | ast.Right) -> Doc:
        match value:
            case ast.ListValue():
                return self.bracketed("[]", value.span.end, value.items, lambda one: one.span.start, self.value)
            case ast.ObjectValue():
                return self.bracketed("{}", value.span.end, value.items, lambda one: one[0].span.start, self._pair)
            case _:
                return words.scalar(value)

    def _pair(self, pair: tuple[ast.String, ast.Value]) -> Doc:
        return group([words.string(pair[0]), ": ", self.value(pair[1])])

    # --- conditions ---

    def condition(self, condition: ast.Condition) -> Doc:
        """A condition; `and` inside `or` stands in brackets, so that nobody has to know which binds tighter."""
        match condition:
            case ast.Or():
                return self._joined("or", condition.items)
            case ast.And():
                return self._joined("and", condition.items)
            case ast.Not():
                return group(["not ", self._inside(condition.inner)])
            case ast.Bare():
                return words.operand(condition.operand)
            case ast.Has():
                return f"has {words.operand(condition.operand)}"
            case ast.Marked():
                return f"marked {condition.label.text}"
            case ast.Test():
                each = f"{condition.each} " if condition.each else ""
                return group([f"{each}{words.operand(condition.left)} {condition.op} ", self.value(condition.right)])

    def _joined(self, word: str, items: Sequence[ast.Condition]) -> Doc:
        parts: list[Doc] = [self._inside(items[0])]
        for item in items[1:]:
            parts += [self.woven.line(item.span.start, continues=True), f"{word} ", self._inside(item)]
        return group(parts, indent=INDENT)

    def _inside(self, condition: ast.Condition) -> Doc:
        shown = self.condition(condition)
        return group(["(", shown, ")"]) if isinstance(condition, ast.And | ast.Or) else shown
