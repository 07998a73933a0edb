from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.sqlite import SqliteLedger

_numbers = count()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Opens the same new store again and again, as other processes would; memory has only one way in."""
    made: list[Any] = []
    if request.param == "memory":
        only = MemoryLedger()
        yield lambda: only
        return
    if request.param == "sqlite":

        def again() -> Any:
            made.append(SqliteLedger(tmp_path / "ledger.db"))
            return made[-1]
    else:
        server, name = request.getfixturevalue("redis_server"), f"test {next(_numbers)}"

        def again() -> Any:
            made.append(server.ledger(name, clock="caller"))
            return made[-1]

    yield again
    for one in made:
        one.close()


@pytest.fixture
def ledger(opened: Callable[[], Any]) -> Any:
    return opened()
