"""What was done before: the preconditions of `require` (SPEC 4).

In: a `require` and a call. Out: whether it is not met. A history that cannot be read meets nothing.
"""

from __future__ import annotations

from zcpolicy.call import same
from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.operands import MISSING, dig
from zcpolicy.program import names_in
from zcpolicy.windows import NoTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import Entry
    from zcpolicy.shapes import Require
    from zcpolicy.stack import Stack


def unmet(require: Require, arguments: dict[str, Any], run: ResolvedAgentExecution, stack: Stack) -> bool:
    """Whether no earlier call fulfils it."""
    entries = _entries(require, run)
    if entries is None:
        return True
    names = names_in(stack.program, require["earlier"])
    within = float(require["within"]) if "within" in require else None
    try:
        oldest = run.resolver.now(run.session) - within if within is not None else None
    except (NoTime, LedgerUnavailable):
        return True
    return not any(
        entry.ok
        and entry.tool in names
        and (oldest is None or entry.at >= oldest)
        and _alike(require, entry, arguments)
        for entry in entries
    )


def _alike(require: Require, entry: Entry, arguments: dict[str, Any]) -> bool:
    for path in require.get("same", ()):
        before, now = dig(dict(entry.arguments), tuple(path)), dig(arguments, tuple(path))
        if before is MISSING or now is MISSING or not _same(before, now):
            return False
    return True


def _same(before: object, now: object) -> bool:
    """What a host reports of an earlier call was never judged."""
    try:
        return same(before, now)
    except (ValueError, RecursionError):
        return False


def _entries(require: Require, run: ResolvedAgentExecution) -> Iterator[Entry] | None:
    """Those that count; None if a history cannot be read."""
    found: list[Sequence[Entry]] = []
    session: Any = run.session
    while session is not None:
        if session.history is None:
            return None
        found.append(session.history)
        session = session.above
    if require.get("by_any_agent") and run.session.client:  # whose sessions they are is not known without one
        found.append(run.resolver.done_by(run.session.client))
    return (entry for entries in found for entry in entries)
