"""Runs that fall due while the daemon is up: the operator's jobs, and what calls have left behind.

In: a `Host`, a `Schedule`, jobs of the settings. Out: runs, soonest first, until the task is cancelled. What fell due while the
daemon was down runs once.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from json import dumps
from time import time
from typing import Final

from zcpolicy.daemon.host import Host
from zcpolicy.daemon.paths.run import Ran, run_job
from zcpolicy.daemon.schedule import Job, Schedule, ScheduleError
from zcpolicy.daemon.settings import JobSettings

TICK_SECONDS: Final = 0.5
"""Seconds between two looks at the schedule."""
AGAIN_SECONDS: Final = 5.0
"""After which a job is tried again whose schedule could not be kept."""
MAX_RUNNING: Final = 20
"""Scheduled runs at a time; others begin when one of them has ended."""
MAX_RUNNING_OF_CLIENT: Final = 5
"""Scheduled runs at a time that calls of one client have left behind: they hold up no other's."""
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
    """Runs what is due, again and again: jobs beside each other, each of them once at a time. Cut off, it cuts off what runs.

    `failed`: is told of a schedule that cannot be kept; the job is tried again.
    """
    running: dict[str, asyncio.Task[None]] = {}
    clients: Counter[str] = Counter()

    def has_room(job: Job, client: str) -> bool:
        return job.id not in running and (not client or clients[client] < MAX_RUNNING_OF_CLIENT)

    async def one(job: Job, client: str) -> None:
        try:
            went = await run_job(host, schedule, job, time())
        except (ScheduleError, OSError) as error:
            failed(f"the schedule cannot be kept: {error}")
            await asyncio.sleep(AGAIN_SECONDS)
        else:
            if went is not None:
                ran(went)
        finally:
            del running[job.id]
            clients[client] -= 1

    async with asyncio.TaskGroup() as group:
        while True:
            for job in schedule.jobs:
                if host.doors.closing or len(running) >= MAX_RUNNING or job.at > time():
                    break
                client = schedule.client(job)
                if has_room(job, client):
                    clients[client] += 1
                    running[job.id] = group.create_task(one(job, client))
            await asyncio.sleep(TICK_SECONDS)
