"""Reading a log while it is written."""

from pathlib import Path

from zcpolicy.daemon.log.settings import Rotation
from zcpolicy.daemon.log.show import Reader, Wanted
from zcpolicy.daemon.log.verify import verify

from .scene import event, filled, identity, opened


def numbers(reader: Reader) -> list[int]:
    return [line.said["number"] for _, line in reader.more() if line is not None]


def test_reading_on_where_it_stopped(tmp_path: Path) -> None:
    reader = Reader(tmp_path, Wanted(kind="call"))
    with opened(tmp_path, rotation=Rotation(65_536, keep=2)) as log:
        assert numbers(reader) == []
        seen: list[int] = []
        for number in range(300):
            log(event(number=number, text="x" * 900))
            if number % 7 == 0:
                seen += numbers(reader)
        seen += numbers(reader)
    assert seen == [*range(300)], "also over files that were removed meanwhile"


def test_a_line_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    path = tmp_path / "decisions-000000000001.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    reader = Reader(tmp_path)
    assert len([*reader.more()]) == 5
    path.write_bytes(whole)
    ((place, line),) = reader.more()
    assert line is not None
    assert (place.line, line.own) == (6, "stopped")


def test_what_is_too_long_to_be_a_line(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    path = tmp_path / "decisions-000000000001.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"x" * 1_000_000 + b"\n" + b"".join(rest))
    assert [line is None for _, line in Reader(tmp_path).more()] == [False, True, False, False, False]
    (found,) = verify(tmp_path).problems
    assert (found.place.line, found.text) == (2, "it is longer than 262_144 bytes")


def test_a_log_that_is_being_written_is_sound(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        for number in range(20):
            log(event(who=identity(), number=number))
            assert verify(tmp_path).is_sound
        path = tmp_path / "decisions-000000000001.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole + b'{"at":"20')  # as a reader may see it
        found = verify(tmp_path)
        path.write_bytes(whole)
        assert found.is_sound
        assert [one.text for one in found.notes] == [
            "torn: its writer was killed, or is writing it; the next start tells it"
        ]
