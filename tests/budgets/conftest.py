"""The ledgers that every test here runs on: in memory, in a file, on a server."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.servers.redis_server import RedisServer
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.redis import RedisLedger
from zcpolicy.ledgers.sqlite import SqliteLedger

_numbers = count()


def opened(kind: str, request: pytest.FixtureRequest, folder: Path) -> Ledger:
    if kind == "memory":
        return MemoryLedger()
    if kind == "sqlite":
        return SqliteLedger(folder / "ledger.db")
    redis_server: RedisServer = request.getfixturevalue("redis_server")
    return RedisLedger(redis_server.url, name=f"budgets {next(_numbers)}", clock="caller")


@pytest.fixture(params=["memory", "sqlite", "redis"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A new ledger of each kind."""
    found = opened(request.param, request, tmp_path)
    yield found
    found.close()
