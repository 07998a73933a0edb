"""Runs that fall due while the daemon is up: the operator's jobs, and what calls have left behind.

In: a `Host`, a `Schedule`, jobs of the settings. Out: runs, soonest first, until the task is cancelled. What fell due while the
daemon was down runs once.
"""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha256
from json import dumps
from time import time
from typing import Final

from zcpolicy.daemon.host import Host
from zcpolicy.daemon.paths.run import Ran, run_due
from zcpolicy.daemon.schedule import Job, Schedule, ScheduleError
from zcpolicy.daemon.settings import JobSettings

TICK_SECONDS: Final = 0.5
"""Seconds between two looks at the schedule."""
OF_SETTINGS: Final = "settings "
"""How the ids of the operator's jobs begin."""


def jobs_of(settings: Sequence[JobSettings], now: float) -> tuple[Job, ...]:
    """The operator's jobs. Each is first due one period from now, unless the schedule knows it already."""
    return tuple(
        Job(
            now + job.every,
            job.agent,
            job.text,
            job.every,
            "heartbeat" if job.heartbeat else "scheduled",
            id=OF_SETTINGS + sha256(dumps([job.agent, job.text, job.every, job.heartbeat]).encode()).hexdigest()[:16],
        )
        for job in settings
    )


async def keep_time(
    host: Host, schedule: Schedule, failed: Callable[[str], None], ran: Callable[[Ran], None] = lambda _ran: None
) -> None:
    """Runs what is due, again and again. `failed`: is told of a schedule that cannot be kept; it is tried again."""
    while True:
        if not host.doors.closing:
            try:
                for one in await run_due(host, schedule, time()):
                    ran(one)
            except (ScheduleError, OSError) as error:
                failed(str(error))
        await asyncio.sleep(TICK_SECONDS)
