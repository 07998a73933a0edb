"""One turn at a time in a session: what is limited per turn is counted by `Session.turn`, which another turn must not renew.

In: an execution. Out: `alone`, while its turn is under way; `is_own`, whether that turn is one of its own.
"""

from collections.abc import Generator
from contextlib import contextmanager

from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.refusals import ResolveError

_under_way: dict[int, object] = {}
"""The sessions in which a turn is under way, by identity: each is held by its turn."""


def is_own(run: ResolvedAgentExecution) -> bool:
    """Whether its turn is one of its session: one in the session of an execution above it is part of that one's."""
    return all(one.session is not run.session for one in run.above())


@contextmanager
def alone(run: ResolvedAgentExecution) -> Generator[None]:
    """While its turn is under way. Raises ResolveError where another one of its session is."""
    if not is_own(run):
        yield
        return
    name, mark = id(run.session), object()
    if _under_way.setdefault(name, mark) is not mark:
        raise ResolveError("another turn of this session is under way")
    try:
        yield
    finally:
        del _under_way[name]
