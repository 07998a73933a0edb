"""Files that are full or of yesterday, and those that go: the chain runs through all of them."""

import json
import re
from pathlib import Path

import pytest

from zcpolicy.daemon.log.place import line_files
from zcpolicy.daemon.log.settings import Masking, Rotation
from zcpolicy.daemon.log.verify import verify

from .scene import DAY, Clock, entries, event, opened, problems

SMALL = 65_536


def names(folder: Path) -> list[str]:
    return line_files(str(folder))


def grown(folder: Path, events: int = 400, keep: int | None = None) -> None:
    with opened(folder, rotation=Rotation(SMALL, keep=keep)) as log:
        for number in range(events):
            log(event(number=number, text="x" * 700))


def test_by_size(tmp_path: Path) -> None:
    grown(tmp_path)
    assert len(names(tmp_path)) == 7
    assert all(SMALL <= (tmp_path / name).stat().st_size < SMALL + 2_000 for name in names(tmp_path)[:-1])
    found = verify(tmp_path)
    assert (found.problems, found.files, found.lines, found.first, found.gone.files) == ([], 7, 409, 1, 0)
    assert [entry["data"]["number"] for entry in entries(tmp_path) if entry["kind"] == "call"] == [*range(400)]


def test_by_day(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock=clock) as log:
        for step in (
            0.0,
            15 * 3600.0,
            2 * 3600.0,
            DAY,
            -2 * DAY,
        ):  # 8:00, 23:00, 1:00, 1:00, and a clock that is set back
            clock.now += step
            log(event())
    days = [{entry["at"][:10] for entry in entries_of(tmp_path / name)} for name in names(tmp_path)]
    assert days == [{"2027-01-15"}, {"2027-01-16"}, {"2027-01-17", "2027-01-15"}]
    assert problems(tmp_path) == []


def entries_of(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_new_day_between_two_starts(tmp_path: Path) -> None:
    clock = Clock()
    opened(tmp_path, clock=clock).close()
    clock.now += DAY
    opened(tmp_path, clock=clock).close()
    assert len(names(tmp_path)) == 2
    assert problems(tmp_path) == []


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_old_files_go_on_record(keep: int, tmp_path: Path) -> None:
    grown(tmp_path, keep=keep)
    found = verify(tmp_path)
    assert (len(names(tmp_path)), found.problems) == (keep, [])
    assert (found.gone.files, found.gone.lines) == (7 - keep, found.first - 1)
    assert found.lines + found.gone.lines == 409


def test_old_files_go_after_a_restart_too(tmp_path: Path) -> None:
    grown(tmp_path)
    grown(tmp_path, 100, keep=2)
    found = verify(tmp_path)
    assert (len(names(tmp_path)), found.problems, found.gone.files) == (2, [], found.gone.files)
    assert found.gone.files >= 6


def test_a_file_on_record_as_gone_that_is_still_there(tmp_path: Path) -> None:
    """The writer was killed before it removed it, or could not: nothing is wrong, and it goes at the next start."""
    grown(tmp_path)
    kept = (tmp_path / names(tmp_path)[0]).read_bytes()
    grown(tmp_path, 100, keep=3)
    (tmp_path / "decisions-000000000001.jsonl").write_bytes(kept)
    assert len(problems(tmp_path)) == 1, "the second file is missing"
    opened(tmp_path).close()
    assert names(tmp_path)[0] != "decisions-000000000001.jsonl"
    assert problems(tmp_path) == []


@pytest.mark.parametrize("which", range(7))
def test_a_file_taken_away_is_noticed(which: int, tmp_path: Path) -> None:
    grown(tmp_path)
    gone = names(tmp_path)[which]
    (tmp_path / gone).unlink()
    (found,) = problems(tmp_path)
    place = {0: ".:0: 0", 6: f"{names(tmp_path)[-1]}:"}.get(which, f"{names(tmp_path)[which if which < 6 else -1]}:1:")
    assert found.startswith(place)
    assert "missing" in found


def test_the_oldest_of_those_kept_taken_away(tmp_path: Path) -> None:
    grown(tmp_path, keep=3)
    (tmp_path / names(tmp_path)[0]).unlink()
    (found,) = problems(tmp_path)
    assert "missing, and not on record as removed" in found


def test_two_files_exchanged(tmp_path: Path) -> None:
    grown(tmp_path)
    one, other = (tmp_path / name for name in names(tmp_path)[2:4])
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    assert len([found for found in problems(tmp_path) if "the file was renamed" in found]) == 2


def test_a_file_renamed(tmp_path: Path) -> None:
    grown(tmp_path)
    (tmp_path / names(tmp_path)[-1]).rename(tmp_path / "decisions-000000000999.jsonl")
    (found,) = problems(tmp_path)
    assert found.startswith("decisions-000000000999.jsonl:1: ")
    assert found.endswith(": the file was renamed")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Rotation(1_000), "a file of the log holds at least 65_536 bytes"),
        (lambda: Rotation(keep=0), "a log keeps at least one file"),
        (lambda: Masking(without=frozenset({"guess"})), "there is no shape `guess`; shapes are assignment, bearer, basic, jwt, pem, known, url, entropy"),  # type: ignore[arg-type]  # the point
        (lambda: Masking(keys=frozenset({""})), "keys are at most 1_000 names, none of them empty"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be(make: object, why: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=re.escape(why)):
        make()
