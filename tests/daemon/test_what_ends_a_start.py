"""What ends the start of a daemon is said on one line, which names what an operator can change."""

import asyncio
import socket
from pathlib import Path

import pytest

from policy_lang.serving.compiling import compile_layers
from zcpolicy.daemon.serving import Daemon, StartFailed

from .desk import lay, serving, settings_of


def ended(file: Path) -> str:
    async def story() -> None:
        async with Daemon(settings_of(file), compile_layers).serving():
            pass

    with pytest.raises(StartFailed) as raised:
        asyncio.run(story())
    return str(raised.value)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file = lay(tmp_path / "desk")
        file.write_text(file.read_text().replace("port = 0", f"port = {port}"))
        assert ended(file) == f"`[http]`: port {port} of `127.0.0.1`: address already in use"


def test_a_redis_server_that_nobody_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was looked for is said, and the password in its URL is not."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = lay(tmp_path / "desk", state='ledger = "env:REDIS_OF_THE_DESK"')
    assert ended(file) == "`[state] ledger`: the variable `REDIS_OF_THE_DESK` is not set"
    monkeypatch.setenv("REDIS_OF_THE_DESK", f"redis://ann:s3cr3t@127.0.0.1:{port}/0")
    said = ended(file)
    assert said.startswith(f"`[state] ledger`: the Redis server at `127.0.0.1:{port}` cannot be used: ")
    assert "s3cr3t" not in said


def test_a_folder_that_another_daemon_has(tmp_path: Path) -> None:
    file = lay(tmp_path / "desk")

    async def story() -> str:
        async with serving(file):
            return await asyncio.to_thread(ended, file)

    assert asyncio.run(story()).endswith(": one daemon has a folder at a time")


def test_a_secret_that_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTHING_IN_IT", "")
    more = '[mcp.forge]\ncommand = ["false"]\nenv = { KEY = "env:NOTHING_IN_IT" }'
    assert ended(lay(tmp_path / "desk", more=more)) == "`[mcp.forge]`: the variable `NOTHING_IN_IT` is empty"
