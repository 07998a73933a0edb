"""Why an execution cannot be, or a call may not run.

In: nothing. Out: exceptions whose messages say why, lower case, no full stop.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zcpolicy.decision import Decision


class ResolveError(Exception):
    """An execution that cannot be. The message says why, lower case, no full stop."""


class UnknownAgent(ResolveError):
    """The program has no agent of this name."""


class PermitError(ResolveError):
    """A call that may not run: it was denied, or nobody said yes, or it is not of this execution.

    `decision`: the one that stands in its way, such as the deny of a limit that others have used up; None: there is none.
    """

    def __init__(self, why: str, decision: Decision | None = None) -> None:
        super().__init__(why)
        self.decision = decision
