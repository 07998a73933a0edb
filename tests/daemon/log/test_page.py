"""The page on the log runs as written."""

from pathlib import Path

from tests.house.blocks import ROOT, run_story


def test_the_page_runs_as_written(tmp_path: Path) -> None:
    assert run_story(ROOT / "docs/log.md", tmp_path) == 5
