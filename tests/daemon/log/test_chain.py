"""What is on record, and that nothing can be done to it unnoticed."""

import json
import os
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
import rfc8785

from zcpolicy.daemon.log.chain import DecisionLog, LogError
from zcpolicy.daemon.log.line import Head, write
from zcpolicy.daemon.log.place import files
from zcpolicy.daemon.log.verify import verify
from zcpolicy.identity import Identity

from .scene import call, did, entries, event, filled, identity, opened, problems, said

FIRST = "decisions-000000000001.jsonl"


def lines(folder: Path) -> list[str]:
    return (folder / FIRST).read_text("utf-8").splitlines(keepends=True)


def test_what_a_line_says(tmp_path: Path) -> None:
    with opened(tmp_path / "log") as log:
        log(call({"command": "git status"}, ok=True))
        log.note("reloaded", generation=7)
    first, started, told, host, stopped = entries(tmp_path / "log")
    assert first["data"] == {
        "did": "file", "format": "zcpolicy-log 1", "gone": {"files": 0, "lines": 0, "head": "0" * 64},
    }  # fmt: skip
    assert told == {
        "seq": 3, "prev": started["sha256"], "sha256": told["sha256"], "at": "2027-01-15T08:00:00.000000Z",
        "clock": "2027-01-15T08:00:00.000000Z", "kind": "call",
        "identity": {"agent": "coder", "client": "ann", "session": "s1", "turn": "t1", "surface": "rpc", "depth": 0, "line": []},
        "data": {
            "phase": "admitted", "key": "k.1", "ok": True,
            "decision": {
                "effect": "allow", "reason": "allowed", "tool": "shell", "arguments": {"command": "git status"},
                "rules": ["team.zcpolicy:3"], "digest": "ab" * 32,
            },
        },
    }  # fmt: skip
    assert (host["kind"], host["data"]) == ("host", {"did": "reloaded", "generation": 7})
    assert stopped["data"] == {"did": "stopped"}
    assert verify(tmp_path / "log").is_sound


