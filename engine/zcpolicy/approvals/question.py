"""What an approver is asked, and what it may answer (SPEC 9).

In: nothing, or a question as JSON. Out: `Question`, and the answers `Approve`, `Reject`, `Later`, `Absent`; `Approver`, the function that a host gives.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, Literal, get_args

from zcpolicy.call import read_json
from zcpolicy.exact import is_list, is_object
from zcpolicy.facts import ToolName
from zcpolicy.names import is_tool_name
from zcpolicy.texts import json_text, tool_json

Scope = Literal["once", "exact", "tool"]


@dataclass(frozen=True, slots=True)
class Question:
    """May this call run? `text`: for a person, controls escaped. `scopes`: those that the approver may choose, `once` first; one
    beyond `once` holds for `remember_for` seconds at most, None: with its session.

    `route`: the route that is asked, "" for the person at the session. `rules`: `file:line` of what asked.
    `key`: of the one call. `binding`: the digest of all that a yes is bound to; `tool_binding`: the same without the
    arguments. `due`: seconds until no answer is a no. `id`: equal for the same question about the same call.
    """

    id: str
    key: str
    text: str
    agent: str
    client: str
    session: str
    tool: ToolName
    arguments: Mapping[str, Any]
    route: str
    scopes: tuple[Scope, ...]
    remember_for: float | None
    rules: tuple[str, ...]
    because: tuple[str, ...]
    binding: str
    tool_binding: str
    due: float

    def to_json(self) -> dict[str, Any]:
        """JSON values; the arguments are JSON text, whose numbers are exact."""
        return {
            "id": self.id, "key": self.key, "text": self.text,
            "agent": self.agent, "client": self.client, "session": self.session,
            "tool": tool_json(self.tool), "arguments": json_text({**self.arguments}),
            "route": self.route, "scopes": [*self.scopes], "remember_for": self.remember_for,
            "rules": [*self.rules], "because": [*self.because],
            "binding": self.binding, "tool_binding": self.tool_binding, "due": self.due,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Question":
        """What `to_json` gave. Raises ValueError for anything else; what was altered is no question that was asked."""
        fields: dict[str, Any] = {**data} if is_object(data) else {}
        tool = fields.get("tool")
        fields["tool"] = tuple(tool) if is_list(tool) else tool
        if fields.keys() != cls.__dataclass_fields__.keys() or not _is_question(fields):
            raise ValueError("this is no question")
        fields.update({name: tuple(fields[name]) for name in _LISTS}, arguments=_arguments(fields["arguments"]))
        return cls(**fields)


_TEXTS: Final = ("id", "key", "text", "agent", "client", "session", "route", "binding", "tool_binding")
_LISTS: Final = ("scopes", "rules", "because")


def _is_question(fields: Mapping[str, Any]) -> bool:
    texts = (*(fields[name] for name in (*_TEXTS, "arguments")), *_texts_in(fields))
    return (
        all(is_list(fields[name]) for name in _LISTS)
        and all(type(one) is str for one in texts)
        and {*fields["scopes"]} <= {*get_args(Scope)}
        and is_tool_name(fields["tool"])
        and _is_seconds(fields["due"])
        and (fields["remember_for"] is None or _is_seconds(fields["remember_for"]))
    )


def _texts_in(fields: Mapping[str, Any]) -> list[object]:
    return [one for name in _LISTS if is_list(fields[name]) for one in fields[name]]


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and abs(value) < inf


def _arguments(text: str) -> dict[str, Any]:
    """Raises ValueError."""
    found = read_json(text)
    if not is_object(found):
        raise ValueError("this is no question")
    return found


@dataclass(frozen=True, slots=True)
class Approve:
    """Yes. `scope`: how far; wider than the question offers counts as `once`. `seconds`: for how long a scope beyond
    `once` holds, at most as the policy says. `arguments`, `tool`: edited; the edited call is decided afresh. `by`: who.
    """

    scope: Scope = "once"
    seconds: float | None = None
    arguments: Mapping[str, Any] | None = None
    tool: ToolName | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Reject:
    """No. `note`: why, told to the model."""

    note: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """The answer comes later: the turn pauses, and is resumed when it has come (`ApprovalManager.answer`)."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Nobody is there to answer, as where a host has no approver: `on_no_approver` says what then. `note`: why, for records."""

    note: str = ""


Answer = Approve | Reject | Later | Absent
Approver = Callable[[Question], Answer | Awaitable[Answer]]
"""A host's function, sync (it is run in a thread) or async. Everything else it does or returns is no yes."""


@dataclass(frozen=True, slots=True)
class Approvers:
    """Whom a host can ask: the person at the session, if any, and named routes. Raises TypeError for what is no function.

    `person` is asked in sessions that are `interactive`.
    """

    person: Approver | None = None
    routes: Mapping[str, Approver] = field(default_factory=dict[str, Approver])

    def __post_init__(self) -> None:
        _are_functions(self.person, self.routes)


def _are_functions(person: object, routes: Any) -> None:
    """Raises TypeError."""
    if person is not None and not callable(person):
        raise TypeError(f"`person` is a function of a `Question`, and this is a `{type(person).__name__[:60]}`")
    if not hasattr(routes, "keys"):
        raise TypeError(f"`routes` maps names to functions, and this is a `{type(routes).__name__[:60]}`")
    for one in routes.values():
        if not callable(one):
            raise TypeError(f"a route is a function of a `Question`, and this is a `{type(one).__name__[:60]}`")
