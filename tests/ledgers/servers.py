"""A real Redis server of the tests, on a free port, in a folder of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import redis

from zcpolicy.ledgers.redis import RedisLedger

from .said import SLOW_SECONDS


class Server:
    """`start` and `stop` may be repeated: with `appendonly` what was written is there again. `kill`: as by a crash."""

    def __init__(self, folder: Path, *, appendonly: bool = False, cluster: bool = False) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "",
            "--appendonly", "yes" if appendonly else "no", "--appendfsync", "always", "--loglevel", "warning", "--cluster-enabled", "yes" if cluster else "no",
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def ledger(self, name: str = "default", **other: Any) -> RedisLedger:
        return RedisLedger(self.url, name=name, timeout=SLOW_SECONDS, **other)

    def client(self) -> Any:
        """One that answers texts."""
        library: Any = redis.Redis  # whose answers have no types
        return library(port=self.port, socket_timeout=SLOW_SECONDS, decode_responses=True)

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + SLOW_SECONDS
        with self.client() as client:
            while True:
                try:
                    client.ping()
                except redis.RedisError:
                    assert time.monotonic() < end, "redis-server does not start"
                    time.sleep(0.02)
                else:
                    return

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
