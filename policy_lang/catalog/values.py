"""JSON values → the typed values of a program, and whether one fits a schema.

In: plain JSON values (numbers `int` or `Decimal`). Out: `zcpolicy.program.Value`s, their canonical text, a yes or no.
"""

import json
from decimal import Decimal
from typing import Final, cast

from zcpolicy.call import sound
from zcpolicy.program import ListOf, NumberValue, ObjectOf, Schema, Value

MAX_DIGITS: Final = 400
"""Digits of a number, before and after the point; a longer one is no value."""
MAX_VALUE_DEPTH: Final = 32
"""Levels of lists and objects in a value; a deeper one is no value."""


def typed(value: object, depth: int = 0) -> tuple[Value] | None:
    """The value as a program writes it, in a tuple (it may be None); None for what a call cannot hold.

    That is: numbers that are not finite or too long, lone surrogates, nesting beyond the bound.
    """
    if depth > MAX_VALUE_DEPTH:
        return None
    if value is None or isinstance(value, bool):
        return (value,)
    if isinstance(value, str):
        return (value,) if sound(value) else None
    if isinstance(value, int | Decimal):
        text = number_text(value)
        return None if text is None else (NumberValue(n=text),)
    if isinstance(value, list):
        items = [typed(item, depth + 1) for item in cast(list[object], value)]
        return None if None in items else (ListOf(list=[item[0] for item in items if item is not None]),)
    return _typed_object(value, depth)


def _typed_object(value: object, depth: int) -> tuple[Value] | None:
    if not isinstance(value, dict):
        return None
    members: dict[str, Value] = {}
    for name, part in cast(dict[str, object], value).items():
        made = typed(part, depth + 1)
        if made is None or not sound(name):
            return None
        members[name] = made[0]
    return (ObjectOf(object=members),)


def number_text(value: int | Decimal) -> str | None:
    """The shortest positional spelling of a number, or None beyond the bound: `1.50` → `1.5`, `1E+2` → `100`."""
    exact = Decimal(value)
    if not exact.is_finite():
        return None
    if not exact:
        return "0"
    exponent = exact.as_tuple().exponent
    if abs(exact.adjusted()) > MAX_DIGITS or (isinstance(exponent, int) and -exponent > MAX_DIGITS):
        return None
    text = format(exact, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def canonical(value: object) -> str:
    """The text by which two values or schemas are the same."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def fits(value: Value, schema: Schema) -> bool:
    """Whether a typed value is one that the schema accepts."""
    if value is None:
        return schema["kind"] == "null" or schema.get("nullable", False)
    options = schema.get("enum")
    if options is not None and canonical(value) not in {canonical(option) for option in options}:
        return False
    return _is_of_kind(value, schema)


def _is_of_kind(value: Value, schema: Schema) -> bool:
    match schema["kind"], value:
        case "any", _:
            return True
        case "boolean", bool():
            return True
        case (("string" | "path" | "url" | "shell" | "command"), str()):
            return True
        case "integer", {"n": str(text)}:
            return "." not in text
        case "number", {"n": str()}:
            return True
        case "list", {"list": list(items)}:
            item = schema.get("item")
            return item is None or all(fits(part, item) for part in cast(list[Value], items))
        case "object", {"object": dict(members)}:
            return _has_members(cast(dict[str, Value], members), schema)
        case _:
            return False


def _has_members(members: dict[str, Value], schema: Schema) -> bool:
    fields, extra = schema.get("fields", {}), schema.get("extra", "allow")
    if any(name not in members for name in schema.get("required", [])):
        return False
    for name, part in members.items():
        of = fields.get(name, extra)
        if of == "deny" or (isinstance(of, dict) and not fits(part, of)):
            return False
    return True
