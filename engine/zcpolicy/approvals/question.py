"""What an approver is asked, and what it may answer (SPEC 9).

In: nothing. Out: `Question`, and the answers `Approve`, `Reject`, `Later`, `Absent`; `Approver`, the function that a host gives.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from zcpolicy.facts import ToolName

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
    """Whom a host can ask: the person at the session, if any, and named routes."""

    person: Approver | None = None
    routes: Mapping[str, Approver] = field(default_factory=dict[str, Approver])
