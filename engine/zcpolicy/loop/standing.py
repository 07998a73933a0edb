"""What a call was decided on: whether it still holds when the call is sent.

In: a session. Out: `Standing`. Labels that come from what ran meanwhile, another directory or another policy make the
decision one about something else; the limits are the ledger's, and not looked at here.
"""

from collections import Counter
from typing import NamedTuple

from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import Session


class Standing(NamedTuple):
    """The facts of a session. `said`: those that may be altered in place, as text; `labels`: before the call's own."""

    said: object
    fixed: tuple[object, ...]
    labels: frozenset[str]

    def holds(self, run: ResolvedAgentExecution, beside: Counter[str]) -> bool:
        """Whether the execution is the newest, with these facts. `beside`: how often calls that were admitted along put a
        label on, which is no news; that somebody else did, too, is.

        Raises ResolveError where the newest policy has no such execution.
        """
        session = run.session
        now = standing_of(session)
        news = [label for label in now.labels - self.labels if session.marked(label) != beside[label]]
        return not news and (now.said, now.fixed) == (self.said, self.fixed) and run.renewed() is run


def standing_of(session: Session) -> Standing:
    """The facts of now. Taken before the decision is made, so that nothing slips in between."""
    fixed = (
        session.client, session.id, session.cwd, session.interactive, session.platform, session.supplies_defaults,
        session.ledger, session.skills, session.resolve_link, session.history is None,
    )  # fmt: skip
    return Standing(_said(session), fixed, session.labels)


def _said(session: Session) -> object:
    drift: list[object] = []
    one: Session | None = session
    while one is not None:
        drift.append(dict(one.drift))
        one = one.above
    try:
        return repr((session.context, session.env, session.server_cwd, drift))
    except Exception:  # noqa: BLE001 - a value of the host's that cannot be told: never the same as before
        return object()
