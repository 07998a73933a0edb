"""A tool's JSON Schema → the kinds that the language knows (`zcpolicy.program.Schema`).

In: the `inputSchema` of one tool, as plain JSON values (numbers `int` or `Decimal`, as `catalog.mcp` reads them).
Out: a `Schema` of kind `object`. Never an error: what cannot be mapped is kind `any`, which every rule treats as
unreviewed. Enforced on calls are type, required, enum, const and additionalProperties; pattern, format and bounds of
numbers are not. `format` gives no kind, or a server could hide a path by calling it something else.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import unquote

from policy_lang.catalog.values import canonical, fits, typed
from zcpolicy.call import sound
from zcpolicy.program import Schema, Value

MAX_DEPTH: Final = 24
"""Levels of nested schemas that are read; what lies deeper is `any`."""
MAX_NODES: Final = 20_000
"""Schemas read for one tool, references expanded; what comes after them is `any`."""
MAX_SAME_REFERENCE: Final = 2
"""How often one `$ref` is entered within itself; the next time it is `any`."""
MAX_ENUM: Final = 10_000
"""Values of an `enum`; a longer one is not enforced."""

_COMBINED = ("anyOf", "oneOf", "allOf")
_ADDS_MEMBERS = (*_COMBINED, "$ref", "properties", "patternProperties", "dependentSchemas", "if", "then", "else")
_SCALARS: Final[Mapping[str, Schema]] = {
    "string": {"kind": "string", "unreviewed": True},
    "integer": {"kind": "integer"},
    "number": {"kind": "number"},
    "boolean": {"kind": "boolean"},
    "null": {"kind": "null"},
}


def schema_to_kinds(json_schema: object) -> Schema:
    """The kinds of a tool's arguments: always an object, closed unless `additionalProperties` opens it.

    Where the top level is not readable as an object (a union, an unknown reference) every member is accepted and
    unreviewed. Total: any value gives a schema, in time linear in the schema up to the bounds above.
    """
    top = _Reader(json_schema).object_at_top()
    return {"kind": "object", "fields": {}, "required": [], "extra": "allow"} if top is None else top


def _any() -> Schema:
    return {"kind": "any", "unreviewed": True, "nullable": True}


class _Reader:
    """One pass over one schema; holds the document for `$ref` and counts what was read."""

    def __init__(self, document: object) -> None:
        self._document = document
        self._left = MAX_NODES
        self._entered: dict[str, int] = {}

    def object_at_top(self) -> Schema | None:
        node = self._document
        if not isinstance(node, dict):
            return None
        node = cast(dict[str, Any], node)
        if _says_object(node):
            return self._object(node, 0, closed=True)
        if not any(key in node for key in (*_COMBINED, "$ref", "type", "enum", "const")):
            return self._object(node, 0, closed=True)  # `{}`: no members are named, none is accepted
        read = self.schema(node, 0)
        return read if read["kind"] == "object" and not read.get("nullable") else None

    def schema(self, node: object, depth: int) -> Schema:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0 or not isinstance(node, dict):
            return _any()
        node = cast(dict[str, Any], node)
        if "const" in node:
            return self._enumerated(node, [node["const"]], depth)
        options = node.get("enum")
        if isinstance(options, list) and options:
            return self._enumerated(node, cast(list[object], options), depth)
        return self._plain(node, depth)

    def _plain(self, node: dict[str, Any], depth: int) -> Schema:
        """A schema without its `enum` and `const`."""
        kinds = _types(node)
        if len(kinds) == 1:
            return self._of_type(node, kinds[0], depth)
        if kinds:
            return _union(self._of_type(node, kind, depth) for kind in kinds)
        if "$ref" in node:
            return self._reference(node["$ref"], depth)
        return self._combined(node, depth)

    def _combined(self, node: dict[str, Any], depth: int) -> Schema:
        for key in ("anyOf", "oneOf"):
            branches = node.get(key)
            if isinstance(branches, list) and branches:
                return _union(self.schema(branch, depth + 1) for branch in cast(list[object], branches))
        every = node.get("allOf")
        if isinstance(every, list) and len(cast(list[object], every)) == 1:
            return self.schema(cast(list[object], every)[0], depth + 1)
        return _any()

    def _of_type(self, node: dict[str, Any], kind: str, depth: int) -> Schema:
        if kind == "object":
            return self._object(node, depth, closed=False)
        if kind == "array":
            single = "prefixItems" not in node and isinstance(node.get("items"), dict)
            return {"kind": "list", "item": self.schema(node["items"], depth + 1) if single else _any()}
        scalar = _SCALARS.get(kind)
        return _any() if scalar is None else scalar.copy()

    def _object(self, node: dict[str, Any], depth: int, *, closed: bool) -> Schema:
        fields: dict[str, Schema] = {}
        required = _names(node.get("required"))
        properties = node.get("properties")
        for name, part in cast(dict[str, object], properties if isinstance(properties, dict) else {}).items():
            if not sound(name):
                continue  # no well-formed call can name it
            fields[name] = self._field(part, depth + 1)
            if "default" in fields[name]:
                required.discard(name)  # never missing: the default stands for it
        if node.get("additionalProperties") is not False:
            for name in required - fields.keys():
                fields[name] = _any()  # named, though not described
        made: Schema = {"kind": "object", "fields": fields, "required": sorted(required)}
        made["extra"] = self._extra(node, depth, closed=closed)
        return made

    def _field(self, node: object, depth: int) -> Schema:
        read = self.schema(node, depth)
        if isinstance(node, dict) and "default" in node:
            default = typed(cast(dict[str, object], node)["default"])
            if default is not None and fits(default[0], read):
                read["default"] = default[0]
        return read

    def _extra(self, node: dict[str, Any], depth: int, *, closed: bool) -> Any:
        said = node.get("additionalProperties")
        if said is False:
            return "allow" if "patternProperties" in node else "deny"
        if isinstance(said, dict) and said:
            return self.schema(cast(object, said), depth + 1)
        if said is True or said == {}:
            return "allow"
        return "deny" if closed and not _may_add_members(node) else "allow"

    def _enumerated(self, node: dict[str, Any], options: list[object], depth: int) -> Schema:
        """The kind of the node, else of the values; `enum` holds the values that fit it."""
        bare = {key: value for key, value in node.items() if key not in ("enum", "const")}
        values = _distinct(options)
        read = (
            self._plain(bare, depth) if any(key in bare for key in ("type", "$ref", *_COMBINED)) else _kind_of(values)
        )
        if len(values) > MAX_ENUM or (len(values) < len(options) and not values):
            return read
        kept = [value for value in values if fits(value, read)]
        read["enum"] = kept or values  # none fits: nothing is accepted, as the server says
        if None in kept:
            read["nullable"] = True
            read["enum"] = [value for value in kept if value is not None] or kept
        elif read["kind"] != "null":
            read.pop("nullable", None)
        return read

    def _reference(self, pointer: object, depth: int) -> Schema:
        if not isinstance(pointer, str) or self._entered.get(pointer, 0) >= MAX_SAME_REFERENCE:
            return _any()
        target = _at(self._document, pointer)
        if target is None:
            return _any()
        self._entered[pointer] = self._entered.get(pointer, 0) + 1
        try:
            return self.schema(target, depth + 1)
        finally:
            self._entered[pointer] -= 1


def _says_object(node: Mapping[str, Any]) -> bool:
    kinds = _types(node)
    return kinds == ["object"] and ("properties" in node or "type" in node)


def _types(node: Mapping[str, Any]) -> list[str]:
    """The `type`s named, each once; where none is, the one that `properties` or `items` imply."""
    said = node.get("type")
    if isinstance(said, str):
        return [said]
    if isinstance(said, list):
        return list(dict.fromkeys(kind for kind in cast(list[object], said) if isinstance(kind, str)))
    if isinstance(node.get("properties"), dict):
        return ["object"]
    return ["array"] if isinstance(node.get("items"), dict) else []


def _may_add_members(node: Mapping[str, Any]) -> bool:
    """Whether a schema beside `properties` may name further members, so that a closed reading would be too strict."""
    if "patternProperties" in node or "dependentSchemas" in node or "$ref" in node:
        return True
    for key in (*_COMBINED, "if", "then", "else"):
        part = node.get(key)
        branches = cast(list[object], part) if isinstance(part, list) else [part]
        if any(isinstance(branch, dict) and any(word in branch for word in _ADDS_MEMBERS) for branch in branches):
            return True
    return False


def _union(branches: Iterable[Schema]) -> Schema:
    """One schema for any of them: null makes it nullable; equal kinds join; anything else is `any`."""
    read = list(branches)
    nullable = any(branch["kind"] == "null" or branch.get("nullable") for branch in read)
    distinct: dict[str, Schema] = {}
    for branch in read:
        if branch["kind"] != "null":
            bare = branch.copy()
            bare.pop("nullable", None)
            distinct.setdefault(canonical(bare), bare)
    if not distinct:
        return {"kind": "null"}
    made = _joined(list(distinct.values()))
    if nullable:
        made["nullable"] = True
    return made


def _joined(branches: list[Schema]) -> Schema:
    """Of several kinds the common one: scalars of one kind, integers and numbers; their enums together."""
    if len(branches) == 1:
        return branches[0]
    kinds = {branch["kind"] for branch in branches}
    if kinds == {"integer", "number"}:
        kinds = {"number"}
    if len(kinds) != 1 or not kinds <= set(_SCALARS):
        return {"kind": "any", "unreviewed": True}
    made = _SCALARS[kinds.pop()].copy()
    if all("enum" in branch for branch in branches):
        together = {canonical(value): value for branch in branches for value in branch.get("enum", [])}
        made["enum"] = [together[key] for key in sorted(together)]
    return made


def _distinct(options: list[object]) -> list[Value]:
    """The values that a call can have, each once, in canonical order."""
    found: dict[str, Value] = {}
    for option in options[: MAX_ENUM + 1]:
        made = typed(option)
        if made is not None:
            found.setdefault(canonical(made[0]), made[0])
    return [found[key] for key in sorted(found)]


def _kind_of(values: list[Value]) -> Schema:
    return _union([_kind_of_one(value) for value in values]) if values else _any()


def _kind_of_one(value: Value) -> Schema:
    match value:
        case None:
            return {"kind": "null"}
        case bool():
            return {"kind": "boolean"}
        case str():
            return {"kind": "string", "unreviewed": True}
        case {"n": str()}:
            return {"kind": "number"}
        case _:
            return {"kind": "any", "unreviewed": True}


def _names(said: object) -> set[str]:
    return (
        {name for name in cast(list[object], said) if isinstance(name, str) and sound(name)}
        if isinstance(said, list)
        else set()
    )


def _at(document: object, pointer: str) -> object | None:
    """What a local JSON pointer (`#/$defs/x`) leads to, or None."""
    if pointer == "#":
        return document
    if not pointer.startswith("#/"):
        return None
    node = document
    for step in _steps(pointer):
        if isinstance(node, dict):
            node = cast(dict[str, object], node).get(step)
        elif isinstance(node, list) and step.isascii() and step.isdecimal() and len(step) < 6:
            items = cast(list[object], node)
            node = items[int(step)] if int(step) < len(items) else None
        else:
            return None
    return node


def _steps(pointer: str) -> Iterator[str]:
    for step in pointer[2:].split("/"):
        yield unquote(step).replace("~1", "/").replace("~0", "~")
