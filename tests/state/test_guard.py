"""What waits for the outside while a tool is constructed is refused, by name; afterwards everything is as it was."""

import asyncio
import cProfile
import ctypes
import importlib
import io
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from zcpolicy import PermitError
from zcpolicy.state import guard
from zcpolicy.state.guard import Offence, constructed, executing, not_in_a_call

WAITS: dict[str, tuple[Callable[[], object], str]] = {
    "opens a file": (lambda: open("/etc/hostname"), 'open("/etc/hostname")'),  # noqa: PTH123, SIM115
    "by pathlib": (lambda: Path("/etc/hostname").read_text(), 'open("/etc/hostname")'),
    "by the system's own": (lambda: os.open("/etc/hostname", os.O_RDONLY), 'open("/etc/hostname")'),
    "by an object": (lambda: io.FileIO("/etc/hostname"), 'open("/etc/hostname")'),
    "asks for a file": (lambda: os.stat("/etc"), "os.stat"),  # noqa: PTH116
    "whether it exists": (lambda: Path("/etc/hostname").exists(), "os.stat"),
    "whether it is one": (lambda: os.path.isfile("/etc/hostname"), "os.stat"),  # noqa: PTH113
    "whether it may": (lambda: os.access("/etc", os.R_OK), "os.access"),
    "reads a link": (lambda: Path("/proc/self/exe").readlink(), "os.readlink"),
    "lists a folder": (lambda: os.listdir("/etc"), 'os.listdir("/etc")'),  # noqa: PTH208
    "walks": (lambda: list(Path("/etc").glob("host*")), 'pathlib.Path.glob("/etc")'),
    "makes a folder": (lambda: os.mkdir("/never/made"), 'os.mkdir("/never/made")'),  # noqa: PTH102
    "removes a tree": (lambda: shutil.rmtree("/never/made"), "shutil.rmtree"),
    "connects": (lambda: socket.create_connection(("127.0.0.1", 9)), 'socket.getaddrinfo("127.0.0.1")'),
    "makes a socket": (socket.socket, "socket.socket"),
    "looks up a name": (lambda: socket.getaddrinfo("example.org", 80), 'socket.getaddrinfo("example.org")'),
    "the old way": (lambda: socket.gethostbyname("example.org"), 'socket.gethostbyname("example.org")'),
    "fetches": (lambda: urllib.request.urlopen("http://a:secret@127.0.0.1:9/?token=x"), 'urllib.request.urlopen("127.0.0.1")'),
    "starts a process": (lambda: subprocess.run(["true"], check=False), 'subprocess.Popen("true")'),
    "by the system": (lambda: os.posix_spawn("/bin/true", ["true"], {}), "os.posix_spawn"),
    "forks": (os.fork, "os.fork"),
    "opens a database": (lambda: sqlite3.connect(":memory:"), 'sqlite3.connect(":memory:")'),
    "sleeps": (lambda: time.sleep(0.001), "time.sleep"),
    "starts a thread": (lambda: threading.Thread(target=print).start(), "threading.Thread.start"),
    "loads a library": (lambda: ctypes.CDLL("libc.so.6"), "ctypes.dlopen"),
    "takes the watch off": (lambda: sys.setprofile(None), "sys.setprofile"),
}  # fmt: skip


@pytest.mark.parametrize("case", WAITS)
def test_r08_what_waits_is_refused_by_name(case: str) -> None:
    waits, named = WAITS[case]

    def factory() -> object:
        return helped()

    def helped() -> object:
        return waits()

    with pytest.raises(Offence) as raised:
        constructed(factory)
    said = str(raised.value)
    assert said.startswith(f"`{named}")
    assert "secret" not in said
    assert f"while a tool is constructed at {__file__}:" in said
    assert said.endswith(": do it in `register`")


def test_a_socket_that_was_there_before_does_not_connect() -> None:
    with socket.socket() as one, pytest.raises(Offence, match=r"`socket\.connect` while"):
        constructed(lambda: one.connect(("127.0.0.1", 9)))
    left, right = socket.socketpair()
    with left, right, pytest.raises(Offence, match=r"`socket\.recv` while"):
        constructed(lambda: left.recv(1))


