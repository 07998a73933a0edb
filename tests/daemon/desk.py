"""A daemon for stories: a policy, a script and settings in a folder, served in this process or in one of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import httpx

from policy_lang.serving.compiling import compile_layers
from policy_lang.serving.settings import read_settings
from zcpolicy.daemon.serving import Daemon
from zcpolicy.daemon.settings import Settings
from zcpolicy.daemon.tokens import Role, Tokens

POLICY = """zcpolicy 1
tool memory_store(text: string, scope?: string)                   risk low
tool memory_recall(query: string)                                 risk read
tool delegate(agent: string, task: string, independent?: boolean) risk low
tool run_later(text: string, after: number, every?: number, agent?: string) risk low
tool workflow(steps: list<object>)                                risk low

agent helper {
    autonomy full
    allow memory_store, memory_recall, delegate, run_later, workflow
    memory read own write own
    delegate to aide
    limit 3 calls to memory_store per day for each client
}
agent aide { autonomy full; allow memory_recall; memory read own }
"""

SETTINGS = """\
[policy]
layers = ["team.zcpolicy"]
[state]
folder = "var"
{state}
[http]
port = 0
{http}
[rpc]
[agents.helper]
model = "scripted:answers.json"
surfaces = ["gateway", "rpc"]
[agents.aide]
model = "scripted:aide.json"
{more}
"""

STORES = [{"calls": [{"tool": "memory_store", "arguments": {"text": "the sky is blue"}}]}, "kept"]
"""What `helper` says: a call, and then what came of it."""


def lay(folder: Path, *, steps: list[Any] = STORES, state: str = "", http: str = "", more: str = "") -> Path:
    """Writes the files; the path of the settings."""
    folder.mkdir(exist_ok=True)
    (folder / "team.zcpolicy").write_text(POLICY)
    (folder / "answers.json").write_text(json.dumps({"steps": steps, "repeat": True}))
    (folder / "aide.json").write_text(json.dumps({"steps": ["aide was here"], "repeat": True}))
    file = folder / "daemon.toml"
    file.write_text(SETTINGS.format(state=state, http=http, more=more))
    return file


def settings_of(file: Path) -> Settings:
    """Raises AssertionError with what is wrong."""
    read = read_settings(file)
    assert read.settings is not None, [one.message for one in read.diagnostics]
    return read.settings


def token(file: Path, name: str, role: Role = "client") -> dict[str, str]:
    """The header of a new token."""
    folder = file.parent / "var"
    folder.mkdir(mode=0o700, exist_ok=True)
    return {"authorization": f"Bearer {Tokens(str(folder / 'tokens.json')).add(name, role)}"}


@asynccontextmanager
async def serving(file: Path) -> AsyncGenerator[tuple[Daemon, httpx.AsyncClient]]:
    """A daemon in this process, and a client of it."""
    daemon = Daemon(settings_of(file), compile_layers)
    async with daemon.serving(), httpx.AsyncClient(base_url=daemon.addresses["http"], timeout=20) as client:
        yield daemon, client


class Process:
    """`zcpolicy serve` as a process. Leaving ends it."""

    def __init__(self, file: Path, *, env: Mapping[str, str] | None = None) -> None:
        self.log = file.parent / "stderr.txt"
        with self.log.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "policy_lang.cli.main", "serve", file.name], cwd=file.parent, stderr=err,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})},
            )  # fmt: skip
        self.url = self._url()

    def _url(self) -> str:
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            for word in self.log.read_text().split():
                if word.startswith("http://"):
                    return word
            time.sleep(0.05)
        self.process.kill()
        raise AssertionError(f"it does not serve: status {self.process.wait()}: {self.log.read_text()}")

    def client(self) -> httpx.Client:
        """Talks to it."""
        return httpx.Client(base_url=self.url, timeout=20)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends(self, seconds: float = 20) -> int:
        """Its exit status."""
        return self.process.wait(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
