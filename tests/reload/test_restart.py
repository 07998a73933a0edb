"""What a restart finds, whatever ended the process before."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.reload.disk import LOOSE, OTHER, TIGHT, WRONG, Disk
from tests.reload.dying import said
from zcpolicy.reload.generations import Failure
from zcpolicy.reload.kept import KeptError
from zcpolicy.reload.sources import Broken, Unreadable

ROOT = Path(__file__).parents[2]


def test_a_restart_with_the_same_policy_is_the_same_generation(disk: Disk) -> None:
    first = disk.start()
    disk.write(TIGHT)
    first.reload_now()
    since = first.status()["since"]
    first.close()
    disk.clock.now += 100
    again = disk.start().status()
    assert (again["generation"], again["since"], again["from_source"], again["failure"]) == (2, since, True, None)


def test_a_restart_with_another_policy_is_the_next_generation(disk: Disk) -> None:
    disk.start().close()
    disk.write(OTHER)
    assert disk.start().status()["generation"] == 2


@pytest.mark.parametrize(("text", "kind"), [(WRONG, "broken"), (None, "unreadable")])
def test_with_a_broken_source_the_last_good_policy_is_in_force_and_status_says_so(
    disk: Disk, text: str | None, kind: str
) -> None:
    first = disk.start()
    disk.write(TIGHT)
    first.reload_now()
    first.close()
    if text is None:
        disk.file.unlink()
    else:
        disk.write(text)
    again = disk.start()
    status = again.status()
    assert (status["generation"], status["from_source"], status["failure"]["kind"]) == (2, False, kind)
    decision = again.resolver.decide("a", "act", {})
    assert (decision.reason, decision.to_json()["generation"]) == ("denied", 2)
    assert again.resolver.decide("a", "look", {"at": "/x"}).effect == "allow"
    disk.write(TIGHT)
    again.glance()
    assert (again.status()["generation"], again.status()["from_source"], again.status()["failure"]) == (2, True, None)
    disk.write(LOOSE)
    again.glance()
    assert again.status()["generation"] == 3


def test_files_of_the_last_good_policy_stay_protected(disk: Disk) -> None:
    disk.write(LOOSE.replace("risk read", "risk high"))
    disk.start().close()
    disk.file.unlink()
    again = disk.start()
    assert again.resolver.decide("a", "look", {"at": str(disk.file)}).reason == "protected"


def test_the_number_never_goes_back(disk: Disk) -> None:
    generations = disk.start()
    for number, text in enumerate((TIGHT, LOOSE, OTHER), 2):
        disk.write(text)
        assert generations.reload_now().generation == number
    generations.close()
    disk.write(WRONG)
    again = disk.start()
    assert again.status()["generation"] == 4
    disk.write(LOOSE)
    assert again.reload_now().generation == 5


# --- what lies in the folder ----------------------------------------------------------------------------------------


def kept(disk: Disk) -> Path:
    return disk.state / "policy.generation"


def test_only_its_owner_can_read_it(disk: Disk) -> None:
    disk.start()
    assert [path.stat().st_mode & 0o777 for path in (disk.state, kept(disk))] == [0o700, 0o600]


def test_one_process_at_a_time(disk: Disk) -> None:
    first = disk.start()
    with pytest.raises(KeptError, match="in use by another process"):
        disk.start()
    first.close()
    first.close()
    disk.start()


@pytest.mark.parametrize(
    "head", [b"", b"{}", b"[]", b"\xff", b'{"format": "zcpolicy-generation 1", "generation": true}', b"[" * 9999]
)
def test_where_the_number_is_lost_nothing_starts(disk: Disk, head: bytes) -> None:
    disk.start().close()
    kept(disk).write_bytes(head + b"\n" + kept(disk).read_bytes().partition(b"\n")[2])
    with pytest.raises(KeptError, match="remove it to begin anew"):
        disk.start()


@pytest.mark.parametrize("number", [0, -1, 2**60, 1.5, "2"])
def test_a_number_that_is_none(disk: Disk, number: object) -> None:
    disk.start().close()
    head, _, body = kept(disk).read_bytes().partition(b"\n")
    kept(disk).write_bytes(json.dumps({**json.loads(head), "generation": number}).encode() + b"\n" + body)
    with pytest.raises(KeptError):
        disk.start()


def test_where_the_policy_is_damaged_its_number_still_counts(disk: Disk) -> None:
    first = disk.start()
    disk.write(TIGHT)
    first.reload_now()
    first.close()
    kept(disk).write_bytes(kept(disk).read_bytes()[:-10])
    again = disk.start()
    assert (again.status()["generation"], again.status()["from_source"]) == (3, True)
    again.close()
    kept(disk).write_bytes(kept(disk).read_bytes()[:-10])
    disk.write(WRONG)
    with pytest.raises(Unreadable, match="the policy that was kept is damaged"):
        disk.start()


def test_a_broken_source_and_nothing_kept(disk: Disk) -> None:
    disk.write(WRONG)
    with pytest.raises(Broken):
        disk.start()
    assert not kept(disk).exists()


# --- killed ---------------------------------------------------------------------------------------------------------


def after_death(folder: Path, printed: list[str]) -> None:
    """A restart that cannot read its source has one of the generations, whole, and none before the last that was told."""
    disk = Disk(folder, WRONG)
    again = disk.start()
    status, number = again.status(), max(int(line) for line in printed if line.isdecimal())
    assert status["from_source"] is False
    assert status["generation"] in (number, number + 1)
    decision = again.resolver.decide("a", "act", {})
    assert decision.rules[0].because == f"generation {status['generation']}"
    disk.write(said(0))
    done = again.reload_now()
    assert not isinstance(done, Failure)
    assert done.generation == status["generation"] + 1
    again.close()


def dying(folder: Path, *step: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.reload.dying", str(folder), *step]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(("engine", "."))}
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)


def test_killed_at_every_step_of_keeping_a_generation(tmp_path: Path) -> None:
    ended: list[int] = []
    for step in range(1, 40):
        folder = tmp_path / str(step)
        folder.mkdir()
        host = dying(folder, str(step))
        printed, _ = host.communicate(timeout=60)
        ended.append(host.returncode)
        after_death(folder, printed.split())
        if host.returncode == 0:
            break
    assert ended[-1] == 0
    assert set(ended[:-1]) == {-signal.SIGKILL}
    assert len(ended) > 8


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    host = dying(tmp_path)
    assert host.stdout is not None
    printed = [host.stdout.readline().strip()]
    time.sleep(random.Random(seed).uniform(0.05, 0.4))
    host.kill()
    rest, _ = host.communicate(timeout=60)
    after_death(tmp_path, [*printed, *(line for line in rest.splitlines() if line)])
