"""A real Redis server, on a free port, in a folder of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import redis

from tests.clock import SLOW_SECONDS
from zcpolicy.ledgers.redis import RedisLedger


class RedisServer:
    """`start` and `stop` may be repeated: with `appendonly` what was written is there again. `kill`: as by a crash."""

    def __init__(self, folder: Path, *, appendonly: bool = False, cluster: bool = False) -> None:
        self._options = [
            "--bind", "127.0.0.1", "--dir", str(folder), "--save", "",
            "--appendonly", "yes" if appendonly else "no", "--appendfsync", "always", "--loglevel", "warning",
            "--cluster-enabled", "yes" if cluster else "no",
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        for _ in range(5):  # somebody else may take the port, and a cluster wants one below 55,536
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port: int = probe.getsockname()[1]
            self.url = f"redis://127.0.0.1:{self.port}/0"
            if self.start():
                return
        raise AssertionError("redis-server does not start")

    def ledger(self, name: str = "default", **other: Any) -> RedisLedger:
        return RedisLedger(self.url, name=name, timeout=SLOW_SECONDS, **other)

    def client(self) -> Any:
        """One that answers texts."""
        library: Any = redis.Redis  # whose answers have no types
        return library(port=self.port, socket_timeout=SLOW_SECONDS, decode_responses=True)

    def start(self) -> bool:
        """Whether it answers, and it is this one; it may still be reading what it kept."""
        command = ["redis-server", "--port", str(self.port), *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + SLOW_SECONDS
        with self.client() as client:
            while self._process.poll() is None and time.monotonic() < end:
                try:
                    if client.info("server")["process_id"] == self._process.pid:
                        return True
                except redis.RedisError:
                    time.sleep(0.02)
        self.kill()
        return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hang(self) -> None:
        """It keeps its connections, and answers nothing."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
