"""The ledgers that the scenarios run on: in memory, in a file, on a server; each is a store that can be opened again."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.runtime.stores import Store
from zcpolicy.ledgers.contract import Ledger

_numbers = count()


def _store(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Store]:
    where = request.getfixturevalue("redis_server").url if kind == "redis" else str(folder / "ledger.db")
    made = Store(kind, where, f"runtime {next(_numbers)}")
    yield made
    made.close()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new store of each kind."""
    yield from _store(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "redis"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new store of each kind that other processes can open."""
    yield from _store(request.param, request, tmp_path)


@pytest.fixture
def ledger(store: Store) -> Ledger:
    return store.open()
