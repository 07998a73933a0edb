"""Every path of the reference host with every setting. The index names the second test; the first names path and setting."""

import pytest

from zcpolicy.parity.matrix import Matrix
from zcpolicy.parity.reference import PATHS
from zcpolicy.parity.suite import Checked


@pytest.mark.parity(PATHS)
def test_a_path_enforces_a_setting(parity_cell: Checked) -> None:
    parity_cell.check()


@pytest.mark.parity(PATHS)
def test_every_path_enforces(parity_row: tuple[Checked, ...]) -> None:
    assert [one.cell.path for one in parity_row] == [path.name for path in PATHS]
    for one in parity_row:
        one.check()


@pytest.mark.parity(PATHS)
def test_the_whole_matrix(parity_matrix: Matrix) -> None:
    assert parity_matrix.enforced
    assert len(parity_matrix.cells) == len(parity_matrix.paths) * len(parity_matrix.settings)
