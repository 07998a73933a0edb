"""The pages that start a daemon run as written, daemon included."""

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from tests.house.blocks import ROOT, run_story

PORT = "8765"


def free_port() -> str:
    """A port that nobody has just now: the page's own may be taken on a machine that runs tests."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])


@pytest.mark.parametrize(("name", "programs"), [("serve", 12), ("reference/rpc", 3)])
def test_the_page_runs_as_written(name: str, programs: int, tmp_path: Path) -> None:
    text = (ROOT / f"docs/{name}.md").read_text("utf-8")
    page = tmp_path / "page.md"
    page.write_text(text.replace(PORT, free_port()), encoding="utf-8")
    try:
        assert run_story(page, tmp_path) == programs
    finally:
        started = tmp_path / "serve.pid"
        if started.exists():
            with suppress(ProcessLookupError):
                os.kill(int(started.read_text()), signal.SIGKILL)
