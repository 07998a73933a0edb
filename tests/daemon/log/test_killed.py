"""Writers that are killed at any moment: what they were told is on record is there, and the chain goes on."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from zcpolicy.daemon.log.chain import LogError
from zcpolicy.daemon.log.place import line_files
from zcpolicy.daemon.log.show import Reader
from zcpolicy.daemon.log.verify import verify

from .scene import DAY, Clock, did, entries, event, filled, opened, problems

ROOT = Path(__file__).resolve().parents[3]
FIRST = "decisions-000000000001.jsonl"


def killed(folder: Path, sync: str, size: int, keep: int, after: float) -> int:
    """Starts a writer, kills it after some seconds, and says the last event that it was told is on record."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.daemon.log.writer", str(folder), sync, str(size), str(keep)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'engine'}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    told = [int(process.stdout.readline())]
    threading.Timer(after, process.send_signal, (signal.SIGKILL,)).start()
    told += [int(line) for line in process.stdout if line.endswith("\n")]
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    return told[-1]


@pytest.mark.parametrize(
    ("sync", "size", "keep"),
    [("interval", 10**8, 0), ("interval", 65_536, 0), ("interval", 65_536, 2), ("every", 65_536, 0)],
)
def test_a_writer_killed_at_any_moment(sync: str, size: int, keep: int, tmp_path: Path) -> None:
    for round_ in range(5):
        last = killed(tmp_path, sync, size, keep, 0.01 + 0.037 * round_)
        assert problems(tmp_path) == []
        numbers = [entry["data"]["number"] for entry in entries_whole(tmp_path) if entry["kind"] == "call"]
        assert numbers[-1] in (last, last + 1), "what was told to be on record is; what was being written may be"
        assert not keep or len(line_files(str(tmp_path))) <= keep + 1
    opened(tmp_path).close()
    assert problems(tmp_path) == []
    assert keep or did_of_all(tmp_path).count("started") == 6


def entries_whole(folder: Path) -> list[dict[str, Any]]:
    """As `entries`, without a torn end."""
    return [dict(line.entry) for _, line in Reader(folder).more() if line is not None]


def did_of_all(folder: Path) -> list[str]:
    return [entry["data"]["did"] for entry in entries_whole(folder) if entry["kind"] == "log"]


def torn(folder: Path, by: int) -> bytes:
    """Ends a log as a kill would: the head does not know the last line, of which `by` bytes are missing."""
    log = filled(folder, 3)
    path = folder / FIRST
    whole = path.read_bytes()
    end = whole.splitlines(keepends=True)[-1]
    path.write_bytes(whole[: -len(end)] + end[:-by])
    (folder / "head").write_text(
        f'{{"seq":{log.head.seq - 1},"sha256":"{entries(folder)[-2]["sha256"] if by == 1 else before(whole)}"}}'.ljust(
            127
        )
        + "\n"
    )
    return end[:-by]


def before(whole: bytes) -> str:
    return whole.splitlines()[-2][-66:-2].decode()


@pytest.mark.parametrize("by", [2, 3, 70, 100, 150])
def test_a_torn_line_is_kept_aside_and_told(by: int, tmp_path: Path) -> None:
    left = torn(tmp_path, by)
    (note,) = verify(tmp_path).notes
    assert note.text == "torn: its writer was killed, or is writing it; the next start tells it"
    assert problems(tmp_path) == []
    with opened(tmp_path) as log:
        log(event())
    lines = (tmp_path / FIRST).read_bytes().splitlines()
    assert lines[5] == left
    said = entries_whole(tmp_path)[5]["data"]
    assert said["did"] == "started"
    (one,) = said["torn"]
    assert (one["bytes"], one["text"]) == (len(left), left.decode())
    assert problems(tmp_path) == []
    assert [note.text for note in verify(tmp_path).notes] == ["torn by a writer that was killed; line 6 tells it"]


def test_a_torn_line_is_told_by_the_next_file_too(tmp_path: Path) -> None:
    torn(tmp_path, 50)
    clock = Clock()
    clock.now += DAY
    opened(tmp_path, clock=clock).close()
    assert len(line_files(str(tmp_path))) == 2
    assert problems(tmp_path) == []
    assert [note.text for note in verify(tmp_path).notes] == ["torn by a writer that was killed; line 6 tells it"]


def test_a_line_that_lacks_but_its_break_is_whole(tmp_path: Path) -> None:
    torn(tmp_path, 1)
    assert problems(tmp_path) == []
    opened(tmp_path).close()
    assert problems(tmp_path) == []
    assert did(tmp_path) == ["file", "started", "stopped", "started", "stopped"]


def test_a_torn_line_is_answered_for_only_as_it_was(tmp_path: Path) -> None:
    torn(tmp_path, 50)
    opened(tmp_path).close()
    path = tmp_path / FIRST
    path.write_bytes(path.read_bytes().replace(b'"did":"stopped"}', b'"did":"Stopped"}', 1))
    assert problems(tmp_path) == [f"{FIRST}:6: 6: it is no line of a log"]


def test_killed_while_it_began_a_file(tmp_path: Path) -> None:
    """The new file is there, empty or with a part of its first line."""
    log = filled(tmp_path, 3)
    for content in (b"", b'{"at":"2027'):
        name = f"decisions-{log.head.seq + 1:012}.jsonl"
        (tmp_path / name).write_bytes(content)
        assert problems(tmp_path) == []
        log = filled(tmp_path, 3)
        assert problems(tmp_path) == []
    assert did_of_all(tmp_path) == ["file", "started", "stopped"] * 3
    log = filled(tmp_path, 1)
    assert len(line_files(str(tmp_path))) == 3, "a file that begins with a torn line is gone on with"
    assert problems(tmp_path) == []


@pytest.mark.parametrize("garbage", [b"x" * 17_000_000, b"x\n" * 60], ids=["long", "many"])
def test_what_no_writer_leaves_is_not_gone_on_with(garbage: bytes, tmp_path: Path) -> None:
    filled(tmp_path, 1)
    with (tmp_path / FIRST).open("ab") as file:
        file.write(garbage)
    with pytest.raises(LogError, match="does not end in lines of a log"):
        opened(tmp_path)


def test_odd_bytes_of_many_kills(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    with (tmp_path / FIRST).open("ab") as file:
        file.write(b"\x00\xff\x1b" * 2_000 + b"\n" + b"\xf0" * 30_000 + b"\n\n" + b"{")
    opened(tmp_path).close()
    assert problems(tmp_path) == []
    assert len(verify(tmp_path).notes) == 4
