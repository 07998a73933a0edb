"""The arguments of one call: whether they are well-formed, what an operand finds in them, which paths and URLs they hold.

In: what the model sent, and the schema of the tool. Out: `Judged`, or None for malformed. SPEC 6 and 7.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, cast

from tests.reference.values import Plain, decoded
from tests.reference.written import Known
from zcpolicy.predicates import shell, url
from zcpolicy.predicates.refs import PathRef, UrlRef
from zcpolicy.program import Schema

TEXTS: Final = frozenset({"string", "path", "url", "shell", "command"})
OPEN: Final[Schema] = {"kind": "any", "unreviewed": True}
"""What nobody has described."""

Missing = Literal["absent", "undeclared", "unfit"]
"""Why an operand finds no value: not sent, not a parameter of this tool, below something that is no object."""

URL_PARTS: Final = ("host", "scheme", "port")

BEGINS_LIKE_URL: Final = re.compile(r"(http|https|ws|wss|ftp|file):|[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """A value, the schema it stands under, and the part of a url that is meant (`args.url.host`)."""

    value: Plain
    schema: Schema
    part: str | None = None


@dataclass(frozen=True)
class Judged:
    """A well-formed call of a known tool; `arguments` hold the defaults that the host writes."""

    tool: Known
    arguments: dict[str, Plain]


def judge(tool: Known, sent: object, *, supplies_defaults: bool) -> Judged | None:
    """The call as it is judged, or None where it is malformed."""
    value = exact(sent)
    if not isinstance(value, tuple) or not isinstance(value[0], dict):
        return None
    arguments = value[0]
    if supplies_defaults:
        arguments = cast(dict[str, Plain], _filled(arguments, tool.schema))
    return Judged(tool, arguments) if is_of(arguments, tool.schema) else None


def exact(value: object) -> tuple[Plain] | None:
    """JSON values with exact numbers, in a tuple; None for what no call can hold."""
    if value is None or isinstance(value, bool | int):
        return (value,)
    if isinstance(value, float):
        return (Decimal(repr(value)),) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return (value,) if value.is_finite() else None
    if isinstance(value, str):
        return (value,) if not any(0xD800 <= ord(one) <= 0xDFFF for one in value) else None
    if isinstance(value, list):
        items = [exact(item) for item in cast(list[object], value)]
        return ([item[0] for item in items if item],) if None not in items else None
    if not isinstance(value, dict):
        return None
    members = cast(dict[object, object], value)
    made: dict[str, Plain] = {}
    for name, item in members.items():
        one = exact(item)
        if not isinstance(name, str) or exact(name) is None or one is None:
            return None
        made[name] = one[0]
    return (made,)


def _filled(value: Plain, schema: Schema) -> Plain:
    """With the defaults of members that were not sent, at any depth."""
    if isinstance(value, list) and "item" in schema:
        return [_filled(item, schema["item"]) for item in value]
    if not isinstance(value, dict):
        return value
    fields = schema.get("fields", {})
    made = {name: _filled(item, fields[name]) if name in fields else item for name, item in value.items()}
    for name, field in fields.items():
        if name not in value and "default" in field:
            made[name] = decoded(field["default"])
    return made


def is_of(value: Plain, schema: Schema) -> bool:
    """Whether a value is what the schema says."""
    if value is None:
        return schema["kind"] in ("null", "any") or schema.get("nullable", False)
    if "enum" in schema and not any(same(value, decoded(option)) for option in schema["enum"]):
        return False
    match schema["kind"]:
        case "any":
            return True
        case "null":
            return False
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return is_number(value) and value == int(cast(Decimal, value))
        case "number":
            return is_number(value)
        case "list":
            return isinstance(value, list) and all(is_of(item, schema.get("item", OPEN)) for item in value)
        case "object":
            return isinstance(value, dict) and _has_members(value, schema)
        case _:
            return isinstance(value, str)


def _has_members(value: dict[str, Plain], schema: Schema) -> bool:
    if any(name not in value for name in schema.get("required", [])):
        return False
    for name, item in value.items():
        under = member(schema, name)
        if under is None or not is_of(item, under):
            return False
    return True


def member(schema: Schema, name: str) -> Schema | None:
    """The schema of an object's member; None where the object has none of that name."""
    if schema["kind"] == "any":
        return OPEN
    fields = schema.get("fields", {})
    if name in fields:
        return fields[name]
    extra = schema.get("extra", "allow")
    if isinstance(extra, str):
        return OPEN if extra == "allow" else None
    return extra


def is_number(value: Plain) -> bool:
    """A boolean is no number."""
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def same(a: Plain, b: Plain) -> bool:
    """Exact equality of JSON values: `1` is `1.0`, and nothing is equal to a value of another type."""
    if is_number(a) and is_number(b):
        return a == b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(one, other) for one, other in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    return type(a) is type(b) and a == b


# --- operands ------------------------------------------------------------------------------------------


def look(call: Judged, path: tuple[str, ...]) -> Found | Missing:
    """What `args.PATH` finds. `null` is absence; a last `host`, `scheme` or `port` of a url is a part of it."""
    schema, value = call.tool.schema, cast(Plain, call.arguments)
    for depth, name in enumerate(path):
        if depth == len(path) - 1 and depth > 0 and name in URL_PARTS and _is_url(schema):
            return Found(value, schema, name) if value is not None else "absent"
        if schema["kind"] not in ("object", "any"):
            return "unfit"
        under = member(schema, name)
        sent = value.get(name) if isinstance(value, dict) else None
        if under is None or (sent is None and _names_others(schema, name)):
            return "undeclared"
        schema, value = under, sent
    return Found(value, schema) if value is not None else "absent"


