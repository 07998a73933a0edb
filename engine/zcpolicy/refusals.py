"""Why an execution cannot be, or a call may not run.

In: nothing. Out: exceptions whose messages say why, lower case, no full stop.
"""


class ResolveError(Exception):
    """An execution that cannot be. The message says why, lower case, no full stop."""


class UnknownAgent(ResolveError):
    """The program has no agent of this name."""


class PermitError(ResolveError):
    """A call that may not run: it was denied, or nobody said yes, or it is not of this execution."""
