"""Who stands above whom (SPEC 10): what a session has to be for a root and for a child, and what reaches it from above.

In: a session, a delegator. Out: the session that the execution has, the delegator as it is now; refusals.
"""

from __future__ import annotations

from zcpolicy.authority import genuine
from zcpolicy.facts import Session
from zcpolicy.refusals import ResolveError
from zcpolicy.sealed import put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zcpolicy.execution import ResolvedAgentExecution


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
    if session.client != above.client:  # it was given none
        put(session, "client", above.client)
    if session.ancestry not in ((), line_of(parent)):
        raise ResolveError("this session is of a child of other executions")
    session.mark(above.labels)
    session.interactive = session.interactive and above.interactive
    if session.above is None and not _stands_above(session, above):
        put(session, "above", above)
    return session


def placed_below(session: Session, parent: ResolvedAgentExecution) -> None:
    """A session is a child's from now on, also once it was saved and restored."""
    put(session, "ancestry", line_of(parent))
    parent.session.mark(session.labels)  # what a restored child has seen, its delegator may hear of


def kept_up(parent: ResolvedAgentExecution) -> ResolvedAgentExecution:
    """A delegator as it is now: of the newest generation, under every skill that its session and those above have loaded."""
    genuine(parent)
    newest = parent.renewed()
    for one in (newest, *newest.above()):
        one.keep_up()
    return newest


def line_of(run: ResolvedAgentExecution) -> tuple[tuple[str, str], ...]:
    """(agent, session) of an execution and those above it, nearest first."""
    return tuple((one.agent, one.session.id) for one in (run, *run.above()))


def _stands_above(session: Session, below: Session) -> bool:
    """Whether a session is itself above another: a host may run an agent and those below it in one session."""
    one: Session | None = below
    while one is not None:
        if one is session:
            return True
        one = one.above
    return False
