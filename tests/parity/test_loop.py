"""The seam with nothing around it: the loop honours each setting once it is there. The paths are compared with this."""

import pytest

from zcpolicy.parity.direct import ALONE
from zcpolicy.parity.suite import Checked


@pytest.mark.parity(ALONE)
def test_the_loop_honours_a_setting(parity_cell: Checked) -> None:
    parity_cell.check()