def _names_others(schema: Schema, name: str) -> bool:
    """Whether an object that takes any further member names some, and this is none of them: it is not declared.

    An object that names none has a schema that nobody knows.
    """
    fields = schema.get("fields", {})
    return schema.get("extra") == "allow" and bool(fields) and name not in fields


def _is_url(schema: Schema) -> bool:
    return schema["kind"] == "url" or (schema["kind"] == "list" and schema.get("item", OPEN)["kind"] == "url")


def has(call: Judged, path: tuple[str, ...]) -> bool:
    """Whether the call has a value there that is not null."""
    value: Plain = call.arguments
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value is not None


# --- paths and urls ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mentions:
    """The paths or urls of a call.

    `none`: the tool has no parameter that could hold one. `bounded`: there may be more than these (the call has shell
    text or unreviewed strings). `unsent`: an argument that might hold one was not sent. `unsupplied`: one has a default that the host does not
    write, so that the tool will use a value that is not among these.
    """

    refs: tuple[PathRef | UrlRef, ...]
    none: bool
    bounded: bool
    unsent: bool
    unsupplied: bool


def paths(call: Judged) -> Mentions:
    """Every path that the call mentions."""
    found = list(_mentioned(call.arguments, call.tool.schema))
    refs = [ref for ref in found if isinstance(ref, PathRef)]
    for ref in found:
        if isinstance(ref, UrlRef):
            refs += _of_file_url(ref)
    return _mentions(call, tuple(refs), "path")


def urls(call: Judged) -> Mentions:
    """Every url that the call mentions."""
    refs = [ref for ref in _mentioned(call.arguments, call.tool.schema) if isinstance(ref, UrlRef)]
    return _mentions(call, tuple(refs), "url")


def _mentions(call: Judged, refs: tuple[PathRef | UrlRef, ...], kind: str) -> Mentions:
    schema = call.tool.schema
    bounded = any(_hides(call.arguments, schema))
    none = not refs and not _holds(schema, kind) and not _holds_hidden(schema)
    unsent = list(_unsent(call.arguments, schema))
    return Mentions(
        refs,
        none,
        bounded,
        any(_holds(one, kind) or _holds_hidden(one) for one in unsent),
        any(
            one.get("default") is not None and (_holds(one, "path") or _holds(one, "url") or _holds_hidden(one))
            for one in unsent
        ),
    )


def _mentioned(value: Plain, schema: Schema) -> Iterator[PathRef | UrlRef]:
    if isinstance(value, str):
        yield from _of_text(value, schema)
    elif isinstance(value, list):
        for item in value:
            yield from _mentioned(item, schema.get("item", OPEN) if schema["kind"] == "list" else OPEN)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _mentioned(item, member(schema, name) or OPEN)
            if name not in schema.get("fields", {}):
                yield from _of_text(name, OPEN)


def _hides(value: Plain, schema: Schema) -> Iterator[bool]:
    """Of each string, also of names that nobody declared, whether it may hold more than can be read."""
    if isinstance(value, str):
        yield _holds_hidden(schema)
    elif isinstance(value, list):
        for item in value:
            yield from _hides(item, schema.get("item", OPEN))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name not in schema.get("fields", {})
            yield from _hides(item, member(schema, name) or OPEN)


def _of_text(text: str, schema: Schema) -> Iterator[PathRef | UrlRef]:
    match schema["kind"]:
        case "path":
            yield PathRef((text,))
        case "url":
            yield UrlRef((text,))
        case "shell":
            mentioned = shell.mentions(text)
            yield from mentioned.paths
            yield from mentioned.urls
        case "command":
            yield PathRef((None,))
            yield UrlRef((None,))
        case "any" | "string" if schema.get("unreviewed", schema["kind"] == "any"):
            yield PathRef((text,))
            if BEGINS_LIKE_URL.match(text):
                yield UrlRef((text,))
        case _:
            return


def _of_file_url(ref: UrlRef) -> list[PathRef]:
    if None in ref.parts:
        known = ref.parts[0] or ""
        return [PathRef((None,))] if known == "" or known.lower().startswith("file:") else []
    path = url.file_path("".join(part or "" for part in ref.parts))
    return [] if path is None else [path]


def _holds(schema: Schema, kind: str) -> bool:
    """Whether a value of this schema may hold one of the kind, as declared."""
    parts = [*schema.get("fields", {}).values(), *([schema["item"]] if "item" in schema else [])]
    extra = schema.get("extra")
    if extra is not None and not isinstance(extra, str):
        parts.append(extra)
    return schema["kind"] == kind or any(_holds(part, kind) for part in parts)


def _holds_hidden(schema: Schema) -> bool:
    """Whether it may hold text that nobody can read whole: shell, command, unreviewed."""
    if schema["kind"] in ("shell", "command", "any") or schema.get("unreviewed", False):
        return True
    if schema["kind"] == "list":
        return _holds_hidden(schema.get("item", OPEN))
    if schema["kind"] != "object":
        return False
    extra = schema.get("extra", "allow")
    nested = list(schema.get("fields", {}).values()) + ([] if isinstance(extra, str) else [extra])
    return extra == "allow" or any(_holds_hidden(part) for part in nested)


def _unsent(value: Plain, schema: Schema) -> Iterator[Schema]:
    """The schemas of members that were not sent, at any depth."""
    if isinstance(value, list):
        for item in value:
            yield from _unsent(item, schema.get("item", OPEN))
    elif isinstance(value, dict):
        for name, field in schema.get("fields", {}).items():
            if value.get(name) is None:
                yield field
            else:
                yield from _unsent(value[name], field)
