"""Who stands above whom (SPEC 10): what a session has to be for a root and for a child, and what reaches it from above.

In: a session, a delegator. Out: the session that the execution has, the delegator as it is now; refusals.
"""

from __future__ import annotations

from _thread import RLock

from zcpolicy.authority import genuine
from zcpolicy.facts import Session
from zcpolicy.refusals import ResolveError
from zcpolicy.sealed import put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import Line

MAX_SESSION_LINES: Final = 1_000
"""Lines of executions that a session remembers; what is made in yet another line works, but no ticket of it is resumed."""

_placing: Final = RLock()
"""Held while a line is put on a session: hosts resolve in threads, and none may be lost."""


def session_for(session: Session | None, parent: ResolvedAgentExecution | None) -> Session:
    """The session of an execution. The delegator's labels and its lack of interactivity reach a child.

    A session that was a child's stays one: it is never resolved without those above it (SPEC 10). Raises ResolveError.
    """
    if session is not None and type(session) is not Session:
        raise ResolveError("what is given as `session` is no Session")
    if parent is None:
        if session is not None and session.ancestry:
            raise ResolveError(
                f"this session is of a child of agent `{session.ancestry[0][0]}`: resolve it below that one"
            )
        if session is not None and session.above is not None:
            raise ResolveError("this session stands below another: resolve it with `parent`")
        return session if session is not None else Session()
    above = parent.session
    if session is None or session is above:
        return above
    if session.client not in ("", above.client):
        raise ResolveError("this session is of another client than the delegator's")
    outer = _stands_above(session, above)
    if not outer:
        _must_be_of(session, parent)
    if session.client != above.client:  # it was given none
        put(session, "client", above.client)
    session.mark(above.labels)
    session.interactive = session.interactive and above.interactive
    if session.above is None and not outer:
        put(session, "above", above)
    return session


def _must_be_of(session: Session, parent: ResolvedAgentExecution) -> None:
    """Raises ResolveError for a session that stands below others than the delegator's already."""
    if session.ancestry not in ((), line_of(parent)):
        raise ResolveError("this session is of a child of other executions")
    if session.above not in (None, parent.session):  # what it is marked with goes there, and drift is looked up there
        raise ResolveError("this session stands below another than the delegator's")


def placed(session: Session, agent: str, parent: ResolvedAgentExecution | None, *, independent: bool) -> None:
    """What was made in a session, and whose child it is, stays known there, also once it was saved and restored."""
    above = () if parent is None else line_of(parent)
    if parent is not None and session is not parent.session:
        if not _stands_above(session, parent.session):
            put(session, "ancestry", above)
        parent.session.mark(session.labels)  # what a restored child has seen, its delegator may hear of
    made = (str.__str__(agent), independent, above)
    if made in session.lines:
        return
    with _placing:
        if len(session.lines) < MAX_SESSION_LINES:
            put(session, "lines", session.lines | {made})


def was_placed(session: Session, agent: str, parent: ResolvedAgentExecution | None, *, independent: bool) -> bool:
    """Whether an execution was made in a session before, below just these."""
    return (agent, independent, () if parent is None else line_of(parent)) in session.lines


def kept_up(parent: ResolvedAgentExecution) -> ResolvedAgentExecution:
    """A delegator as it is now: of the newest generation, under every skill that its session and those above have loaded."""
    genuine(parent)
    newest = parent.renewed()
    for one in (newest, *newest.above()):
        one.keep_up()
    return newest


def line_of(run: ResolvedAgentExecution) -> Line:
    """(agent, session) of an execution and those above it, nearest first: plain text, so that it is saved as it is."""
    return tuple((str.__str__(one.agent), one.session.id) for one in (run, *run.above()))


def _stands_above(session: Session, below: Session) -> bool:
    """Whether a session is itself above another: a host may run an agent and those below it in one session."""
    one: Session | None = below
    while one is not None:
        if one is session:
            return True
        one = one.above
    return False
