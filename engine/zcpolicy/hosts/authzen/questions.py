"""What a request asks, in the words of AuthZEN and in ours.

In: a JSON object with `subject`, `action`, `resource`, `context`. Out: a `Question`: an agent, a tool, arguments, a session. What
the API wants and is not there is `BadInput`; what it allows and no policy speaks of (a subject that is no agent) is `NotOurs`, a deny.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from zcpolicy.call import Malformed, judge_value
from zcpolicy.daemon.wire import BadInput, read_object, text_in
from zcpolicy.exact import is_object
from zcpolicy.facts import FactsError, Session, ToolName
from zcpolicy.facts_json import SESSION_KEYS, session_of
from zcpolicy.misspelt import misspelt
from zcpolicy.tool_text import read_tool

AGENT: Final = "agent"
"""The type of subjects."""
TOOL: Final = "tool"
"""The type of resources."""
CALL: Final = "call"
"""The action: an agent calls a tool."""

Wanted = Literal["", "subject", "resource", "action"]
"""What a search looks for; "" in an evaluation."""


class NotOurs(Exception):
    """A question that no policy answers but with a deny. `reason`: its code."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Entity:
    type: str
    id: str
    properties: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """One question; what a search looks for is not in it."""

    subject: _Entity
    action: str
    resource: _Entity
    session: Session

    @property
    def agent(self) -> str:
        """The agent. Raises NotOurs."""
        self.must_be_ours()
        return self.subject.id

    @property
    def tool(self) -> ToolName:
        """The tool, as the language writes it: `shell`, `github/create_issue`. Raises NotOurs."""
        self.must_be_ours()
        try:
            return read_tool(self.resource.id)
        except (ValueError, RecursionError):
            raise NotOurs(
                "unknown-tool",
                "the resource's id names no tool: write `name`, `server/name`, other characters in quotes",
            ) from None

    @property
    def arguments(self) -> object:
        """The arguments of the call; None where none are given. They stand in the tool's properties."""
        return self.resource.properties.get("arguments")

    def must_be_ours(self) -> None:
        """Raises NotOurs."""
        if self.subject.type != AGENT:
            raise NotOurs("unknown-agent", f"subjects are of type `{AGENT}` here")
        if self.resource.type != TOOL:
            raise NotOurs("unknown-tool", f"resources are of type `{TOOL}` here")
        if self.action != CALL:
            raise NotOurs("not-granted", f"the action is `{CALL}` here")


def request_of(body: bytes) -> dict[str, Any]:
    """The JSON object of a request, in bounds throughout. Raises BadInput."""
    found = read_object(body)
    try:
        judge_value({"kind": "any"}, found)
    except Malformed:
        raise BadInput("the request nests too deep, is too large, or holds text that is none") from None
    return found


def question_of(members: Mapping[str, Any], wanted: Wanted = "") -> Question:
    """Raises BadInput, which names the member."""
    return Question(
        subject=_entity(members, "subject", named=wanted != "subject"),
        action=CALL if wanted == "action" else _within("action", _object(members, "action"), "name"),
        resource=_entity(members, "resource", named=wanted != "resource"),
        session=_session(members.get("context", {})),
    )


def _entity(members: Mapping[str, Any], name: str, *, named: bool) -> _Entity:
    entity = _object(members, name)
    properties = entity.get("properties", {})
    if not is_object(properties):
        raise BadInput(f"`properties` of `{name}` is no object")
    return _Entity(_within(name, entity, "type"), _within(name, entity, "id") if named else "", properties)


def _object(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = members.get(name)
    if not is_object(found):
        raise BadInput(f"`{name}` is missing, or no object")
    return found


def _within(name: str, entity: Mapping[str, Any], key: str) -> str:
    try:
        return text_in(entity, key)
    except BadInput as error:
        raise BadInput(f"`{name}`: {error}") from None


def _session(context: Any) -> Session:
    """The facts that the host vouches for. What else stands in a context is passed over, unless it is nearly one of them: a label
    that no rule hears of would open what it should close. Nobody can be asked unless it says so.
    """
    if not is_object(context):
        raise BadInput("`context` is no object")
    for _, near in misspelt(context.keys() - {*SESSION_KEYS}, {*SESSION_KEYS} - context.keys()):
        if near is not None:
            raise BadInput(f"`context`: did you mean `{near}`?")
    try:
        return session_of(context)
    except FactsError as error:
        raise BadInput(f"`context`: {error}") from None
