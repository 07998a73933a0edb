"""Many processes and threads on one store: none overspends, none is lost; killed at any point, all or nothing is there."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.servers.redis_server import RedisServer
from zcpolicy.ledgers.reservations import tags_of
from zcpolicy.ledgers.sqlite import SqliteLedger

from . import workers
from .said import CALL, SESSION, got, pot, spender

_numbers = count()


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    redis_server: RedisServer = request.getfixturevalue("redis_server")
    return f"processes-{next(_numbers)} {redis_server.url}"


def worker(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.ledgers.workers", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def ran_by(many: int, store: str, limit: int) -> list[str]:
    """The calls that so many processes ran, which all began at once."""
    workers_ = [worker("take", store, number, limit) for number in range(many)]
    for one in workers_:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    found: list[str] = []
    for one in workers_:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    for one in workers_:
        found += one.communicate(timeout=60)[0].split()
        assert one.returncode == 0
    return found


def test_sixteen_processes_take_exactly_what_there_is(store: str) -> None:
    ran = ran_by(16, store, 120)
    assert len(ran) == len(set(ran)) == 120
    ledger = workers.opened(store)
    assert ledger.look((pot(1, window=SESSION),), 1000.0)[0].total == 120
    assert {one.key for one in ledger.entries() if one.state == "settled"} == set(ran)
    ledger.close()


def test_of_two_processes_and_one_call_exactly_one_runs(store: str) -> None:
    assert len(ran_by(2, store, 1)) == 1


def test_threads_take_exactly_what_there_is(opened: Callable[[], Any]) -> None:
    shared, limit = opened(), (pot(100),)
    ran: list[bool] = []

    def some(name: int) -> None:
        mine = [f"{name}-{n}" for n in range(40)]
        taken = [key for key in mine if got(shared.reserve(key, spender(), CALL, limit, 1000.0))]
        ran.extend(shared.dispatch(key, 1000.0) for key in taken)

    threads = [Thread(target=some, args=(name,)) for name in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert ran == [True] * 100
    assert shared.look(limit, 1000.0)[0].total == 100


def test_a_forked_process_uses_the_same_store_with_files_of_its_own(store: str) -> None:
    ledger, limit = workers.opened(store), (pot(2, window=SESSION),)
    assert got(ledger.reserve("parent", spender(), CALL, limit, 1000.0))
    child = os.fork()
    if child == 0:
        ok = False
        try:
            ok = got(ledger.reserve("child", spender(), CALL, limit, 1000.0))
            ok = ok and not got(ledger.reserve("child 2", spender(), CALL, limit, 1000.0))
        finally:
            os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not got(ledger.reserve("parent 2", spender(), CALL, limit, 1000.0))
    assert ledger.dispatch("child", 1000.0)
    ledger.close()


def test_killed_at_any_point_a_change_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    chance = random.Random(7)
    said: list[str] = []
    for round_ in range(10):
        with worker("write", path, round_) as writer:
            assert writer.stdout is not None
            said.append(writer.stdout.readline())
            time.sleep(chance.random() * 0.04)
            writer.send_signal(signal.SIGKILL)
            said += writer.stdout.readlines()
    last = {key: state for state, key in (line.split() for line in said if line.endswith("\n"))}
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        kept = {
            key.strip('"'): (seq, state) for seq, key, state in db.execute("SELECT seq, key, state FROM reservations")
        }
        tags = dict(db.execute("SELECT seq, count(*) FROM tags GROUP BY seq"))
    order = ["reserved", "dispatched", "settled"]
    assert last.keys() <= kept.keys()
    assert len(kept) <= len(last) + 10
    for key, (seq, state) in kept.items():
        said_last = order.index(last[key]) if key in last else -1
        assert order.index(state) in (said_last, said_last + 1)  # what was done last may not have been said
        assert tags[seq] == len(tags_of(spender()))
    assert tags.keys() == {seq for seq, _ in kept.values()}
    again = SqliteLedger(path)
    assert again.look((pot(1, window=SESSION),), 1e9)[0].total == sum(state != "reserved" for _, state in kept.values())
    again.close()
