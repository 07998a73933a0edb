"""Tickets: how an execution and its ancestry are written down, so that a turn can go on, or a run start, later (SPEC 10).

In: an execution. Out: JSON. In: such JSON and the sessions that it names. Out: the execution again, under the policy of
now, and only in the line in which its sessions know that it was made: one that lacks who stands above, or is independent of
them all of a sudden, is refused. The rest (narrowings above all) is believed: what is written down is the host's own record,
as its sessions are, so both are kept where no tool reaches (the resolver's `protected` files).

A running tool is given a `Ticket`, on which nothing stands: the host alone makes JSON of it, while the call runs.
"""

from __future__ import annotations

from _weakref import ref

from zcpolicy.authority import genuine
from zcpolicy.exact import is_list, is_object
from zcpolicy.facts import FactsError, Session
from zcpolicy.lineage import was_placed
from zcpolicy.refusals import ResolveError
from zcpolicy.sealed import Sealed, final

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final, Never

    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.resolver import Resolver

MAX_TICKET_LINE: Final = 1_000
"""Executions that a ticket may name, one above the other."""

_FIELDS: Final = {
    "agent": str, "session": str, "surface": str, "skills": list, "independent": bool, "later": bool,
}  # fmt: skip


@final
class Ticket(Sealed):
    """The right to have a run start later, below the execution of the call that it was given to. Made by
    `ToolContext.later`; worth nothing once that call is over.
    """

    __slots__ = ("__weakref__",)
    _maker = "`ToolContext.later`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None: ...


_made: dict[int, tuple[ref[Ticket], Callable[[], ResolvedAgentExecution], str]] = {}
"""What every ticket is for. Nothing of it stands on the ticket."""


def ticket_for(acting: Callable[[], ResolvedAgentExecution], agent: str) -> Ticket:
    """A ticket for a run of an agent. `acting` gives the execution of the call, and raises PermitError once it is over."""
    made: Ticket = object.__new__(Ticket)
    key = id(made)
    _made[key] = (ref(made, lambda _gone: _made.pop(key, None)), acting, agent)
    return made


def redeemed(ticket: Ticket) -> tuple[ResolvedAgentExecution, str]:
    """The execution of the call as it is now, and the agent that is to run below it. For the host's scheduler alone.

    Raises ResolveError for what no call was given, and as `renewed`; PermitError once its call is over.
    """
    entry = _made.get(id(ticket))
    if entry is None or entry[0]() is not ticket:
        raise ResolveError("this is no ticket that a call was given")
    _, acting, agent = entry
    return acting(), agent


def ticket_of(run: ResolvedAgentExecution) -> dict[str, Any]:
    """`{"line": […]}`: the outermost execution first. A copy: whoever holds it holds nothing of the execution."""
    from json import dumps, loads

    line: list[dict[str, Any]] = []
    one: ResolvedAgentExecution | None = run
    while one is not None:
        state = genuine(one)
        line.append(
            {
                "agent": one.agent,
                "session": state.session.id,
                "surface": state.surface,
                "narrowing": state.narrowing,
                "skills": sorted(state.stack.own.skills),
                "independent": state.independent,
                "later": state.later,
            }
        )
        one = state.parent
    copied: dict[str, Any] = loads(dumps({"line": line[::-1]}))
    return copied


def resumed(
    resolver: Resolver, ticket: Mapping[str, Any], sessions: Callable[[str], Session | None]
) -> ResolvedAgentExecution:
    """The execution of a ticket. Raises ResolveError for what is no ticket, and where the policy of now refuses it."""
    line = ticket.get("line") if is_object(ticket) else None
    if not is_list(line) or not 0 < len(line) <= MAX_TICKET_LINE or not all(map(_is_entry, line)):
        raise ResolveError("this is no ticket of an execution")
    run: ResolvedAgentExecution | None = None
    for entry in line:
        session = _session_of(entry["session"], sessions)
        if run is not None and session.client != run.session.client:
            raise ResolveError("the sessions of a ticket are not of one client")
        if not was_placed(session, entry["agent"], run, independent=entry["independent"]):
            raise ResolveError(f"agent `{entry['agent'][:60]}` was never at work in its session as this ticket tells")
        try:
            run = resolver.remade(
                entry["agent"],
                session=session,
                surface=entry["surface"],
                narrowing=entry["narrowing"],
                parent=run,
                skills=entry["skills"],
                independent=entry["independent"],
                later=entry["later"],
            )
        except FactsError as error:
            raise ResolveError(f"a narrowing of the ticket is none: {error}") from None
    assert run is not None
    return run


def _session_of(id: str, sessions: Callable[[str], Session | None]) -> Session:
    """The session of a name, and no other, nor what only looks like one."""
    found = sessions(id)
    if type(found) is not Session or found.id != id:
        raise ResolveError(f"there is no session `{id[:60]}`")
    return found


def _is_entry(entry: object) -> bool:
    return (
        is_object(entry)
        and entry.keys() == {*_FIELDS, "narrowing"}
        and all(type(entry[name]) is kind for name, kind in _FIELDS.items())
        and (entry["narrowing"] is None or is_object(entry["narrowing"]))
        and all(type(skill) is str for skill in entry["skills"])
    )
