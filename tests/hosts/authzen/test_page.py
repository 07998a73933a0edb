"""The walk-through of docs/hosts/authzen.md runs as written, decision point included, on a port that is free."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.house.blocks import ROOT, run_story
from tests.serving.test_page import free_port

PORT = "8766"


def test_the_page_runs_as_written(tmp_path: Path) -> None:
    text = (ROOT / "docs/hosts/authzen.md").read_text("utf-8")
    assert PORT in text
    page = tmp_path / "authzen.md"
    page.write_text(text.replace(PORT, free_port()), encoding="utf-8")
    try:
        assert run_story(page, tmp_path) == 9
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
