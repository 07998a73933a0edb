"""Every setting on every path, on the host that a daemon builds and serves."""

import pytest

from zcpolicy.parity.daemon import PATHS
from zcpolicy.parity.settings import SETTINGS
from zcpolicy.parity.suite import Checked


@pytest.mark.parity(PATHS, settings=[*SETTINGS])
def test_the_daemon_enforces_every_setting_on_every_path(parity_cell: Checked) -> None:
    parity_cell.check()
