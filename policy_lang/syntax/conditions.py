"""What the rules for tools, names, conditions and values make.

In: the values of a rule's parts, and the place of their text. Out: nodes of `ast`.
A method per rule or alias of the grammar's sections on tools, conditions and values.
"""

from typing import Any, Final

from policy_lang import ast, codes
from policy_lang.source import Source, Span
from policy_lang.syntax.layout import MAX_NESTING
from policy_lang.syntax.tokens import Parts, Tokens

MAX_ITEMS: Final = 100_000
"""Items of one list."""


class Conditions(Tokens):
    """Lists and optional parts, tool sets, names, conditions, values."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._nested: tuple[object, int] = (None, 0)

    # --- lists and optional parts ---

    def nothing_yet(self, parts: Parts, start: int, end: int) -> Any:
        return []

    def first(self, parts: Parts, start: int, end: int) -> Any:
        return parts[0]

    as_before = first

    def second(self, parts: Parts, start: int, end: int) -> Any:
        return parts[1]

    inside = second

    def third(self, parts: Parts, start: int, end: int) -> Any:
        return parts[2]

    def with_item(self, parts: Parts, start: int, end: int) -> Any:
        parts[0].append(parts[1])
        return parts[0]

    def one(self, parts: Parts, start: int, end: int) -> Any:
        return [parts[0]]

    def two(self, parts: Parts, start: int, end: int) -> Any:
        return [parts[0], parts[2]]

    def more(self, parts: Parts, start: int, end: int) -> Any:
        items: Parts = parts[0]
        items.append(parts[2])
        if len(items) == MAX_ITEMS + 1:
            self.report(codes.TOO_LARGE, f"a list has at most {MAX_ITEMS} items", Span(start, start + 1))
        return items

    def absent(self, parts: Parts, start: int, end: int) -> None:
        return None

    def yes(self, parts: Parts, start: int, end: int) -> bool:
        return True

    def no(self, parts: Parts, start: int, end: int) -> bool:
        return False

    def word(self, parts: Parts, start: int, end: int) -> str:
        return " ".join(parts)

    operator = quantifier = risk_class = answer = level = drift = kind_name = word

    # --- tools and names ---

    def tools(self, parts: Parts, start: int, end: int) -> ast.ToolSet:
        return ast.ToolSet(tuple(parts[0]), (), Span(start, end))

    def tools_except(self, parts: Parts, start: int, end: int) -> ast.ToolSet:
        return ast.ToolSet(tuple(parts[0]), tuple(parts[2]), Span(start, end))

    def any_tool(self, parts: Parts, start: int, end: int) -> ast.AnyTool:
        return ast.AnyTool(Span(start, end))

    tool_ref = group_ref = name = operand = string = raw_string = first

    # --- conditions ---

    def or_(self, parts: Parts, start: int, end: int) -> ast.Or:
        return ast.Or(tuple(parts[0]), Span(start, end))

    def and_(self, parts: Parts, start: int, end: int) -> ast.And:
        return ast.And(tuple(parts[0]), Span(start, end))

    def not_(self, parts: Parts, start: int, end: int) -> ast.Condition:
        made = ast.Not(parts[1], Span(start, end))
        inner: ast.Condition = parts[1]
        return made if self.nested(inner, made) else inner

    def nested(self, inner: object, outer: ast.Not | ast.Kind) -> bool:
        """Whether `outer`, made around `inner` without brackets, is within the bound of nesting; else reports it once."""
        depth = self._nested[1] + 1 if inner is self._nested[0] else 1
        self._nested = (outer, depth)
        if depth <= MAX_NESTING:
            return True
        self._nested = (inner, depth)
        if depth == MAX_NESTING + 1:
            start = outer.span.start
            self.report(codes.TOO_DEEP, f"nested deeper than {MAX_NESTING}", Span(start, start + 1))
        return False

    def bare(self, parts: Parts, start: int, end: int) -> ast.Bare:
        return ast.Bare(parts[0], Span(start, end))

    def comparison(self, parts: Parts, start: int, end: int) -> ast.Test:
        self.not_empty(parts[2])
        return ast.Test(parts[0], parts[1], parts[2], None, Span(start, end))

    def quantified(self, parts: Parts, start: int, end: int) -> ast.Test:
        self.not_empty(parts[3])
        return ast.Test(parts[1], parts[2], parts[3], parts[0], Span(start, end))

    def not_empty(self, value: ast.Right) -> None:
        """Report an empty list where a list means any of its items."""
        if isinstance(value, ast.ListValue) and not value.items:
            self.report(codes.EMPTY_LIST, "the list holds nothing", value.span, "name an item, or leave the test out")

    def has(self, parts: Parts, start: int, end: int) -> ast.Has:
        return ast.Has(parts[1], Span(start, end))

    def marked(self, parts: Parts, start: int, end: int) -> ast.Marked:
        return ast.Marked(parts[1], Span(start, end))

    def let_ref(self, parts: Parts, start: int, end: int) -> ast.LetRef:
        return ast.LetRef(parts[0].text, Span(start, end))

    # --- values ---

    def number(self, parts: Parts, start: int, end: int) -> ast.Number:
        made: ast.Number = parts[0]
        return made

    def true(self, parts: Parts, start: int, end: int) -> ast.Boolean:
        return ast.Boolean(True, Span(start, end))

    def false(self, parts: Parts, start: int, end: int) -> ast.Boolean:
        return ast.Boolean(False, Span(start, end))

    def null(self, parts: Parts, start: int, end: int) -> ast.Null:
        return ast.Null(Span(start, end))

    def empty_list(self, parts: Parts, start: int, end: int) -> ast.ListValue:
        return ast.ListValue((), Span(start, end))

    def list_(self, parts: Parts, start: int, end: int) -> ast.ListValue:
        return ast.ListValue(tuple(parts[1]), Span(start, end))

    def empty_object(self, parts: Parts, start: int, end: int) -> ast.ObjectValue:
        return ast.ObjectValue((), Span(start, end))

    def object_(self, parts: Parts, start: int, end: int) -> ast.ObjectValue:
        return ast.ObjectValue(tuple(parts[1]), Span(start, end))

    def pair(self, parts: Parts, start: int, end: int) -> tuple[ast.String, ast.Value]:
        return parts[0], parts[2]
