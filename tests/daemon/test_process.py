"""`zcpolicy serve` as a process of its own: signals, sudden ends, and several daemons beside each other."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.servers.redis_server import RedisServer

from .desk import POLICY, Process, lay, token

TURN = {"agent": "helper", "text": "go"}
SLOW = """
import asyncio
from zcpolicy import HostTool
class Slow:
    def tools(self):
        async def run(arguments, context):
            await asyncio.sleep(arguments["seconds"])
            return "slept"
        schema = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}
        return [HostTool("slow", "Takes its time.", schema, run)]
def make(given): return Slow()
"""


def lay_slow(folder: Path, seconds: float, *, drain: float) -> Path:
    """An agent whose turn takes that long, under a limit; the tool lies beside the settings."""
    call = {"calls": [{"tool": "slow", "arguments": {"seconds": seconds}}]}
    more = f'[tools]\nfactories = ["slow_tool:make"]\n[drain]\nseconds = {drain}'
    file = lay(folder, steps=[call, "done"], more=more)
    (folder / "slow_tool.py").write_text(SLOW)
    policy = POLICY.replace(
        "agent helper {",
        "tool slow(seconds: number) risk read\nagent helper { allow slow; limit 2 concurrent calls to slow",
        1,
    )
    (folder / "team.zcpolicy").write_text(policy)
    return file


class Beside:
    """A request that is under way beside the story."""

    def __init__(self, served: Process, headers: dict[str, str] | None = None) -> None:
        self.answer: httpx.Response | None = None
        self._served, self._headers = served, headers
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        with self._served.client() as client:
            self.answer = client.post("/turn", json=TURN, headers=self._headers)

    def came(self) -> httpx.Response:
        self._thread.join(30)
        assert self.answer is not None
        return self.answer


def until(held: Callable[[], bool]) -> None:
    for _ in range(400):
        if held():
            return
        time.sleep(0.05)
    raise AssertionError("it takes too long")


def running(served: Process, root: dict[str, str]) -> int:
    with served.client() as client:
        turns: int = client.get("/status", headers=root).json()["turns"]
        return turns


def busy(served: Process, root: dict[str, str]) -> bool:
    return running(served, root) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_lets_running_turns_end(tmp_path: Path, number: signal.Signals) -> None:
    file = lay_slow(tmp_path / "desk", 2, drain=20)
    root = token(file, "root", "operator")
    with Process(file) as served:
        turn = Beside(served, root)
        until(lambda: running(served, root) == 1)
        served.signal(number)
        until(lambda: "stopping" in served.log.read_text())
        with served.client() as client:
            refused = client.post("/turn", json=TURN, headers=root)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "20")
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").status_code == 503
        assert turn.came().json()["text"] == "done"
        assert served.ends() == 0
    assert not (file.parent / "var/zcpolicy.sock").exists()


def test_what_does_not_end_in_time_is_cut_off_and_leaves_no_reservation(tmp_path: Path) -> None:
    file = lay_slow(tmp_path / "desk", 600, drain=0.5)
    root = token(file, "root", "operator")
    for _ in range(3):  # under a limit of two at a time, a third start would find no room
        with Process(file) as served:
            turn = Beside(served, root)
            until(partial(busy, served, root))
            time.sleep(0.3)
            served.signal(signal.SIGTERM)
            assert turn.came().status_code == 503
            assert served.ends() == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    file = lay_slow(tmp_path / "desk", 600, drain=600)
    root = token(file, "root", "operator")
    with Process(file) as served:
        thread = threading.Thread(target=_asked_in_vain, args=(served, root))
        thread.start()
        until(lambda: running(served, root) == 1)
        served.signal(signal.SIGTERM)
        until(lambda: "stopping" in served.log.read_text())
        served.signal(signal.SIGTERM)
        assert served.ends(5) == -signal.SIGTERM
        thread.join(10)


def _asked_in_vain(served: Process, root: dict[str, str]) -> None:
    with served.client() as client, pytest.raises(httpx.HTTPError):
        client.post("/turn", json=TURN, headers=root)


def test_a_signal_reloads(tmp_path: Path) -> None:
    file = lay(tmp_path / "desk")
    root = token(file, "root", "operator")

    def policy() -> dict[str, Any]:
        with served.client() as client:
            shown: dict[str, Any] = client.get("/status", headers=root).json()["policy"]
            return shown

    with Process(file) as served:
        first = policy()["generation"]
        (file.parent / "team.zcpolicy").write_text("zcpolicy 1\nagent {")
        served.signal(signal.SIGHUP)
        until(lambda: policy()["failure"] is not None)
        assert policy()["generation"] == first
        (file.parent / "team.zcpolicy").write_text(POLICY.replace("limit 3", "limit 2"))
        served.signal(signal.SIGHUP)
        until(lambda: policy()["generation"] == first + 1)
        assert policy()["failure"] is None


def test_every_target_answers_for_the_generation(tmp_path: Path) -> None:
    file = lay_slow(tmp_path / "desk", 2, drain=0)
    root = token(file, "root", "operator")

    def targets() -> dict[str, tuple[int, str]]:
        with served.client() as client:
            found = client.get("/status", headers=root).json()["policy"]["targets"]
        return {name: (one["generation"], one["outcome"]) for name, one in found.items()}

    def reload(text: str) -> None:
        (file.parent / "team.zcpolicy").write_text(text)
        with served.client() as client:
            assert client.post("/reload", headers=root).json()["new"] is True

    policy = (file.parent / "team.zcpolicy").read_text()
    with Process(file) as served:
        turn = Beside(served, root)
        until(lambda: running(served, root) == 1)
        reload(policy.replace("limit 3", "limit 2"))
        until(lambda: targets() == {"settings": (2, "applied-live"), "turns": (2, "queued-for-reload")})
        assert turn.came().status_code == 200
        reload(policy.replace("agent aide", "agent helped").replace("delegate to aide", "delegate to helped"))
        until(lambda: targets() == {"settings": (3, "rejected"), "turns": (3, "applied-live")})


PESTERING = """
import os, signal, sys, threading, time
def pester():
    while "zcpolicy.daemon.serving" not in sys.modules:
        time.sleep(0.001)
    while True:
        os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(0.005)
