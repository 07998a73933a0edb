"""An MCP `tools/list` answer → the tools that a server offers.

In: the text of a JSON file: the result (`{"tools": […]}`), the JSON-RPC response around it, or the bare list.
Out: a `ToolListing` per tool, as the server ordered them. Errors: `CatalogError`, whose text is lower case without a
full stop. A partial list (`nextCursor`) is an error: what is not listed would silently be denied.
"""

import json
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from policy_lang.catalog.schema import schema_to_kinds
from zcpolicy.program import Schema

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_CATALOG: Final = 16_000_000
"""Characters of a catalogue."""
MAX_NUMBER: Final = 400
"""Characters of a number in a catalogue."""

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class CatalogError(Exception):
    """A catalogue cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """One tool as a server lists it. `hints`: its MCP annotations that are true or false, by their MCP names."""

    name: str
    schema: Schema
    hints: dict[str, bool]
    description: str


def read_tools(text: str) -> tuple[ToolListing, ...]:
    """The tools of a server.

    Raises:
        CatalogError: not JSON, duplicate keys, no tools, a tool without a name, two tools of one name, more pages
            to come, out of bounds.
    """
    if len(text) > MAX_CATALOG:
        raise CatalogError(f"the catalogue is longer than {MAX_CATALOG:_} characters")
    return _listings(_result(_json(text.removeprefix("\ufeff"))))


def tools_on_the_wire(text: str) -> dict[str, dict[str, Any]]:
    """The tools of a server by name, each with all that stands there, also what no policy reads. Raises CatalogError."""
    read_tools(text)
    tools = cast(dict[str, list[dict[str, Any]]], _result(_json(text.removeprefix("\ufeff"))))["tools"]
    return {tool["name"]: tool for tool in tools}


def _listings(result: object) -> tuple[ToolListing, ...]:
    from pydantic import ValidationError

    from policy_lang.catalog.wire import WireList

    if isinstance(result, dict) and cast(dict[str, object], result).get("nextCursor"):
        raise CatalogError("the list is one page of several: `nextCursor` is set; list all pages into one file")
    try:
        read = WireList.model_validate(result)
    except ValidationError as error:
        raise CatalogError(_first_complaint(error)) from None
    found: dict[str, ToolListing] = {}
    for tool in read.tools:
        if tool.name in found:
            raise CatalogError(f"two tools are called `{tool.name}`")
        hints = tool.annotations or {}
        found[tool.name] = ToolListing(
            tool.name,
            schema_to_kinds(tool.input_schema),
            {hint: hints[hint] for hint in _HINTS if isinstance(hints.get(hint), bool)},
            tool.description or "",
        )
    return tuple(found.values())


def _result(read: object) -> object:
    """The `tools/list` result inside any of the three shapes."""
    if isinstance(read, list):
        return {"tools": cast(object, read)}
    if not isinstance(read, dict):
        raise CatalogError("the catalogue is neither an object nor a list")
    answer = cast(dict[str, object], read)
    if "tools" in answer:
        return answer
    if "error" in answer:
        raise CatalogError("the catalogue is the server's error answer, not its list of tools")
    result = answer.get("result")
    if isinstance(result, dict) and "tools" in result:
        return cast(object, result)
    raise CatalogError("the catalogue holds no `tools`")


def _json(text: str) -> object:
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_number,
            parse_int=_number,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        raise CatalogError(f"not JSON: {reason} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise CatalogError("the catalogue is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise CatalogError(f"the key {json.dumps(twice)} stands twice in one object")
    return members


def _number(text: str) -> int | Decimal:
    if len(text) > MAX_NUMBER:
        raise CatalogError(f"a number is longer than {MAX_NUMBER} characters")
    try:
        return int(text) if text.lstrip("-").isdecimal() else Decimal(text)
    except InvalidOperation:
        raise CatalogError(f"the number `{text}` is out of bounds") from None


def _no_constant(text: str) -> NoReturn:
    raise CatalogError(f"not JSON: `{text}` is no number")


def _first_complaint(error: "ValidationError") -> str:
    """The first finding, placed as a person would: `tool 3: name: field required`."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = list(first["loc"])
    words = (
        "input should be an object" if first["type"] == "model_type" else first["msg"][:1].lower() + first["msg"][1:]
    )
    if place == ["tools"] and first["type"] == "too_short":
        return "the catalogue holds no tools"
    if len(place) > 1 and place[0] == "tools" and isinstance(place[1], int):
        return f"tool {place[1] + 1}: {'.'.join(map(str, place[2:])) or 'the tool'}: {words}"
    return f"{'.'.join(map(str, place))}: {words}"
