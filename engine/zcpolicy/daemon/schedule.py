"""What is to run later, kept as JSON in a file.

In: jobs of the operator, and what calls leave behind. Out: `Job`s as they fall due. The file is the host's own: the resolver
has to protect it (`Schedule.files`), since whoever could write it could leave out what bounds a run.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from json import dumps
from secrets import token_hex
from typing import Any, Final

from zcpolicy.call import MAX_CALL_CHARACTERS, Malformed, read_json, sound
from zcpolicy.daemon.sessions import kept
from zcpolicy.exact import is_list, is_object
from zcpolicy.facts import Session
from zcpolicy.registry.site import Site

MAX_JOBS: Final = 1_000
"""Jobs of one schedule."""
MAX_JOBS_OF_CLIENT: Final = 100
"""Jobs that calls of one client have left behind: none takes all the room."""
MAX_SCHEDULE_OF_CLIENT: Final = MAX_CALL_CHARACTERS // 10
"""Characters of those, with the sessions that they stand below."""
MAX_SCHEDULE: Final = MAX_CALL_CHARACTERS // 2
"""Characters of a schedule to which something is added. Twice as many can be kept: sessions gain labels, and jobs have to be taken off."""
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

    `origin`: the text of the `Origin` of the call that started it; "": it is the operator's. `sessions`: ids of those that
    its ticket names, outermost first.
    """

    at: float
    agent: str
    text: str
    every: float | None = None
    surface: str = "scheduled"
    origin: str = ""
    sessions: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """What bounds a run that a call started. Jobs hold it as text, which nobody alters who is shown one.

    `ticket`: of the call's execution; `site`: what was withheld from it.
    """

    ticket: Mapping[str, Any]
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
        not (is_object(found) and found.keys() == {"ticket", "site"} and is_object(found["ticket"]))
        or not (is_object(found["site"]) and found["site"].keys() == _SITE)
        or not all(type(flag) is bool for name, flag in found["site"].items() if name != "caller_allowed")
    ):
        raise ScheduleError("this is nothing that a call has left behind")
    site: dict[str, Any] = {**found["site"], "caller_allowed": None}
    return Origin(found["ticket"], Site(**site))


Line = tuple[Session | Mapping[str, Any], ...]
"""The sessions that a job stands below, outermost first: as they are, or as they were saved."""