threading.Thread(target=pester, daemon=True).start()
"""


def test_a_hangup_ends_neither_the_start_nor_the_stop(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(PESTERING)
    with Process(lay(tmp_path / "desk"), env={"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}) as served:
        with served.client() as client:
            assert client.get("/healthz").status_code == 200
        served.signal(signal.SIGTERM)
        assert served.ends() == 0


def test_killed_and_started_again_nothing_is_granted_twice(tmp_path: Path) -> None:
    """`limit 3 calls to memory_store per day for each client`: two before the end, one after it."""
    file = lay(tmp_path / "desk")
    ann = token(file, "ann")
    for number in (2, 2):
        with Process(file) as served, served.client() as client:
            for _ in range(number):
                assert client.post("/turn", json=TURN, headers=ann).status_code == 200
            served.process.kill()
            served.process.wait()
    assert _reasons(file) == ["allowed", "allowed", "allowed", "budget"]


def _reasons(file: Path) -> list[str]:
    lines = [
        json.loads(line)
        for part in sorted((file.parent / "var/log").glob("decisions-*.jsonl"))
        for line in part.read_text().splitlines()
    ]
    calls = {one["data"]["key"]: one["data"]["decision"]["reason"] for one in lines if one["kind"] == "call"}
    return list(calls.values())


def test_started_with_a_broken_policy_it_serves_the_last_good_one(tmp_path: Path) -> None:
    file = lay(tmp_path / "desk")
    root = token(file, "root", "operator")
    with Process(file):
        pass
    (file.parent / "team.zcpolicy").write_text(POLICY.replace("allow memory_recall;", "allow memory_recal;"))
    with Process(file) as served, served.client() as client:
        assert client.post("/turn", json=TURN, headers=root).json()["text"] == "kept"
        shown = client.get("/status", headers=root).json()["policy"]
        assert (shown["failure"]["kind"], shown["from_source"]) == ("broken", False)
        assert "`memory_recal` is not a tool" in served.log.read_text()


def test_two_daemons_on_one_redis_share_limits(tmp_path: Path, redis_server: RedisServer) -> None:
    files = [lay(tmp_path / name, state=f'ledger = "{redis_server.url}"') for name in ("one", "two")]
    headers = [token(file, "zoe") for file in files]  # a client of no other test: the server is one for all of them
    with Process(files[0]) as one, Process(files[1]) as two:
        for served, ann in zip((one, two, one, two), headers * 2, strict=True):
            with served.client() as client:
                assert client.post("/turn", json=TURN, headers=ann).status_code == 200
    assert sorted([*_reasons(files[0]), *_reasons(files[1])]) == ["allowed", "allowed", "allowed", "budget"]


STARTS = {
    "no such file": ("nothing.toml", "", 2, "`nothing.toml` does not exist"),
    "settings with errors": ("daemon.toml", "[http]\nprot = 1", 1, "ZC6002"),
    "a policy with errors, and none before": ("daemon.toml", '[http]\nport = 0\n[session]\nsystem = "x"', 1, "ZC2101"),
    "a port that is taken": ("daemon.toml", "[http]\nport = {taken}", 2, "zcpolicy: the daemon cannot start:"),
}


@pytest.mark.parametrize("what", STARTS)
def test_what_cannot_start_says_why_and_how_badly(tmp_path: Path, what: str) -> None:
    name, text, status, said = STARTS[what]
    file = lay(tmp_path / "desk")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        changed = text.format(taken=taken.getsockname()[1])
        file.write_text(file.read_text().replace("[http]\nport = 0", changed) if text else file.read_text())
        if status == 1 and said == "ZC2101":
            (file.parent / "team.zcpolicy").write_text(POLICY.replace("allow memory_recall;", "allow memory_recal;"))
        with pytest.raises(AssertionError, match="it does not serve") as raised:
            Process(file.with_name(name))
    assert said in str(raised.value)
    assert f"status {status}" in str(raised.value)
    assert "Traceback" not in str(raised.value)


def test_checking_starts_nothing(tmp_path: Path) -> None:
    file = lay(tmp_path / "desk")
    ran = subprocess.run(
        [sys.executable, "-m", "policy_lang.cli.main", "serve", "--check", "daemon.toml"],
        cwd=file.parent, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "no findings in 2 files\n")
    assert not (file.parent / "var").exists()
