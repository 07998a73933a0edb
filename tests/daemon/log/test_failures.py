"""Where nothing can be written nothing is permitted; when it can be again, the chain goes on without a gap."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.daemon.world import World, turn
from zcpolicy.daemon.log.chain import LogError
from zcpolicy.daemon.log.place import line_files
from zcpolicy.loop.scripted import calls

from .scene import did, entries, event, opened, problems

ROOT = Path(__file__).resolve().parents[3]
FIRST = "decisions-000000000001.jsonl"


def numbers(folder: Path) -> list[int]:
    return [entry["data"]["number"] for entry in entries(folder) if entry["kind"] == "call"]


def test_a_full_disk(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'engine'}"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.daemon.log.full", str(tmp_path)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    refused = json.loads(ran.stdout)
    assert len(refused) == 5
    assert refused[0] == f"the log in `{tmp_path}` cannot be written: no space left on device"
    assert numbers(tmp_path) == [0, 6]
    assert did(tmp_path) == ["file", "started", "resumed", "stopped"]
    assert entries(tmp_path)[3]["data"]["refused"] == 5
    assert problems(tmp_path) == []


def test_a_folder_that_vanishes_and_comes_back(tmp_path: Path) -> None:
    folder, away = tmp_path / "log", tmp_path / "away"
    with opened(folder) as log:
        log(event(number=0))
        folder.rename(away)
        for _ in range(3):
            with pytest.raises(LogError, match="cannot be written"):
                log(event(number=1))
        assert not folder.exists()
        away.rename(folder)
        log(event(number=2))
    assert numbers(folder) == [0, 2]
    assert entries(folder)[3]["data"] == {"did": "resumed", "refused": 3, "why": entries(folder)[3]["data"]["why"]}
    assert problems(folder) == []


def test_a_folder_that_comes_back_empty(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with opened(folder) as log:
        log(event(number=0))
        folder.rename(tmp_path / "away")
        with pytest.raises(LogError):
            log(event(number=1))
        folder.mkdir()
        log(event(number=2))
    assert numbers(folder) == [2]
    assert problems(folder) == [
        "decisions-000000000004.jsonl:1: 4: when the log was opened, lines 1 to 3 were missing",
        ".:0: 0: lines 1 to 3 are missing, and not on record as removed",
    ]


def test_the_file_taken_away_under_the_writer(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log(event(number=0))
        (tmp_path / FIRST).unlink()
        with pytest.raises(LogError, match="no such file"):
            log(event(number=1))
        log(event(number=2))
    assert any("lines 1 to 3 are missing" in one for one in problems(tmp_path))


def test_somebody_else_writes_into_the_file(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log(event(number=0))
        with (tmp_path / FIRST).open("ab") as file:
            file.write(b"hello\n")
        with pytest.raises(LogError, match="changed"):
            log(event(number=1))
        log(event(number=2))
    whole = [json.loads(line) for line in (tmp_path / FIRST).read_text("utf-8").splitlines() if line != "hello"]
    assert [entry["data"]["did"] for entry in whole if entry["kind"] == "log"] == [
        "file",
        "started",
        "resumed",
        "stopped",
    ]
    (resumed,) = [entry["data"] for entry in whole if entry["data"].get("did") == "resumed"]
    assert resumed["torn"][0]["text"] == "hello", "it stays, and the record says so"


def test_the_file_of_the_head_taken_away_under_the_writer(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log(event(number=0))
        (tmp_path / "head").unlink()
        with pytest.raises(LogError, match="head was removed"):
            log(event(number=1))
        log(event(number=2))
    assert numbers(tmp_path) == [0, 2]
    assert problems(tmp_path) == [f"{FIRST}:4: 4: when the log was opened, the head was missing"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """As another user, where the tests run as one who may write everywhere."""
    (tmp_path / "log").mkdir()
    child = os.fork()
    if not child:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65_534)
            else:
                (tmp_path / "log").chmod(0o500)
            opened(tmp_path / "log")
        except LogError as error:
            status = 7 if str(error).endswith("cannot be written: permission denied") else 8
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    (tmp_path / "log").chmod(0o700)


def test_a_folder_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no such file or directory"):
        opened(tmp_path / "a" / "log")


def test_a_disk_that_cannot_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync that fails behind the writer's back is on record with the next event."""
    with opened(tmp_path, interval=0.01) as log:
        with monkeypatch.context() as patch:
            patch.setattr("zcpolicy.daemon.log.chain.flush", _fails)
            log(event(number=0))
            time.sleep(0.2)
        log(event(number=1))
    assert numbers(tmp_path) == [0, 1]
    assert entries(tmp_path)[3]["data"] == {"did": "resumed", "refused": 0, "why": "[Errno 5] bad disk"}
    assert problems(tmp_path) == []


def _fails(_descriptor: int) -> None:
    raise OSError(5, "bad disk")


def test_an_interrupt_between_a_line_and_its_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as log:
        log(event(number=0))
        with monkeypatch.context() as patch:
            patch.setattr("zcpolicy.daemon.log.files.LogFiles._anchor", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                log(event(number=1))
        log(event(number=2))
    assert numbers(tmp_path) == [0, 1, 2]
    assert problems(tmp_path) == []


def _interrupted(*_of: object) -> None:
    raise KeyboardInterrupt


# --- with a real host -----------------------------------------------------------------------------------------------------


def test_what_cannot_be_recorded_does_not_run(tmp_path: Path) -> None:
    async def story() -> None:
        world = World("agent worker { allow shell }\nagent free { allow post }\n", tmp_path)
        with opened(tmp_path / "log") as log:
            world.host.record = log
            world.script("worker", calls(("shell", {"command": "ls"})), "done")
            await turn("run", world)
            assert world.ran == [("worker", "shell")]
            (tmp_path / "log").rename(tmp_path / "away")
            world.script("worker", calls(("shell", {"command": "ls"})), "done")
            await turn("run", world)
            assert world.ran == [("worker", "shell")]
            (tmp_path / "away").rename(tmp_path / "log")
            world.script("worker", calls(("shell", {"command": "curl -u ann:hunter2 x"})), "done")
            await turn("run", world)
            assert len(world.ran) == 2
        assert problems(tmp_path / "log") == []
        phases = [entry["data"]["phase"] for entry in entries(tmp_path / "log") if entry["kind"] == "call"]
        assert phases == ["admitted", "started", "finished"] * 2
        assert "hunter2" not in (tmp_path / "log" / line_files(str(tmp_path / "log"))[0]).read_text("utf-8")

    asyncio.run(story())
