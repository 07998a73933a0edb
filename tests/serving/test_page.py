"""The five minutes of docs/serve.md run as written, daemon included."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.house.blocks import ROOT, run_story


def test_the_page_runs_as_written(tmp_path: Path) -> None:
    try:
        assert run_story(ROOT / "docs/serve.md", tmp_path) == 12
    finally:
        started = tmp_path / "serve.pid"
        if started.exists():
            with suppress(ProcessLookupError):
                os.kill(int(started.read_text()), signal.SIGKILL)
