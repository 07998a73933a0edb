"""The page for hosts does what it says."""

from pathlib import Path

from tests.house.blocks import ROOT, run_story


def test_the_page_on_asking_people_runs_as_written(tmp_path: Path) -> None:
    assert run_story(ROOT / "docs/approvals.md", tmp_path) == 2
