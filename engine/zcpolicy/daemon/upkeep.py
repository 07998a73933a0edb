"""What a daemon does now and then, so that what it keeps does not grow without end.

In: a host, what it keeps, the handles. Out: a ledger without the charges that no window can reach any more; pools without connections
that nobody gets.

INVARIANT: nothing is forgotten that a limit of the newest policy, or of a session that goes on, can still count.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from time import monotonic, time
from typing import Any, Final

from zcpolicy.daemon.host import Host
from zcpolicy.daemon.keeping import Kept
from zcpolicy.ledgers.contract import Ledger, LedgerUnavailable
from zcpolicy.loop.unbroken import unbroken
from zcpolicy.program import Program, agent_of, head_of
from zcpolicy.state.audit import Handles
from zcpolicy.state.handles.pool import ConnectionPool

DAY_SECONDS: Final = 86_400.0
"""Between two prunings of the ledger; the first is when the daemon starts. Also what is kept beyond the longest window."""
SWEEP_SECONDS: Final = 60.0
"""Between two sweeps of the pools."""

_CALENDAR: Final = {"day": 2 * DAY_SECONDS, "month": 32 * DAY_SECONDS}  # clocks of zones are set forward and back


async def keep_up(host: Host, kept: Kept, handles: Handles, keep: float | None, failed: Callable[[str], None]) -> None:
    """Until it is cancelled. `keep`: seconds for which charges are kept, at least; None: for ever. `failed`: hears what went wrong."""
    pruned = -inf
    while True:
        await _swept(handles, failed)
        if keep is not None and monotonic() - pruned >= DAY_SECONDS:
            pruned = monotonic()
            try:
                await prune(host, kept, keep)
            except LedgerUnavailable as error:
                failed(f"the ledger could not be pruned: {error}")
        await asyncio.sleep(SWEEP_SECONDS)


async def prune(host: Host, kept: Kept, keep: float) -> None:
    """Forgets charges older than `keep` seconds, and older than a day more than the longest window of the newest policy; none of a
    session that goes on, or that a job stands below. Raises LedgerUnavailable.
    """
    opened, ids = _going_on(host, kept)
    program = host.resolver.newest.program
    await unbroken(kept.ledger, partial(_pruned, kept.ledger, program, keep, opened, ids))


def _pruned(ledger: Ledger, program: Program, keep: float, opened: float, sessions: Iterable[str]) -> None:
    before = min(ledger.now(time()) - max(keep, longest_window(program) + DAY_SECONDS), opened)
    for session in sessions:
        first = next(iter(ledger.entries(session=session)), None)
        before = before if first is None else min(before, first.at)
    ledger.prune(before)


def _going_on(host: Host, kept: Kept) -> tuple[float, set[str]]:
    """When the oldest open session was opened; the sessions that stand above those, and above jobs, which may be older."""
    seats = host.sessions.seats()
    above = {session for job in kept.schedule.jobs for session in job.sessions}
    for seat in seats:
        session = seat.session.above
        while session is not None:
            above.add(session.id)
            session = session.above
    return min((seat.opened for seat in seats), default=inf), above


def longest_window(program: Program) -> float:
    """Seconds that the longest window of a policy's clock reaches back, at most. Those of turns and sessions end with the session."""
    return max(map(_reach, _windows(program)), default=0.0)


def _windows(program: Program) -> Iterator[Any]:
    head = head_of(program)
    bodies: list[Any] = [head["ceiling"], *head["skills"].values()]
    bodies += [data["body"] for name in program.agents if (data := agent_of(program, name)) is not None]
    return (limit["window"] for body in bodies for limit in body.get("limits", ()))


def _reach(window: Any) -> float:
    if window["kind"] == "rolling":
        return float(window["seconds"])
    return _CALENDAR[window["calendar"]] if window["kind"] == "calendar" else 0.0


async def _swept(handles: Handles, failed: Callable[[str], None]) -> None:
    for name, handle in handles:
        if isinstance(handle, ConnectionPool):
            try:
                await handle.sweep()
            except Exception as error:  # noqa: BLE001 - the operator's code, which closes connections
                failed(f"connections of `{name}` could not be closed: {type(error).__name__}")