def test_r08_what_the_tool_caught_is_refused_all_the_same() -> None:
    def factory() -> str:
        for waits in (lambda: os.stat("/etc"), lambda: os.listdir("/etc")):  # noqa: PTH116, PTH208
            try:
                waits()
            except Exception:  # noqa: BLE001 - as a tool may
                continue
        return "as if nothing were"

    with pytest.raises(Offence, match=r"`os\.stat` while"):
        constructed(factory)


def test_what_waits_for_nothing_is_made() -> None:
    assert constructed(lambda: {"a": [len("xyz"), threading.Lock().locked(), os.getpid() > 0]}) == {
        "a": [3, False, True]
    }


def test_a_module_is_imported_also_when_it_is_new_and_reads_what_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lazy_tool").mkdir()
    (tmp_path / "lazy_tool/__init__.py").write_text(
        "from pathlib import Path\nDATA = (Path(__file__).parent / 'data.txt').read_text()\n"
    )
    (tmp_path / "lazy_tool/data.txt").write_text("data")
    (tmp_path / "calls_home.py").write_text("import socket\nsocket.create_connection(('127.0.0.1', 9))\n")
    (tmp_path / "writes.py").write_text(f"open({str(tmp_path / 'written')!r}, 'w')\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    try:
        assert constructed(lambda: importlib.import_module("lazy_tool").DATA) == "data"
        with pytest.raises(Offence, match=rf"`socket\.getaddrinfo.* at {tmp_path}/calls_home\.py:2"):
            constructed(lambda: importlib.import_module("calls_home"))
        with pytest.raises(Offence, match=rf"`open.* at {tmp_path}/writes\.py:1"):
            constructed(lambda: importlib.import_module("writes"))
    finally:
        sys.modules.pop("lazy_tool", None)
    assert not (tmp_path / "written").exists()


ENDS: dict[str, Callable[[], object]] = {
    "made": lambda: 1,
    "raised": lambda: 1 / 0,
    "refused": lambda: os.stat("/etc"),  # noqa: PTH116
    "left": lambda: sys.exit(3),
}


@pytest.mark.parametrize("case", ENDS)
def test_it_is_off_again_whatever_happens(case: str) -> None:
    with pytest.raises(BaseException) if case != "made" else open(os.devnull):  # noqa: PT011, PTH123
        constructed(ENDS[case])
    assert sys.getprofile() is None
    assert not guard._here.on
    os.stat("/etc")  # noqa: PTH116
    assert Path("/etc/hostname").exists() in (True, False)


def test_it_watches_this_thread_only() -> None:
    found: list[list[str]] = []
    go, gone = threading.Event(), threading.Event()

    def beside() -> None:
        go.wait()
        found.append(os.listdir("/"))  # noqa: PTH208
        gone.set()

    thread = threading.Thread(target=beside)
    thread.start()

    def factory() -> None:
        go.set()
        gone.wait()

    constructed(factory)
    thread.join()
    assert found


def test_the_functions_of_profilers_and_debuggers_stay_as_they_were() -> None:
    seen: list[str] = []

    def profile(_frame: FrameType, event: str, _called: Any) -> None:
        seen.append(event)

    traced = sys.gettrace()
    sys.setprofile(profile)
    try:
        with pytest.raises(Offence):
            constructed(lambda: os.stat("/etc"))  # noqa: PTH116
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    assert "c_call" in seen
    assert sys.gettrace() is traced


def test_beside_a_profiler_in_c_audit_events_are_refused() -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        with pytest.raises(Offence, match="open"):
            constructed(lambda: open("/etc/hostname"))  # noqa: PTH123, SIM115
        assert sys.getprofile() is profiler
    finally:
        profiler.disable()


def test_a_task_that_is_started_is_cancelled_and_refused() -> None:
    async def story() -> None:
        async def beside() -> None:
            ran.append(1)

        with pytest.raises(Offence, match="a task is started while a tool is constructed"):
            constructed(lambda: asyncio.ensure_future(beside()))
        await asyncio.sleep(0.01)

    ran: list[int] = []
    asyncio.run(story())
    assert ran == []


def test_r10_a_call_constructs_and_registers_nothing() -> None:
    not_in_a_call("registering a tool")
    with (
        executing(),
        pytest.raises(PermitError, match="registering a tool is no part of a call: a call handles one request"),
    ):
        not_in_a_call("registering a tool")
    with pytest.raises(PermitError, match="registering a tool is no part of construction"):
        constructed(lambda: not_in_a_call("registering a tool"))
    not_in_a_call("registering a tool")
