"""Literals, kinds and names of the tree as plain values.

In: pieces of the tree. Out: Python values, schemas, yes or no.
"""

from decimal import Decimal
from typing import assert_never, cast

from policy_lang import ast
from zcpolicy.program import Schema, Value

ToolName = tuple[str | None, str]
"""(server, or None for the host's own; name)."""

Plain = str | bool | int | Decimal | None | list["Plain"] | dict[str, "Plain"]
"""A JSON value as Python has it."""

CLASSES: tuple[ast.RiskClass, ...] = ("read", "low", "medium", "high")
"""Ascending."""


def fits(pattern: ast.Pattern, text: str) -> bool:
    """`*` is any run of characters, also the empty one; in quotes it is itself."""
    if not pattern.is_pattern:
        return pattern.text == text
    return _glob(pattern.text, text)


def _glob(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_glob(pattern[1:], text[start:]) for start in range(len(text) + 1))
    return bool(text) and text[0] == pattern[0] and _glob(pattern[1:], text[1:])


def tool_name(ref: ast.ToolRef) -> ToolName:
    """The identity that an exact reference names."""
    return (ref.server.text if ref.server else None, ref.name.text)


def plain(value: ast.Value) -> Plain:
    """A literal as Python has it."""
    match value:
        case ast.String() | ast.Number() | ast.Boolean():
            return value.value
        case ast.Null():
            return None
        case ast.ListValue():
            return [plain(item) for item in value.items]
        case ast.ObjectValue():
            return {name.value: plain(item) for name, item in value.items}
        case _:
            assert_never(value)


def encoded(value: Plain) -> Value:
    """A value as schemas write it."""
    if isinstance(value, list):
        return {"list": [encoded(item) for item in value]}
    if isinstance(value, dict):
        return {"object": {name: encoded(item) for name, item in value.items()}}
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return {"n": str(value)}


def decoded(value: Value) -> Plain:
    """The way back."""
    if value is None or isinstance(value, str | bool):
        return value
    match cast(dict[str, object], value):
        case {"n": str(number)}:
            return Decimal(number)
        case made if "list" in made:
            return [decoded(item) for item in cast(list[Value], made["list"])]
        case made:
            return {name: decoded(item) for name, item in cast(dict[str, Value], made["object"]).items()}


def kind_schema(kind: ast.Kind) -> Schema:
    """A kind as written; what an object or `any` holds has been reviewed by nobody."""
    match kind.name:
        case "list":
            return {
                "kind": "list",
                "item": kind_schema(kind.item) if kind.item else {"kind": "any", "unreviewed": True},
            }
        case "object":
            return {"kind": "object", "fields": {}, "extra": "allow"}
        case "any":
            return {"kind": "any", "unreviewed": True}
        case _:
            return {"kind": kind.name}


def refined(known: Schema, statement: ast.Tool, *, listed: bool) -> Schema:
    """What a `tool` statement makes of a schema: its kinds and defaults; the rest stays as catalogued."""
    fields = dict(known.get("fields", {}))
    required = set(known.get("required", []))
    for parameter in statement.parameters:
        kind = kind_schema(parameter.kind)
        field: Schema = merged(fields[parameter.name], kind) if listed and parameter.name in fields else kind
        if parameter.default is not None:
            field["default"] = encoded(plain(parameter.default))
        fields[parameter.name] = field
        if not parameter.optional and "default" not in field:
            required.add(parameter.name)
    return {**known, "fields": fields, "required": sorted(required)}


def merged(listed: Schema, kind: Schema) -> Schema:
    """A catalogued kind, refined: reviewed from now on, its enum, null and default kept."""
    if listed["kind"] == "object" == kind["kind"]:
        return {**listed}
    field: Schema = {**listed, **kind}
    field.pop("unreviewed", None)
    if kind["kind"] == "any":
        field["unreviewed"] = True
    if "item" in kind and "item" in listed:
        field["item"] = merged(listed["item"], kind["item"])
    return field


def highest(classes: list[ast.RiskClass]) -> ast.RiskClass | None:
    """The highest of some classes, if any."""
    for one in reversed(CLASSES):
        if one in classes:
            return one
    return None


def hinted_class(hints: dict[str, bool]) -> ast.RiskClass:
    """The class that a trusted server's hints give; without any: high."""
    if hints.get("destructiveHint") is True:
        return "high"
    if hints.get("readOnlyHint") is True:
        return "read"
    return "medium" if hints.get("destructiveHint") is False else "high"
