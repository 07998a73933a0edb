"""Tools and skills on which host and policy do not meet: what a host's developer wants to know, and no model is told.

In: what a host has, the policy's, and what this agent may use. Out: a sentence for each that is not as it should be. Nothing here withholds or grants.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from zcpolicy.exact import is_list, is_object
from zcpolicy.facts import ToolName
from zcpolicy.program import Program, head_of
from zcpolicy.registry.record import Offer
from zcpolicy.registry.sources import Json
from zcpolicy.registry.view import CAPABILITIES
from zcpolicy.shapes import Schema
from zcpolicy.texts import escaped

MAX_TOLD_PARAMETERS: Final = 5
"""Parameters of one tool that a remark names."""

UNKNOWN: Final = "the policy has no tool of this name, so it is left out"
MISSING: Final = "the policy lets this agent use it, and the host has no tool of this name"
UNKNOWN_SKILL: Final = "the policy has no skill of this name, so that nobody can load it"
MISSING_SKILL: Final = "the policy lets this agent load it, and the host has no skill of this name"

_TYPES: Final[Mapping[str, str]] = {
    "string": "string", "path": "string", "url": "string", "shell": "string", "command": "string", "integer": "integer",
    "number": "number", "boolean": "boolean", "list": "array", "object": "object", "null": "null",
}  # fmt: skip


def remarks_on(
    own: Mapping[ToolName, Offer], program: Program, may: Collection[ToolName], *, whole: bool
) -> dict[str, str]:
    """By tool. `own`: all tools of the host. `whole`: whether these are all that it has, so that others are missing."""
    declared = {tool["name"]: tool["schema"] for tool in head_of(program)["tools"] if tool["server"] is None}
    found: dict[str, str] = {}
    for name, offer in own.items():
        schema = declared.get(name) if isinstance(name, str) else None
        if schema is None:
            found[str(name)] = UNKNOWN
        elif name in may:
            differs = [*_differs(offer.spec.parameters, schema)][:MAX_TOLD_PARAMETERS]
            if differs:
                found[str(name)] = f"its parameters are not those of the policy: {', '.join(differs)}"
    if whole:
        absent = {name for name in may if isinstance(name, str)}.difference(own, CAPABILITIES)
        found.update(dict.fromkeys(sorted(absent), MISSING))
    return found


def remarks_on_skills(own: Collection[str], program: Program, may: Collection[str]) -> dict[str, str]:
    """By `skill NAME`. `own`: the skills of the host. `may`: those that this agent may load."""
    declared = head_of(program)["skills"]
    unknown = {f"skill {name}": UNKNOWN_SKILL for name in sorted(own) if name not in declared}
    return {**unknown, **{f"skill {name}": MISSING_SKILL for name in sorted({*may}.difference(own))}}


def _differs(parameters: Mapping[str, Json], schema: Schema) -> Iterator[str]:
    """What no call can have right on both sides, or what only one of them asks for."""
    ours: dict[str, Schema] = schema.get("fields", {})
    needed = {*schema.get("required", ())}
    given: Any = parameters.get("properties")
    theirs: dict[str, Json] = given if is_object(given) else {}
    listed: Any = parameters.get("required")
    wanted = {name for name in listed if isinstance(name, str)} if is_list(listed) else set[str]()
    if schema.get("extra", "deny") == "deny":
        yield from (f"{_named(name)} is unknown to the policy" for name in sorted({*theirs, *wanted}.difference(ours)))
    yield from (
        f"{_named(name)} is required by the policy, and not there" for name in sorted(needed.difference(theirs))
    )
    for name in sorted(ours.keys() & theirs.keys()):
        if name in wanted - needed and "default" not in ours[name]:
            yield f"{_named(name)} is required, and optional in the policy"
        types, kind = _types(theirs[name]), ours[name]["kind"]
        if types and kind in _TYPES and not _meet(types, _TYPES[kind]):
            yield f"{_named(name)} is {escaped('|'.join(sorted(types))[:60])}, and {kind} in the policy"


def _types(schema: Json) -> set[str]:
    """The types that a JSON Schema names; nothing where it says it in another way."""
    named: Any = schema.get("type") if is_object(schema) else None
    every: list[Any] = named if is_list(named) else [named]
    return {one for one in every if isinstance(one, str)}


def _meet(types: set[str], type_: str) -> bool:
    """A whole number is a number, and the other way round there are calls that fit both."""
    return type_ in types or (type_ in ("integer", "number") and not types.isdisjoint(("integer", "number")))


def _named(name: str) -> str:
    return f"`{escaped(name[:60])}`"
