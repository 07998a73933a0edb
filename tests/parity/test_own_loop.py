"""A host with a loop of its own uses the harness as it is, and finds what its loop leaves out."""

import pytest

from tests.parity.own_loop import DIVERGING, PATHS
from zcpolicy.parity.suite import Checked


@pytest.mark.parity(PATHS, diverging=DIVERGING)
def test_what_the_gate_does_holds_and_what_the_loop_leaves_out_is_known(parity_cell: Checked) -> None:
    parity_cell.check()
