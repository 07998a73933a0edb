"""The file of what is to run later: what it holds, what it refuses, and that a broken one is not an empty one."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import NOON
from zcpolicy.daemon.schedule import MAX_JOBS, Job, Origin, Schedule, ScheduleError
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


def test_jobs_are_counted(tmp_path: Path) -> None:
    schedule = Schedule(str(tmp_path / "jobs.json"))
    schedule._jobs = {str(number): Job(NOON, "worker", "x", id=str(number)) for number in range(MAX_JOBS)}
    with pytest.raises(ScheduleError, match="1000 jobs already"):
        schedule.add(Job(NOON, "worker", "x"))
