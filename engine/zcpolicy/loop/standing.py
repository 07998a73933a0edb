"""What a call was decided on: whether it still holds when the call is sent.

In: a session. Out: `Standing`. Labels that come from what ran meanwhile, another directory or another policy make the
decision one about something else; the limits are the ledger's, and not looked at here.
"""

from typing import NamedTuple

from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import Session


class Standing(NamedTuple):
    """The facts of a session. `said`: those that may be altered in place, as text; `labels`: before the call's own."""

    said: str
    fixed: tuple[object, ...]
    labels: frozenset[str]

    def holds(self, run: ResolvedAgentExecution, beside: set[str]) -> bool:
        """Whether the execution is the newest, with these facts. `beside`: labels that are no news.

        Raises ResolveError where the newest policy has no such execution.
        """
        now = standing_of(run.session)
        same = (now.said, now.fixed) == (self.said, self.fixed) and now.labels - beside <= self.labels
        return same and run.renewed() is run


def standing_of(session: Session) -> Standing:
    """The facts of now. Taken before the decision is made, so that nothing slips in between."""
    altered = (session.context, session.env, session.server_cwd, session.drift)
    fixed = (
        session.client, session.id, session.cwd, session.interactive, session.platform, session.supplies_defaults,
        session.ledger, session.skills, session.resolve_link, session.history is None,
    )  # fmt: skip
    return Standing(repr(altered), fixed, session.labels)
