"""The file of what is to run later: what it holds, what it refuses, and that a broken one is not an empty one."""

import asyncio
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import NOON, World
from zcpolicy import Session
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.schedule import (
    MAX_JOB_CHARACTERS,
    MAX_JOBS,
    MAX_JOBS_OF_CLIENT,
    Job,
    Origin,
    Schedule,
    ScheduleError,
)
from zcpolicy.daemon.timekeeping import MAX_RUNNING_OF_CLIENT, keep_time
from zcpolicy.registry.site import OPEN


def test_a_schedule_is_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    file = str(tmp_path / "jobs.json")
    schedule = Schedule(file)
    kept = schedule.add(Job(NOON, "worker", "say “hé”", every=3_600.0))
    gone = schedule.add(Job(NOON + 0.5, "worker", "b"))
    schedule.remove(gone)
    assert Schedule(file).jobs == schedule.jobs
    assert [job.id for job in Schedule(file).jobs] == [kept]
    assert Schedule.files(file) == (file, f"{file}.new")
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600


SOUND: Mapping[str, Any] = {
    "at": 1, "agent": "a", "text": "b", "every": None, "surface": "scheduled", "origin": "", "sessions": [], "id": "x",
}  # fmt: skip


def kept_as(*jobs: object, sessions: object = {}) -> str:
    return json.dumps({"jobs": jobs, "sessions": sessions})


BROKEN = {
    "no JSON": "{",
    "no object": "[]",
    "parts missing": "{}",
    "no list of jobs": json.dumps({"jobs": {}, "sessions": {}}),
    "no job": kept_as(1),
    "sessions that are none": kept_as(SOUND, sessions=[]),
    "a session that is none": kept_as(SOUND, sessions={"s": 1}),
    "a session that is not there": kept_as({**SOUND, "sessions": ["s"]}),
    "a session that has no name": kept_as({**SOUND, "sessions": [1]}),
    "a part too many": kept_as({**SOUND, "narrowing": None}),
    "a part of another kind": kept_as({**SOUND, "at": "1"}),
    "a surface that is none": kept_as({**SOUND, "surface": "channel"}),
    "an origin that is none": kept_as({**SOUND, "origin": "{}"}),
    "an origin that is no text": kept_as({**SOUND, "origin": {}}),
    "a site that is none": kept_as({**SOUND, "origin": Origin({}, OPEN).text().replace("true", "1")}),
}


def test_a_schedule_that_is_sound_is_read(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(kept_as(SOUND, sessions={"s": {}}), "utf-8")
    assert [job.text for job in Schedule(str(file)).jobs] == ["b"]


@pytest.mark.parametrize("case", BROKEN)
def test_a_schedule_that_is_broken_is_not_an_empty_one(case: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(BROKEN[case], "utf-8")
    with pytest.raises(ScheduleError):
        Schedule(str(file))


UNFIT = {
    "at no time": Job(float("nan"), "worker", "x"),
    "at the end of time": Job(float("inf"), "worker", "x"),
    "all the time": Job(NOON, "worker", "x", every=0.0),
    "too long": Job(NOON, "worker", "x" * 10_001),
    "on another path": Job(NOON, "worker", "x", surface="rpc"),
    "text that cannot be written": Job(NOON, "worker", "\ud800"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_cannot_be_kept(case: str, tmp_path: Path) -> None:
    schedule = Schedule(str(tmp_path / "jobs.json"))
    with pytest.raises(ScheduleError):
        schedule.add(UNFIT[case])
    assert schedule.jobs == ()


def test_a_pipe_is_no_schedule_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "jobs.json")
    with pytest.raises(ScheduleError):
        Schedule(str(tmp_path / "jobs.json"))


def left(text: str = "x", at: float = NOON, every: float | None = None) -> Job:
    """As a call leaves it behind."""
    return Job(at, "worker", text, every, origin=Origin({}, OPEN).text())


def filled(schedule: Schedule, job: Job, line: Session) -> None:
    for _ in range(MAX_JOBS_OF_CLIENT):
        schedule.add(job, (line,))


def test_one_client_does_not_take_all_the_room(tmp_path: Path) -> None:
    """Neither by how many jobs its calls leave behind, nor by how long they are."""
    ann, bob = Session(client="ann", id="a"), Session(client="bob", id="b")
    schedule = Schedule(str(tmp_path / "jobs.json"))
    filled(schedule, left(), ann)
    with pytest.raises(ScheduleError, match="this client has as much to run later as it may"):
        schedule.add(left(), (ann,))
    with pytest.raises(ScheduleError, match="this client has as much to run later as it may"):
        filled(schedule, left("x" * MAX_JOB_CHARACTERS), bob)
    schedule.add(left(), (Session(client="eve", id="c"),))
    schedule.add(Job(NOON, "worker", "the operator's"))


def test_what_sessions_gain_keeps_no_job_from_being_taken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file as long as may be, a client that marks its session: all the other jobs would wait for ever."""
    monkeypatch.setattr("zcpolicy.daemon.schedule.MAX_SCHEDULE", 1_500)
    schedule, ann = Schedule(str(tmp_path / "jobs.json")), Session(client="ann", id="a")
    with pytest.raises(ScheduleError, match="a schedule has at most 1500 characters"):
        filled(schedule, left(every=1.0), ann)
    ann.mark(f"label{number}" for number in range(200))
    job, *_ = schedule.jobs
    assert schedule.take(job, NOON) is not None
    schedule.keep()


def test_runs_of_one_client_hold_up_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    async def takes_long(_host: Host, schedule: Schedule, job: Job, _now: float) -> None:
        begun.append(schedule.client(job))
        await asyncio.sleep(600)

    async def story() -> None:
        monkeypatch.setattr("zcpolicy.daemon.timekeeping.run_job", takes_long)
        world = World("agent worker { allow file_read }\nagent free { allow file_read }", tmp_path)
        schedule = Schedule(str(tmp_path / "jobs.json"))
        for client in ["ann"] * 30 + ["bob", ""]:
            at = NOON - 60 + len(schedule.jobs)
            if client:
                schedule.add(left(at=at), (Session(client=client, id=client),))
            else:
                schedule.add(Job(at, "worker", "the operator's"))
        monkeypatch.setattr("zcpolicy.daemon.timekeeping.time", lambda: NOON)
        timing = asyncio.create_task(keep_time(world.host, schedule, print))
        await asyncio.sleep(0.2)
        timing.cancel()
        await asyncio.wait((timing,))

    asyncio.run(story())
    assert begun == ["ann"] * MAX_RUNNING_OF_CLIENT + ["bob", ""]


def test_jobs_are_counted(tmp_path: Path) -> None:
    schedule = Schedule(str(tmp_path / "jobs.json"))
    schedule._jobs = {str(number): Job(NOON, "worker", "x", id=str(number)) for number in range(MAX_JOBS)}
    with pytest.raises(ScheduleError, match="1000 jobs already"):
        schedule.add(Job(NOON, "worker", "x"))
