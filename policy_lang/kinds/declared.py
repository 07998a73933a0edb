"""The kinds of parameters, as `tool` and `context` statements write them.

In: `tool` statements. Out: schemas, and findings about defaults and parameter names.
"""

from policy_lang import ast, codes
from policy_lang.diagnostics import Diagnostic
from policy_lang.source import Source
from policy_lang.values import encode
from zcpolicy.shapes import Schema, Value

TEXTS = frozenset({"string", "path", "url", "shell", "command"})
"""The kinds whose values are text."""


def kind_schema(kind: ast.Kind) -> Schema:
    """`list<path>` and its like as a schema. What an object holds has no kind given by anybody: it is unreviewed."""
    if kind.name == "list":
        item: Schema = kind_schema(kind.item) if kind.item else {"kind": "any", "unreviewed": True}
        return {"kind": "list", "item": item}
    if kind.name == "object":
        return {"kind": "object", "fields": {}, "extra": "allow"}
    if kind.name == "any":
        return {"kind": "any", "unreviewed": True}
    return {"kind": kind.name}


def show_kind(schema: Schema) -> str:
    """A schema's kind as the language writes it."""
    if schema["kind"] == "list" and "item" in schema:
        return f"list<{show_kind(schema['item'])}>"
    return schema["kind"]


def declared_schema(node: ast.Tool, source: Source) -> tuple[Schema, tuple[Diagnostic, ...]]:
    """The schema of a tool's arguments, as its statement says it."""
    found: list[Diagnostic] = []
    fields: dict[str, Schema] = {}
    for parameter in node.parameters:
        schema = kind_schema(parameter.kind)
        if parameter.default is not None:
            default = encode(parameter.default)
            if is_of_kind(default, schema):
                schema["default"] = default
            else:
                message = f"the default of `{parameter.name}` is not of kind `{show_kind(schema)}`"
                found.append(Diagnostic(codes.WRONG_KIND, message, source, parameter.default.span))
        fields[parameter.name] = schema
    required = sorted({p.name for p in node.parameters if not p.optional and p.default is None})
    return {"kind": "object", "fields": fields, "required": required, "extra": "deny"}, tuple(found)


def is_of_kind(value: Value, schema: Schema) -> bool:
    """Whether a literal is of a schema's kind; of lists every item."""
    kind = schema["kind"]
    if value is None:
        return kind in ("any", "null") or schema.get("nullable", False)
    if kind == "any":
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, str):
        return kind in TEXTS
    if "n" in value:
        return kind == "number" or (kind == "integer" and "." not in str(value["n"]))
    if "list" in value:
        item = schema.get("item")
        return kind == "list" and (item is None or all(is_of_kind(element, item) for element in value["list"]))
    return kind == "object"
