"""What the left side of a test is: its kind on one tool.

In: operands and a tool's schema. Out: schemas; `None` where the tool has no such argument.
"""

from policy_lang import ast
from zcpolicy.shapes import Schema

UNKNOWN_SHAPE: Schema = {"kind": "any", "unreviewed": True}
"""What stands below an open object or a value of kind `any`: whatever was sent."""

URL_PARTS: dict[str, Schema] = {"host": {"kind": "string"}, "scheme": {"kind": "string"}, "port": {"kind": "integer"}}
"""The parts of a url, as the last name of an operand."""

TOOL_FIELDS: dict[str, Schema] = {
    "name": {"kind": "string"},
    "server": {"kind": "string"},
    "risk": {"kind": "string", "enum": [*ast.RISK_CLASSES]},
    "read_only": {"kind": "boolean"},
    "destructive": {"kind": "boolean"},
    "open_world": {"kind": "boolean"},
}
AGENT_FIELDS: dict[str, Schema] = {"name": {"kind": "string"}, "depth": {"kind": "integer"}}
BUILT_IN_FACTS: dict[str, Schema] = {"cwd": {"kind": "path"}, "interactive": {"kind": "boolean"}}


def argument(schema: Schema, path: tuple[str, ...]) -> Schema | None:
    """The schema of `args.a.b` on a tool with these arguments; a last `host` below a url is that part of it."""
    at = schema
    for number, name in enumerate(path):
        below = _member(at, name)
        if below is None and number == len(path) - 1:
            below = _url_part(at, name)
        if below is None:
            return None
        at = below
    return at


def is_below_a_scalar(schema: Schema, path: tuple[str, ...]) -> bool:
    """Whether a path that a tool does not have goes on below a value without members: that is of another kind."""
    at = schema
    for name in path:
        below = _member(at, name)
        if below is None:
            return at["kind"] != "object"
        at = below
    return False


def _member(at: Schema, name: str) -> Schema | None:
    if at["kind"] == "any":
        return UNKNOWN_SHAPE
    if at["kind"] != "object":
        return None
    known = at.get("fields", {}).get(name)
    if known is not None:
        return known
    extra = at.get("extra", "allow")
    return UNKNOWN_SHAPE if extra == "allow" else None if extra == "deny" else extra


def _url_part(at: Schema, name: str) -> Schema | None:
    if at["kind"] == "url":
        return URL_PARTS.get(name)
    if at["kind"] == "list" and at.get("item", {}).get("kind") == "url" and name in URL_PARTS:
        return {"kind": "list", "item": URL_PARTS[name]}
    return None


def fact(operand: ast.Operand, context: dict[str, Schema]) -> Schema | None:
    """The schema of an operand that does not look at arguments; `None` for an unknown field."""
    path = operand.path
    match operand.root:
        case "session":
            known = {**BUILT_IN_FACTS, **context}
            return argument({"kind": "object", "fields": known, "extra": "deny"}, path) if path else None
        case "tool":
            return TOOL_FIELDS.get(path[0]) if len(path) == 1 else None
        case "agent":
            return AGENT_FIELDS.get(path[0]) if len(path) == 1 else None
        case "paths":
            return {"kind": "list", "item": {"kind": "path"}} if not path else None
        case "urls":
            item: Schema | None = {"kind": "url"} if not path else URL_PARTS.get(path[0]) if len(path) == 1 else None
            return {"kind": "list", "item": item} if item is not None else None
        case "args":
            return None


def field_names(operand: ast.Operand, context: dict[str, Schema]) -> list[str]:
    """The names that may stand after an operand's root, for suggestions."""
    match operand.root:
        case "session":
            return [*BUILT_IN_FACTS, *context]
        case "tool":
            return list(TOOL_FIELDS)
        case "agent":
            return list(AGENT_FIELDS)
        case "urls":
            return list(URL_PARTS)
        case "paths" | "args":
            return []
