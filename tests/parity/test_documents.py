"""The pages on parity: the matrix is what this run produces, and what the guide tells works."""

from pathlib import Path

import pytest

from tests.house.blocks import run_story
from zcpolicy.parity.matrix import Matrix
from zcpolicy.parity.reference import PATHS
from zcpolicy.parity.render import markdown

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parity(PATHS)
def test_the_page_is_what_this_run_produces(parity_matrix: Matrix) -> None:
    """Otherwise: `zcpolicy parity --format markdown > docs/parity-matrix.md`."""
    assert (DOCS / "parity-matrix.md").read_text("utf-8") == markdown(parity_matrix)


def test_the_guide_does_what_it_tells(tmp_path: Path) -> None:
    assert run_story(DOCS / "parity.md", tmp_path) == 4
