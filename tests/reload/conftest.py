"""A disk for each test."""

from pathlib import Path

import pytest

from tests.reload.disk import Disk


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)
