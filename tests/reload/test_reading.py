"""What is read, and when it counts as one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from policy_lang.serving.compiling import compile_layers
from tests.reload.disk import LOOSE, TIGHT, Disk
from zcpolicy.reload.generations import Failure
from zcpolicy.reload.reading import Reading, places_of
from zcpolicy.reload.settling import Settling, found_in
from zcpolicy.reload.sources import MAX_LAYERS, PolicySource, Unreadable

LIMIT = 1000


def test_why_a_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (LIMIT + 1))
    (tmp_path / "fits").write_bytes(b"x" * LIMIT)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    reading = Reading()
    assert {
        name: reading.read(tmp_path / name, LIMIT) for name in ("none", ".", "pipe", "large", "fits", "a\0", "loop")
    } == {
        "none": "does not exist",
        ".": "is a folder",
        "pipe": "is not a regular file",
        "large": "is larger than 1000 bytes",
        "fits": b"x" * LIMIT,
        "a\0": "cannot be read: not a usable file name",
        "loop": "cannot be read: too many levels of symbolic links",
    }
    assert reading.settled()
    assert reading.unchanged()


def test_a_file_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    reading = Reading()
    assert reading.read(file, LIMIT) == b"one"
    file.write_text("two")
    assert reading.read(file, LIMIT) == b"one"
    assert reading.read(file, 2) == "is larger than 2 bytes"
    assert not reading.settled()


def appears(file: Path) -> None:
    file.with_name("none").write_text("here")


def rewritten(file: Path) -> None:
    """As long as before, and of the time of before."""
    before = file.stat()
    file.write_text("ONE")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def swapped(file: Path) -> None:
    """Another file of the same content: nobody knows whether what lies beside it belongs to it."""
    file.with_name("g").write_text("one")
    file.with_name("g").replace(file)


@pytest.mark.parametrize("change", [appears, rewritten, swapped, Path.unlink, Path.touch])
def test_what_changed_since_is_no_reading(tmp_path: Path, change: object) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    reading = Reading()
    reading.read(file, LIMIT)
    reading.read(tmp_path / "none", LIMIT)
    assert reading.unchanged()
    assert callable(change)
    change(file)
    assert not reading.unchanged()
    assert not reading.settled()


def test_a_file_that_somebody_has_open_to_write_is_not_read_as_whole(disk: Disk) -> None:
    """On Linux, however long the writer rests. Elsewhere only what moves is noticed."""
    generations = disk.start()
    command = f"file = open({str(disk.file)!r}, 'a'); print(); input()"
    writer = subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    done = generations.reload_now()
    writer.communicate(b"\n")
    if sys.platform == "linux":
        assert isinstance(done, Failure)
        assert (done.kind, "keep changing" in done.why) == ("unreadable", True)
    assert not isinstance(generations.reload_now(), Failure)


def test_a_writer_that_waits_for_us_is_not_kept_waiting(disk: Disk) -> None:
    """The lease that tells whether somebody writes is given back at once: nobody hangs, and no signal ends this process."""
    reading = Reading()
    for _ in range(200):
        reading.read(disk.file, 10**6)
        with disk.file.open("a") as file:
            file.write(" ")
        reading = Reading()


def test_files_that_never_lie_still_cannot_be_read(disk: Disk) -> None:
    writes = iter(range(10**6))

    def restless(seconds: float) -> None:
        disk.wait(seconds)
        disk.file.write_text(LOOSE + f"# {next(writes)}\n")

    how = Settling(wait=restless, ticks=disk.clock, now=disk.clock)
    begun = disk.clock.now
    found = found_in(PolicySource.of_layers([disk.file]), compile_layers, how)
    assert isinstance(found.program, Unreadable)
    assert str(found.program) == "the policy's files keep changing, or somebody holds them open to write"
    assert disk.clock.now - begun < 30


def test_files_that_were_touched_long_ago_are_not_waited_for(disk: Disk) -> None:
    waited: list[float] = []
    os.utime(disk.file, (0, 0))
    how = Settling(wait=waited.append, ticks=disk.clock, now=lambda: disk.file.stat().st_ctime + 3)
    disk.start(how=how)
    assert waited == []


# --- places ------------------------------------------------------------------------------------------------------------


def test_the_links_on_the_way_are_places_of_their_own(tmp_path: Path) -> None:
    base = Path(os.path.realpath(tmp_path))
    (base / "v1").mkdir()
    (base / "v1" / "real").write_text("")
    (base / "v1" / "p").symlink_to("real")
    (base / "now").symlink_to("v1")
    (base / "other").symlink_to(base / "v1" / ".." / "now")
    found = set(places_of(str(base / "other" / "p")))
    assert found == {str(base / name) for name in ("other/p", "other", "now", "v1/p", "v1/real")}


def test_links_that_lead_nowhere_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert len(set(places_of(str(tmp_path / "a")))) <= 4


# --- sources ------------------------------------------------------------------------------------------------------------


def test_the_root_of_a_folder(tmp_path: Path) -> None:
    source = PolicySource.of_folder(tmp_path / "p")
    with pytest.raises(Unreadable, match="no such file or directory"):
        source.roots()
    (tmp_path / "p").mkdir()
    with pytest.raises(Unreadable, match=r"holds no `\*.zcpolicy` file"):
        source.roots()
    for name in ("one.zcpolicy", ".hidden.zcpolicy", "README"):
        (tmp_path / "p" / name).write_text("zcpolicy 1\n")
    assert source.roots() == (tmp_path / "p" / "one.zcpolicy",)
    (tmp_path / "p" / "two.zcpolicy").write_text("zcpolicy 1\n")
    with pytest.raises(Unreadable, match=r"none of them is `policy\.zcpolicy`"):
        source.roots()
    (tmp_path / "p" / "policy.zcpolicy").write_text("zcpolicy 1\n")
    assert source.roots() == (tmp_path / "p" / "policy.zcpolicy",)


def test_a_folder_whose_root_is_another_now(disk: Disk) -> None:
    generations = disk.start(PolicySource.of_folder(disk.file.parent))
    (disk.file.parent / "x.zcpolicy").write_text(TIGHT)
    assert generations.reload_now().generation == 1
    disk.file.unlink()
    assert generations.reload_now().generation == 2
    assert generations.resolver.decide("a", "act", {}).reason == "denied"


@pytest.mark.parametrize("paths", [[], ["a"] * 2, [str(n) for n in range(MAX_LAYERS + 1)]])
def test_layers_that_are_none(paths: list[str]) -> None:
    with pytest.raises(ValueError, match="layer"):
        PolicySource.of_layers(paths)