class Schedule:
    """Jobs, and the file that they are kept in, with the sessions that they stand below: as those were when the call was
    made, and with the labels and skills of now. Raises ScheduleError, OSError for a file that cannot be read.
    """

    def __init__(self, file: str) -> None:
        self._file = os.path.abspath(file)
        jobs, self._saved = _read(self._file)
        self._jobs = {job.id: job for job in jobs}
        self._live: dict[str, Session] = {}

    @staticmethod
    def files(file: str) -> tuple[str, str]:
        """What the resolver has to protect."""
        whole = os.path.abspath(file)
        return (whole, _unfinished(whole))

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Soonest first."""
        return tuple(sorted(self._jobs.values(), key=lambda job: job.at))

    def add(self, job: Job, line: Sequence[Session] = ()) -> str:
        """Its id. `line`: the sessions that it stands below, outermost first. Raises ScheduleError, FactsError, OSError."""
        if len(self._jobs) >= MAX_JOBS:
            raise ScheduleError(f"there are {MAX_JOBS} jobs already")
        made = _sound(replace(job, id=token_hex(8), sessions=tuple(one.id for one in line)))
        jobs, saved = {**self._jobs, made.id: made}, {**self._saved, **{one.id: kept(one) for one in line}}
        theirs = {name: one for name, one in jobs.items() if line and _client(one, saved) == line[-1].client != ""}
        if len(theirs) > MAX_JOBS_OF_CLIENT or len(_written(theirs, saved)) > MAX_SCHEDULE_OF_CLIENT:
            raise ScheduleError("this client has as much to run later as it may")
        if len(_written(jobs, saved)) > MAX_SCHEDULE:
            raise ScheduleError(f"a schedule has at most {MAX_SCHEDULE} characters")
        self._save(jobs, saved)
        self.follow(line)
        return made.id

    def hold(self, prefix: str, jobs: Iterable[Job]) -> None:
        """Of the jobs whose ids begin so, these are there from now on: one that is known stays due when it was. They are nobody's
        but the operator's. Raises ScheduleError, OSError.
        """
        wanted = {job.id: _sound(self._jobs.get(job.id, job)) for job in jobs}
        if len(wanted) > MAX_JOBS or not all(
            name.startswith(prefix) and not job.origin for name, job in wanted.items()
        ):
            raise ScheduleError("these are no jobs of the operator that can be kept")
        others = {name: job for name, job in self._jobs.items() if not name.startswith(prefix)}
        if (held := {**others, **wanted}) != self._jobs:
            self._save(held, self._saved)

    def remove(self, job: str) -> None:
        """It is not wanted any more."""
        if job in self._jobs:
            self._save({name: one for name, one in self._jobs.items() if name != job}, self._saved)

    def take(self, job: Job, now: float) -> Line | None:
        """Takes a job off, or puts it ahead, before it runs: so it runs once at most. None: somebody else has.

        Gives the sessions that it stands below. Raises ScheduleError, OSError.
        """
        if self._jobs.get(job.id) is not job or job.at > now:
            return None
        line = tuple(self._live.get(name) or self._saved[name] for name in job.sessions)
        jobs = {name: one for name, one in self._jobs.items() if name != job.id}
        if job.every is not None:
            jobs[job.id] = replace(job, at=now + job.every)
        self._save(jobs, self._saved)
        return line

    def client(self, job: Job) -> str:
        """The id of the client whose call started a job; "": it is the operator's."""
        return _client(job, self._saved)

    def follow(self, line: Iterable[Session]) -> None:
        """From now on what these sessions are marked with is known to the jobs that stand below them."""
        self._live.update({one.id: one for one in line if one.id in self._saved})

    def keep(self) -> None:
        """Writes down what sessions have gained meanwhile. Raises ScheduleError, OSError."""
        if self._grown(self._saved) != self._saved:
            self._save(self._jobs, self._saved)

    def _grown(self, saved: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """Sessions with the labels and skills of now: neither is ever taken off one."""
        return {
            name: {**one, "labels": sorted(live.labels), "skills": sorted(live.skills)}
            if (live := self._live.get(name)) is not None
            else one
            for name, one in saved.items()
        }

    def _save(self, jobs: dict[str, Job], sessions: Mapping[str, Mapping[str, Any]]) -> None:
        """Whole, or not at all. Raises ScheduleError, OSError; then all is what it was."""
        saved = self._grown(_named(jobs, sessions))
        text = _written(jobs, saved)
        if len(text) > MAX_CALL_CHARACTERS:
            raise ScheduleError(f"a schedule has at most {MAX_CALL_CHARACTERS} characters")
        unfinished = _unfinished(self._file)
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(unfinished, self._file)
        self._jobs, self._saved = jobs, saved
        self._live = {name: one for name, one in self._live.items() if name in saved}


def _named(jobs: Mapping[str, Job], sessions: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The sessions that some of the jobs stand below."""
    named = {name for job in jobs.values() for name in job.sessions}
    return {name: one for name, one in sessions.items() if name in named}


def _written(jobs: Mapping[str, Job], sessions: Mapping[str, Mapping[str, Any]]) -> str:
    return dumps({"jobs": [asdict(job) for job in jobs.values()], "sessions": _named(jobs, sessions)})


def _client(job: Job, sessions: Mapping[str, Mapping[str, Any]]) -> str:
    return str(sessions[job.sessions[-1]].get("client", "")) if job.sessions else ""


def _at_once(file: str, flags: int) -> int:
    return os.open(
        file, flags | os.O_NONBLOCK | os.O_CLOEXEC
    )  # a pipe would keep the daemon from starting, and from ending


def _read(file: str) -> tuple[list[Job], dict[str, Mapping[str, Any]]]:
    """A file that is not there is an empty schedule; one that is broken is not."""
    text = '{"jobs": [], "sessions": {}}'
    with suppress(FileNotFoundError), open(file, encoding="utf-8", opener=_at_once) as lines:
        text = lines.read()
    try:
        found = read_json(text)
    except Malformed as wrong:
        raise ScheduleError(f"the schedule cannot be read: {wrong}") from None
    if not is_object(found) or found.keys() != {"jobs", "sessions"}:
        raise ScheduleError("the schedule is none")
    jobs, sessions = found["jobs"], found["sessions"]
    if not (is_list(jobs) and is_object(sessions) and all(map(is_object, sessions.values()))):
        raise ScheduleError("the schedule is none")
    made = [_job(one) for one in jobs]
    if not all(name in sessions for job in made for name in job.sessions):
        raise ScheduleError("the schedule has a job whose sessions it has not")
    return made, sessions


_NAMES: Final = frozenset(one.name for one in fields(Job))
_SITE: Final = frozenset(one.name for one in fields(Site))


def _job(saved: object) -> Job:
    if not is_object(saved) or saved.keys() != _NAMES or not is_list(saved["sessions"]):
        raise ScheduleError("the schedule holds what is no job")
    parts: dict[str, Any] = {**saved, "sessions": tuple(saved["sessions"])}
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
    texts = texts and all(type(one) is str for one in job.sessions)
    if not (every and texts and _is_number(job.at) and job.surface in SURFACES):
        raise ScheduleError("this is no job that can be kept")
    return job


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, Decimal) and 0 <= value <= MAX_TIME_SECONDS


def _unfinished(file: str) -> str:
    return f"{file}.new"
