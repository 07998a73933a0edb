"""What is to run later, kept as JSON in a file.

In: jobs of the operator, and what calls leave behind. Out: `Job`s as they fall due. The file is the host's own: the resolver
has to protect it (`Schedule.files`), since whoever could write it could leave out what bounds a run.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from json import dumps
from secrets import token_hex
from typing import Any, Final

from zcpolicy.call import MAX_CALL_CHARACTERS, Malformed, read_json, sound
from zcpolicy.daemon.order import Site
from zcpolicy.exact import is_list, is_object

MAX_JOBS: Final = 1_000
"""Jobs of one schedule."""
MAX_JOB_CHARACTERS: Final = 10_000
"""Characters of the text of one job."""
MIN_EVERY_SECONDS: Final = 1.0
"""Seconds between two runs of one job."""
MAX_TIME_SECONDS: Final = 1e12
"""Seconds since the epoch at which a job may be due, and between two runs of it."""

SURFACES: Final = ("scheduled", "heartbeat")


class ScheduleError(ValueError):
    """A job that cannot be kept, or a file that is no schedule. The message says why, lower case, no full stop."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run that is due `at` (seconds since the epoch), and then `every` so many seconds; None: once.

    `origin`: the text of the `Origin` of the call that started it; "": it is the operator's.
    """

    at: float
    agent: str
    text: str
    every: float | None = None
    surface: str = "scheduled"
    origin: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """What bounds a run that a call started. Jobs hold it as text, which nobody alters who is shown one.

    `ticket`: of the call's execution; `sessions`: those that it names, as they were then; `site`: what was withheld from it.
    """

    ticket: Mapping[str, Any]
    sessions: tuple[Mapping[str, Any], ...]
    site: Site

    def text(self) -> str:
        """JSON. The allow list of the site is left out: it is a narrowing of the ticket (`order.bounds`)."""
        return dumps(asdict(replace(self, site=replace(self.site, caller_allowed=None))))


def origin_of(text: object) -> Origin:
    """What `Origin.text` gave. Raises ScheduleError for anything else."""
    try:
        found = read_json(text) if isinstance(text, str) else None
    except Malformed:
        found = None
    if (
        not is_object(found)
        or found.keys() != {one.name for one in fields(Origin)}
        or not (is_object(found["ticket"]) and is_list(found["sessions"]) and all(map(is_object, found["sessions"])))
        or not (is_object(found["site"]) and found["site"].keys() == _SITE)
        or not all(type(kept) is bool for name, kept in found["site"].items() if name != "caller_allowed")
    ):
        raise ScheduleError("this is nothing that a call has left behind")
    site: dict[str, Any] = {**found["site"], "caller_allowed": None}
    return Origin(found["ticket"], tuple(found["sessions"]), Site(**site))


class Schedule:
    """Jobs, and the file that they are kept in. Raises ScheduleError, OSError for a file that cannot be read."""

    def __init__(self, file: str) -> None:
        self._file = os.path.abspath(file)
        self._jobs = {job.id: job for job in _read(self._file)}

    @staticmethod
    def files(file: str) -> tuple[str, str]:
        """What the resolver has to protect."""
        whole = os.path.abspath(file)
        return (whole, _unfinished(whole))

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Soonest first."""
        return tuple(sorted(self._jobs.values(), key=lambda job: job.at))

    def add(self, job: Job) -> str:
        """Its id. Raises ScheduleError, OSError."""
        if len(self._jobs) >= MAX_JOBS:
            raise ScheduleError(f"there are {MAX_JOBS} jobs already")
        made = _sound(replace(job, id=token_hex(8)))
        self._save({**self._jobs, made.id: made})
        return made.id

    def remove(self, job: str) -> None:
        """It is not wanted any more."""
        if job in self._jobs:
            self._save({name: one for name, one in self._jobs.items() if name != job})

    def take(self, job: Job, now: float) -> bool:
        """Takes a job off, or puts it ahead, before it runs: so it runs once at most. False: somebody else has."""
        if self._jobs.get(job.id) is not job or job.at > now:
            return False
        jobs = {name: one for name, one in self._jobs.items() if name != job.id}
        if job.every is not None:
            jobs[job.id] = replace(job, at=now + job.every)
        self._save(jobs)
        return True

    def _save(self, jobs: dict[str, Job]) -> None:
        """Whole, or not at all. Raises ScheduleError, OSError; then the jobs are what they were."""
        text = dumps([asdict(job) for job in jobs.values()])
        if len(text) > MAX_CALL_CHARACTERS:
            raise ScheduleError(f"a schedule has at most {MAX_CALL_CHARACTERS} characters")
        unfinished = _unfinished(self._file)
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(unfinished, self._file)
        self._jobs = jobs


def _read(file: str) -> list[Job]:
    """A file that is not there is an empty schedule; one that is broken is not."""
    text = "[]"
    with suppress(FileNotFoundError), open(file, encoding="utf-8") as lines:
        text = lines.read()
    try:
        found = read_json(text)
    except Malformed as wrong:
        raise ScheduleError(f"the schedule cannot be read: {wrong}") from None
    if not is_list(found):
        raise ScheduleError("the schedule is no list of jobs")
    return [_job(one) for one in found]


_NAMES: Final = frozenset(one.name for one in fields(Job))
_SITE: Final = frozenset(one.name for one in fields(Site))


def _job(saved: object) -> Job:
    if not is_object(saved) or saved.keys() != _NAMES:
        raise ScheduleError("the schedule holds what is no job")
    parts: dict[str, Any] = {**saved}
    for name in ("at", "every"):
        if _is_number(parts[name]):
            parts[name] = float(parts[name])
    return _sound(Job(**parts))


def _sound(job: Job) -> Job:
    """The job, if every part of it is what it should be."""
    every = job.every is None or (_is_number(job.every) and job.every >= MIN_EVERY_SECONDS)
    texts = all(
        type(one) is str and sound(one) and len(one) <= MAX_JOB_CHARACTERS for one in (job.agent, job.text, job.id)
    )
    if job.origin != "":
        origin_of(job.origin)
    if not (every and texts and _is_number(job.at) and job.surface in SURFACES):
        raise ScheduleError("this is no job that can be kept")
    return job


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, Decimal) and 0 <= value <= MAX_TIME_SECONDS


def _unfinished(file: str) -> str:
    return f"{file}.new"
