"""The ledgers that every test here runs on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from zcpolicy.ledgers.contract import Ledger
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.sqlite import SqliteLedger


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger in memory, and one in a file."""
    found: Ledger = MemoryLedger() if request.param == "memory" else SqliteLedger(tmp_path / "ledger.db")
    yield found
    found.close()
