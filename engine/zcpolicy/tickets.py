"""Tickets: how an execution and its ancestry are written down, so that a turn can go on, or a run start, later (SPEC 10).

In: an execution. Out: JSON. In: such JSON and the sessions that it names. Out: the execution again, under the policy of
now. A ticket is the host's own record, as its sessions are: whoever could alter it could leave out what bounds a run, so
it is kept where no tool reaches (the resolver's `protected` files).
"""

from __future__ import annotations

from zcpolicy.authority import genuine
from zcpolicy.exact import is_list, is_object
from zcpolicy.narrowing import restored
from zcpolicy.refusals import ResolveError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import Session, ToolName
    from zcpolicy.resolver import Resolver

MAX_TICKET_LINE: Final = 1_000
"""Executions that a ticket may name, one above the other."""

_FIELDS: Final = {
    "agent": str, "session": str, "surface": str, "skills": list, "independent": bool, "later": bool,
}  # fmt: skip


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
    resolver: Resolver,
    ticket: Mapping[str, Any],
    sessions: Callable[[str], Session | None],
    ids: Mapping[ToolName, int],
) -> ResolvedAgentExecution:
    """The execution of a ticket. Raises ResolveError for what is no ticket, and where the policy of now refuses it."""
    line = ticket.get("line")
    if not is_list(line) or not 0 < len(line) <= MAX_TICKET_LINE or not all(map(_is_entry, line)):
        raise ResolveError("this is no ticket of an execution")
    run: ResolvedAgentExecution | None = None
    for entry in line:
        session = sessions(entry["session"])
        if session is None:
            raise ResolveError(f"there is no session `{entry['session'][:60]}`")
        run = resolver.resolve(
            entry["agent"],
            session=session,
            surface=entry["surface"],
            narrowing=None if entry["narrowing"] is None else restored(entry["narrowing"], ids),
            parent=run,
            skills=entry["skills"],
            independent=entry["independent"] if run is not None else None,
            later=entry["later"],
            resumed=True,
        )
    assert run is not None
    return run


def _is_entry(entry: object) -> bool:
    return (
        is_object(entry)
        and entry.keys() == {*_FIELDS, "narrowing"}
        and all(type(entry[name]) is kind for name, kind in _FIELDS.items())
        and (entry["narrowing"] is None or is_object(entry["narrowing"]))
        and all(type(skill) is str for skill in entry["skills"])
    )