def test_lines_are_canonical_and_hashed_without_their_hash(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log(call({"é": "😀\n", "n": 1.5, "big": 2**70, "tiny": 1e-9, "list": [True, None]}))
    before = "0" * 64
    for raw, entry in zip((tmp_path / FIRST).read_bytes().splitlines(), entries(tmp_path), strict=True):
        assert raw == rfc8785.dumps(entry)
        digest = entry.pop("sha256")
        assert sha256(rfc8785.dumps(entry)).hexdigest() == digest
        assert entry["prev"] == before
        before = digest


def altered(text: str) -> str:
    return text.replace('"number":3', '"number":4')


def rewritten(text: str) -> str:
    """Altered, with a hash that fits."""
    entry = json.loads(altered(text))
    seq, prev = entry.pop("seq"), entry.pop("prev")
    del entry["sha256"]
    return write(Head(seq - 1, prev), entry)[0].decode()


# A log of ten events: line 1 opens the file, 2 starts, 3 to 12 are events 0 to 9, 13 stops.
TAMPERED: dict[str, tuple[Callable[[list[str]], list[str]], list[str]]] = {
    "altered": (
        lambda all_: [*all_[:5], altered(all_[5]), *all_[6:]],
        ["6: 6: its hash does not fit: it was altered"],
    ),
    "altered, with a hash that fits": (
        lambda all_: [*all_[:5], rewritten(all_[5]), *all_[6:]],
        ["7: 7: it does not follow line 6 as that is: one of them was written anew"],
    ),
    "put in: garbage": (
        lambda all_: [*all_[:5], "hello\n", *all_[5:]],
        ["6: 6: it is no line of a log"],
    ),
    "put in: a line twice": (
        lambda all_: [*all_[:6], all_[5], *all_[6:]],
        ["7: 6: it stands after line 6: out of order, or put in"],
    ),
    "put in: an empty line": (
        lambda all_: [*all_[:5], "\n", *all_[5:]],
        ["6: 6: it is no line of a log"],
    ),
    "put in: garbage at the end": (lambda all_: [*all_, "hello\n"], ["14: 0: it is no line of a log"]),
    "one taken out": (
        lambda all_: [*all_[:5], *all_[6:]],
        ["6: 7: line 6 is missing before it"],
    ),
    "several taken out": (
        lambda all_: [*all_[:5], *all_[9:]],
        ["6: 10: lines 6 to 9 are missing before it"],
    ),
    "reordered": (
        lambda all_: [*all_[:5], all_[6], all_[5], *all_[7:]],
        [
            "6: 7: line 6 is missing before it",
            "7: 6: it stands after line 7: out of order, or put in",
            "8: 8: line 7 is missing before it",
        ],
    ),
    "the first taken out": (
        lambda all_: all_[1:],
        [
            "1: 2: it does not begin as a file of a log does: lines are missing, or the file was renamed",
            ".:0: 0: line 1 is missing, and not on record as removed",
        ],
    ),
    "the last taken out": (lambda all_: all_[:-1], ["12: 12: line 13 is missing at the end"]),
    "the end cut off": (lambda all_: all_[:4], ["4: 4: lines 5 to 13 are missing at the end"]),
    "the last cut in two": (
        lambda all_: [*all_[:-1], all_[-1][:40]],
        ["13: 0: line 13 is missing at the end", "13: 0: it is no line of a log"],
    ),
    "emptied": (lambda _all: [], ["0: 0: lines 1 to 13 are missing at the end"]),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_tampering_is_noticed_and_told_where(what: str, tmp_path: Path) -> None:
    filled(tmp_path)
    change, expected = TAMPERED[what]
    (tmp_path / FIRST).write_text("".join(change(lines(tmp_path))), "utf-8")
    assert [one.removeprefix(f"{FIRST}:") for one in problems(tmp_path)] == expected


@pytest.mark.parametrize("cut", range(1, 400, 7))
def test_wherever_the_file_is_cut_it_is_noticed(cut: int, tmp_path: Path) -> None:
    filled(tmp_path, 3)
    path = tmp_path / FIRST
    path.write_bytes(path.read_bytes()[:-cut])
    assert problems(tmp_path) or cut == 1, "the last line break alone takes nothing away"


def test_lines_beyond_the_head(tmp_path: Path) -> None:
    log = filled(tmp_path)
    head, more = log.head, b""
    for number in (1, 2):
        raw, head = write(head, {"at": "2027-01-15T08:00:00.000000Z", "kind": "call", "data": {"forged": number}})
        more += raw
    with (tmp_path / FIRST).open("ab") as file:
        file.write(more)
    expected = (
        f"{FIRST}:15: 15: lines 14 to 15 are not known to the head: "
        "added by another than the writer, or written shortly before the power failed"
    )
    assert problems(tmp_path) == [expected]
    opened(tmp_path).close()
    assert problems(tmp_path) == [f"{FIRST}:16: 16: when the log was opened, lines 14 to 15 were not known to the head"]


def test_the_head_taken_away(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "head").unlink()
    assert problems(tmp_path) == ["head:0: 0: the head is missing: whether lines were cut off cannot be told"]
    opened(tmp_path).close()
    assert problems(tmp_path) == [f"{FIRST}:14: 14: when the log was opened, the head was missing"]


def test_cut_off_before_a_start_stays_on_record(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / FIRST).write_text("".join(lines(tmp_path)[:-3]), "utf-8")
    with opened(tmp_path) as log:
        log(event())
    assert problems(tmp_path) == [
        f"{FIRST}:11: 14: lines 11 to 13 are missing before it",
        f"{FIRST}:11: 14: when the log was opened, lines 11 to 13 were missing",
    ]


def test_all_written_anew_is_told_only_by_a_head_kept_elsewhere(tmp_path: Path) -> None:
    kept = filled(tmp_path).head.sha256
    for name in (FIRST, "head"):
        (tmp_path / name).unlink()
    filled(tmp_path, 12)
    assert problems(tmp_path) == []
    assert problems(tmp_path, kept) == [
        f"{FIRST}:15: 15: no line has the hash that was given: lines were cut off, or all was written anew"
    ]


def test_a_head_kept_elsewhere_may_be_older(tmp_path: Path) -> None:
    kept = filled(tmp_path).head.sha256
    filled(tmp_path)
    assert problems(tmp_path, kept) == []


def test_one_file_alone(tmp_path: Path) -> None:
    filled(tmp_path)
    found = verify(tmp_path / FIRST)
    assert said(found, tmp_path) == []
    assert [one.text for one in found.notes] == ["one file alone: what stands before and after it was not looked at"]


def test_no_log_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no log in it"):
        verify(tmp_path)


# --- who may write ------------------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        with pytest.raises(LogError) as caught:
            opened(tmp_path)
        log(event())
    assert (
        str(caught.value)
        == f"the log in `{tmp_path}` is being written by process {os.getpid()}: one daemon has a folder at a time"
    )
    opened(tmp_path).close()
    assert did(tmp_path) == ["file", "started", "stopped", "started", "stopped"]
    assert problems(tmp_path) == []


def test_a_process_that_was_forked_off_writes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        child = os.fork()
        if not child:
            try:
                log(event())
            except LogError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert problems(tmp_path) == []


def test_after_closing_nothing_is_recorded(tmp_path: Path) -> None:
    log = filled(tmp_path, 1)
    with pytest.raises(LogError, match="was closed"):
        log(event())
    log.close()


def test_the_folder_is_for_its_owner(tmp_path: Path) -> None:
    filled(tmp_path / "log")
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "log").iterdir()} == {0o600}


def test_what_is_protected(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "link").symlink_to("log")
    assert files(tmp_path / "link") == (str(tmp_path / "link"), str(tmp_path / "log"))


def test_many_threads(tmp_path: Path) -> None:
    with opened(tmp_path) as log:

        def many(number: int) -> None:
            for one in range(50):
                log(event(who=identity(session=str(number)), one=one))

        threads = [threading.Thread(target=many, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems(tmp_path) == []
    told = [
        (entry["identity"]["session"], entry["data"]["one"]) for entry in entries(tmp_path) if entry["kind"] == "call"
    ]
    assert len(told) == 400
    assert all([one for name, one in told if name == str(number)] == [*range(50)] for number in range(8))


def test_every_line_is_on_the_disk_before_the_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def counted(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr("zcpolicy.daemon.log.files.flush", counted)
    with opened(tmp_path, sync="every") as log:
        log(event())
        assert synced[-2] == (tmp_path / FIRST).stat().st_size


def test_an_identity_that_is_too_long_is_cut(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log(event(who=Identity("a" * 10**6, "c", "s", "t", "run", 1, tuple(("boss", str(n)) for n in range(500)))))
    told = entries(tmp_path)[2]["identity"]
    assert told["agent"].startswith("a" * 500 + "… [cut: 1000000 characters, ")
    assert len(told["line"]) == 50
    assert problems(tmp_path) == []


def test_an_interval_has_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="longer than 0 seconds"):
        DecisionLog(tmp_path, interval=0)
