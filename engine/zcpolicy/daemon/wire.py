"""JSON that comes from outside, and the values that go out again.

In: bytes of a peer. Out: objects whose members are of the kinds that were asked for; `BadInput` with the reason.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from zcpolicy.call import Malformed, read_json, sound
from zcpolicy.exact import is_object
from zcpolicy.loop.turn import TurnResult
from zcpolicy.registry.sources import ToolSpec
from zcpolicy.texts import tool_json

MAX_REQUEST_BYTES: Final = 1_048_576
"""Bytes of one request, over a socket or HTTP."""


class BadInput(ValueError):
    """Input that is not what was asked for. The message says what is wrong, and quotes nothing of it."""


class NotJson(BadInput):
    """Bytes that are no JSON text."""


def read_object(data: bytes) -> dict[str, Any]:
    """One JSON object. Raises BadInput, NotJson."""
    try:
        found = read_json(data)
    except Malformed:
        raise NotJson("the request is not well-formed JSON") from None
    if not is_object(found):
        raise BadInput("the request is not an object")
    return found


def text_in(members: Mapping[str, Any], name: str, otherwise: str | None = None) -> str:
    """A member that is text. `otherwise`: where it is not there. Raises BadInput."""
    found = members.get(name, otherwise)
    if type(found) is not str or not sound(found):
        raise BadInput(f"`{name}` is missing, or no text")
    return found


def flag_in(members: Mapping[str, Any], name: str) -> bool:
    """A member that is true or false; not there, it is false. Raises BadInput."""
    found = members.get(name, False)
    if type(found) is not bool:
        raise BadInput(f"`{name}` is neither true nor false")
    return found


def only(members: Mapping[str, Any], *names: str) -> None:
    """Raises BadInput for members that mean nothing: a misspelt one must not be passed over."""
    if not members.keys() <= set(names):
        raise BadInput(f"a member is none of {', '.join(f'`{name}`' for name in names)}")


def answer_of(result: TurnResult) -> str:
    """The answer of a turn; of one without, why there is none. What was said in earlier turns is none."""
    return result.text if result.status == "done" else f"there is no answer ({result.reason}): {result.note}"


def told(result: TurnResult) -> dict[str, Any]:
    """How a turn ended, as a peer is told."""
    text = result.text if result.status == "done" else ""
    found: dict[str, Any] = {"status": result.status, "text": text, "reason": result.reason}
    if result.note:
        found["note"] = result.note
    if result.retry_after is not None:
        found["retry_after"] = result.retry_after
    return found


def listed(specs: Sequence[ToolSpec], servers: Sequence[str]) -> dict[str, Any]:
    """A listing of tools, with the servers whose tools are not in it."""
    tools = [
        {"name": tool_json(one.name), "wire": one.wire, "description": one.description, "parameters": one.parameters}
        for one in specs
    ]
    return {"tools": tools, "servers": [*servers]}
