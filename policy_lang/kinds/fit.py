"""Which operators fit which kinds, and which operands an operator takes.

In: an operator, the kind on its left, the literal on its right. Out: what is wrong, in words, or nothing.
Patterns and prefixes are judged by the predicates that will read them.
"""

from decimal import Decimal
from typing import Literal

from policy_lang import ast
from policy_lang.kinds.declared import is_of_kind, show_kind
from policy_lang.kinds.operands import UNKNOWN_SHAPE
from policy_lang.values import encode
from zcpolicy.shapes import Schema

Fit = Literal["fits", "misfit", "unreviewed", "typed", "list"]
"""`unreviewed`: a typed test on text that nobody reviewed. `typed`: a text test on a path, url or command.
`list`: a test of one value on a list without `some` or `every`, or the other way round."""

TYPED: dict[ast.Operator, str] = {
    "under": "path", "glob": "path", "runs only": "shell", "runs any": "shell",
}  # fmt: skip
"""Operators that read a kind of text, and that kind."""

SCALARS = frozenset({"string", "path", "url", "shell", "command", "integer", "number", "boolean", "any"})
ORDERED = frozenset({"integer", "number", "string", "any"})
TEXT_TESTS: frozenset[ast.Operator] = frozenset({"like", "matches", "contains"})
HOST_TESTS: frozenset[ast.Operator] = frozenset({"in_domain", "in_net"})


def operator_fits(op: ast.Operator, schema: Schema, each: Literal["some", "every"] | None) -> Fit:
    """Whether an operator can read values of a kind; with a quantifier the elements of a list."""
    if each is not None:
        if schema["kind"] == "any":
            return "fits"
        if schema["kind"] != "list":
            return "list"
        return operator_fits(op, schema.get("item", UNKNOWN_SHAPE), None)
    kind = schema["kind"]
    if kind == "list" and op != "contains":
        return "list"
    if op in TYPED:
        return _typed(TYPED[op], schema)
    if op in TEXT_TESTS or op in HOST_TESTS:
        if kind in ("path", "url", "shell", "command"):
            return "typed"
        return "fits" if kind in ("string", "any") or (kind == "list" and op == "contains") else "misfit"
    if op in ("<", "<=", ">", ">="):
        return "fits" if kind in ORDERED else "misfit"
    return "fits" if kind in SCALARS else "misfit"


def _typed(wanted: str, schema: Schema) -> Fit:
    kind = schema["kind"]
    if kind == wanted or (wanted == "shell" and kind == "command"):
        return "fits"
    if schema.get("unreviewed") and kind in ("string", "any"):
        return "unreviewed"
    return "misfit"


def literal_fits(op: ast.Operator, schema: Schema, item: ast.Literal_) -> str | None:
    """Why a literal cannot stand on the right of a test of this kind, in words, or `None`."""
    if isinstance(item, ast.Null):
        return "null is absence: write `has …` or `not has …`"
    kind = schema["kind"]
    if op == "contains":
        whole: Schema = {"kind": "any"} if kind == "any" else {"kind": "string"}
        element = schema.get("item") if kind == "list" else whole
        return (
            None
            if element is None or is_of_kind(encode(item), element)
            else f"`contains` here takes a `{show_kind(element)}`"
        )
    if op in ("==", "!=", "in", "not in", "<", "<=", ">", ">="):
        if kind in ("path", "url") and isinstance(item, ast.String):
            return _normal_form(kind, item.value)
        return None if fits_number_loosely(item, schema) else f"`{show_kind(schema)}` is never compared with this value"
    return operand_text(op, item)


def fits_number_loosely(item: ast.Literal_, schema: Schema) -> bool:
    """Whether a literal is of the kind; whole numbers written with a point are whole."""
    if isinstance(item, ast.Number) and schema["kind"] == "integer" and isinstance(item.value, Decimal):
        return item.value == item.value.to_integral_value()
    return is_of_kind(encode(item), {**schema, "nullable": False})


def operand_text(op: ast.Operator, item: ast.Literal_, *, granting: bool = True) -> str | None:
    """Why a pattern, prefix, domain, network or command is not one, in words of its predicate, or `None`."""
    if not isinstance(item, ast.String):
        return f"`{op}` takes text"
    text = item.value
    match op:
        case "like":
            from zcpolicy.predicates.text import check_like

            return check_like(text)
        case "matches":
            from zcpolicy.predicates.regex import check_matches

            return check_matches(text)
        case "under":
            from zcpolicy.predicates.path import check_prefix

            return check_prefix(text)
        case "glob":
            from zcpolicy.predicates.path import check_glob

            return check_glob(text)
        case "in_domain":
            from zcpolicy.predicates.net import check_domain

            return check_domain(text)
        case "in_net":
            from zcpolicy.predicates.net import check_net

            return check_net(text)
        case "runs only" | "runs any":
            from zcpolicy.predicates.shell import check_pattern

            return check_pattern(text, granting=op == "runs only")
        case _:
            return None


def _normal_form(kind: str, text: str) -> str | None:
    if kind == "path":
        return None if text.startswith("/") else "a path here starts with `/`"
    from zcpolicy.predicates.url import parse_url

    return None if parse_url(text) is not None else "this is not a plain absolute url"
