"""Stores that fail: files that are gone or not ours, servers that restart, hang or answer oddly. Nothing is half done."""

import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from redis import RedisCluster

from tests.clock import SLOW_SECONDS
from tests.servers.redis_server import RedisServer
from zcpolicy.ledgers import redis as redis_ledger
from zcpolicy.ledgers import sqlite, sqlite_file
from zcpolicy.ledgers.contract import LedgerUnavailable, Yes
from zcpolicy.ledgers.redis import RedisLedger
from zcpolicy.ledgers.sqlite import SqliteLedger

from .said import CALL, SESSION, got, pot, run, spender

TWO = (pot(2, window=SESSION),)


def refused(ledger: Any, told: str) -> None:
    with pytest.raises(LedgerUnavailable, match=told):
        ledger.reserve("refused", spender(), CALL, TWO, 1000.0)
    with pytest.raises(LedgerUnavailable, match=told):
        ledger.look(TWO, 1000.0)


# --- SQLite ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def file_ledger(path: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger(path)
    yield ledger
    ledger.close()


def test_the_files_are_named_and_for_their_owner_alone(file_ledger: SqliteLedger, path: Path) -> None:
    run(file_ledger, "a", 1000.0)
    assert set(map(str, path.parent.iterdir())) <= set(file_ledger.files)
    assert all(one.stat().st_mode & 0o077 == 0 for one in path.parent.iterdir())


def test_a_file_that_is_gone_or_replaced_grants_nothing(file_ledger: SqliteLedger, path: Path) -> None:
    run(file_ledger, "a", 1000.0)
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).rename(path.with_name("kept" + end))
    refused(file_ledger, "the ledger's file is gone")
    fresh = SqliteLedger(path)
    run(fresh, "b", 1000.0)
    refused(file_ledger, "the ledger's file was replaced")
    fresh.close()


@pytest.mark.parametrize("ends", [("-wal",), ("-shm",), ("-wal", "-shm")])
@pytest.mark.parametrize("linked", [False, True])
def test_what_stands_beside_the_file_is_a_part_of_it(path: Path, ends: tuple[str, ...], linked: bool) -> None:
    if linked:
        path.with_name("elsewhere.db").touch()
        path.symlink_to(path.with_name("elsewhere.db"))
    ledger = SqliteLedger(path)
    run(ledger, "a", 1000.0)
    for end in ends:
        path.resolve().with_name(path.resolve().name + end).unlink()
    refused(ledger, "a part of the ledger's file is gone")
    ledger.close()


def test_an_older_state_that_is_put_into_the_file_grants_nothing_anew(file_ledger: SqliteLedger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as file, closing(sqlite3.connect(path.with_name("kept"))) as kept:
        run(file_ledger, "a", 1000.0)
        file.backup(kept)
        run(file_ledger, "b", 1000.0)
        kept.backup(file)
    refused(file_ledger, "the ledger's file lost what was charged")
    with pytest.raises(LedgerUnavailable):
        file_ledger.dispatch("a", 1000.0)


SPOILT = {
    "UPDATE clock SET latest = 'x'",
    "UPDATE clock SET change = 'x'",
    "UPDATE reservations SET at = 'x'",
    "UPDATE reservations SET until = 'x'",
    "UPDATE reservations SET key = 'x'",
    "UPDATE reservations SET spender = '[]'",
    "UPDATE reservations SET charges = '[1]'",
    """UPDATE reservations SET charges = '[["calls", "-5", "", []]]'""",
    """UPDATE reservations SET charges = '[["calls", "NaN", "", []]]'""",
}


@pytest.mark.parametrize("spoil", sorted(SPOILT))
def test_a_file_that_somebody_altered_grants_nothing(path: Path, spoil: str) -> None:
    ledger = SqliteLedger(path)
    run(ledger, "a", 1000.0)
    with closing(sqlite3.connect(path)) as file:
        file.execute(spoil)
        file.commit()
    for one in (ledger, SqliteLedger(path)):
        one.begin()  # as one that starts
        refused(one, "the store holds what no ledger wrote")
        one.close()


def test_a_yes_that_somebody_altered_is_none(file_ledger: SqliteLedger, path: Path) -> None:
    file_ledger.approve(Yes("b", once=True, use="", expires=None, by="ann"))
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE yeses SET use = 'x'")
        file.commit()
    with pytest.raises(LedgerUnavailable, match="the store holds what no ledger wrote"):
        file_ledger.consume("b", "u", 1000.0)


def a_text(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


def no_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (a_text, "cannot be used: DatabaseError: file is not a database"),
        (Path.mkdir, "cannot be used: OperationalError: unable to open database file"),
        (no_folder, "cannot be opened: No such file or directory"),
    ],
)
def test_a_file_that_is_none(path: Path, made: Callable[[Path], object], told: str) -> None:
    made(path)
    refused(SqliteLedger(path), told)
    with pytest.raises(LedgerUnavailable, match=rf"`{path}` {told}"):
        SqliteLedger(path).check()


@pytest.mark.parametrize("statement", ["CREATE TABLE other (x)", "PRAGMA user_version = 1", "PRAGMA user_version = 7"])
def test_the_file_of_something_else_is_not_touched(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        before = db.execute("SELECT * FROM sqlite_schema").fetchall()
    refused(SqliteLedger(path), "is no ledger of this edition|cannot be used: OperationalError")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT * FROM sqlite_schema").fetchall() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE reservations SET spender = '[1, 2]'",
        'UPDATE reservations SET charges = \'[["calls", "many", "", []]]\'',
        "UPDATE reservations SET charges = x'00'",
        "UPDATE reservations SET key = 'x'",
        "DELETE FROM clock",
    ],
)
def test_what_no_ledger_wrote_grants_nothing(file_ledger: SqliteLedger, path: Path, statement: str) -> None:
    file_ledger.reserve("a", spender(), CALL, (), 1000.0)
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()
    refused(file_ledger, "the store holds what no ledger wrote")


def test_a_writer_that_does_not_end_is_waited_for_only_so_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sqlite, sqlite_file):
        monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)
    ledger = SqliteLedger(path)
    run(ledger, "a", 1000.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match="OperationalError"):
            ledger.reserve("b", spender(), CALL, TWO, 1000.0)
        assert ledger.look(TWO, 1000.0)[0].total == 1  # those who only look need not wait
    assert got(ledger.reserve("b", spender(), CALL, TWO, 1000.0))
    ledger.close()


def test_what_fails_inside_a_change_leaves_nothing(file_ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    run(file_ledger, "a", 1000.0)

    def breaks(*_: object) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("zcpolicy.ledgers.reservations.tags_of", breaks)
        with pytest.raises(KeyboardInterrupt):
            file_ledger.reserve("b", spender(), CALL, TWO, 1000.0)
    assert file_ledger.look(TWO, 1000.0)[0].total == 1
    assert [one.key for one in file_ledger.entries()] == ["a", "a"]
    assert got(file_ledger.reserve("b", spender(), CALL, TWO, 1000.0))


def test_on_disk_before_it_is_told(path: Path) -> None:
    ledger = SqliteLedger(path, synced=True)
    run(ledger, "a", 1000.0)
    assert ledger.look(TWO, 1000.0)[0].total == 1
    ledger.close()


# --- Redis -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path, appendonly=True)
    yield server
    server.kill()


def test_a_server_that_restarts_is_found_again_and_has_forgotten_nothing(own: RedisServer) -> None:
    ledger = own.ledger()
    assert got(ledger.reserve("a", spender(), CALL, TWO, 0.0))
    ledger.approve(Yes("b", once=True, use="", expires=None, by="ann"))
    own.kill()
    refused(ledger, "the ledger's server cannot be used: ConnectionError")
    with pytest.raises(LedgerUnavailable, match=r"cannot be used: ConnectionError: .*refused"):
        ledger.check()
    with pytest.raises(LedgerUnavailable):
        ledger.dispatch("a", 0.0)
    assert own.start()
    assert ledger.dispatch("a", 0.0)
    assert got(ledger.reserve("b", spender(), CALL, TWO, 0.0))
    assert not got(ledger.reserve("c", spender(), CALL, TWO, 0.0))
    assert ledger.consume("b", "u", 0.0) is not None
    ledger.close()


def test_a_server_that_forgot_its_scripts_is_told_again(redis_server: RedisServer) -> None:
    ledger = redis_server.ledger("scripts")
    run(ledger, "a", 0.0)
    with redis_server.client() as client:
        client.script_flush()
    run(ledger, "b", 0.0)
    assert ledger.look(TWO, 0.0)[0].total == 2
    ledger.close()


@pytest.mark.parametrize("lost", ["everything", "the latest"])
def test_a_server_that_lost_what_was_charged_grants_nothing_anew(redis_server: RedisServer, lost: str) -> None:
    """It was emptied, started without what it held, or gave its place to one that is behind: whoever saw more, knows."""
    name = f"lost {lost}"
    ledger = redis_server.ledger(name)
    run(ledger, "a", 0.0)
    with redis_server.client() as client:
        keys = client.keys(f"{{zcpolicy:{name}}}:*")
        with redis.Redis(port=redis_server.port) as raw:
            held = {key: raw.dump(key) or b"" for key in keys}
            run(ledger, "b", 0.0)
            raw.delete(*keys)
            for key, value in held.items() if lost == "the latest" else ():
                raw.restore(key, 0, value)
    refused(ledger, "the ledger's server lost what was charged")
    with pytest.raises(LedgerUnavailable):
        ledger.consume("b", "u", 0.0)
    refused(ledger, "the ledger's server lost what was charged")
    ledger.close()


def test_what_is_sent_again_is_done_once(redis_server: RedisServer) -> None:
    """An answer is lost on its way, and the client asks once more."""
    ledger: Any = redis_server.ledger("again")
    script = ledger._script

    def twice(**sent: Any) -> Any:
        return [script(**sent), script(**sent)][1]

    ledger._script = twice
    run(ledger, "a", 0.0)
    ledger.approve(Yes("b", once=True, use="", expires=None, by="ann"))
    assert ledger.look(TWO, 0.0)[0].total == 1
    assert ledger.consume("b", "one", 0.0) is not None
    assert ledger.consume("b", "other", 0.0) is None
    ledger.close()


def test_a_server_that_cannot_be_reached_is_told_without_secrets() -> None:
    ledger = RedisLedger("redis://user:sesame@127.0.0.1:1/0")
    with pytest.raises(LedgerUnavailable) as told:
        ledger.now(0.0)
    assert "sesame" not in str(told.value)
    assert told.value.__suppress_context__
    ledger.close()


def test_a_server_that_never_answers_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ledger = RedisLedger(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", timeout=0.1)
        began = time.monotonic()
        with pytest.raises(LedgerUnavailable, match="TimeoutError"):
            ledger.check()
        refused(ledger, "did not answer in time a moment ago")
        assert time.monotonic() - began < 5
        ledger.close()


def test_one_that_hangs_keeps_nobody_waiting_in_turn_and_is_asked_again(own: RedisServer) -> None:
    """Twenty ask at once: the first waits for the time-out, twice; the others do not wait for theirs after it."""
    ledger = RedisLedger(own.url, timeout=0.5)
    run(ledger, "a", 0.0)
    own.hang()
    began = time.monotonic()
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(refused, ledger, "the ledger's server cannot be used") for _ in range(20)]
        for one in asked:
            one.result()
    assert time.monotonic() - began < 6  # one after the other they would take 20 to 40 seconds
    own.go_on()
    until(lambda: got(ledger.reserve("b", spender(), CALL, TWO, 0.0)))
    assert ledger.look(TWO, 0.0)[0].total == 2
    ledger.close()


def until(held: Callable[[], bool]) -> None:
    """Within the rest that a silent server is given."""
    end = time.monotonic() + redis_ledger.REST_SECONDS + SLOW_SECONDS
    while True:
        try:
            assert held()
        except LedgerUnavailable:
            assert time.monotonic() < end
            time.sleep(0.05)
        else:
            return


@pytest.mark.parametrize(
    "spoil",
    [
        ("SET", "records", "x"),
        ("HSET", "records", "NUMBER", "no json"),
        ("HSET", "records", "NUMBER", "[]"),
        ("DEL", "records"),
        ("HSET", "meta", "edition", "2"),
        ("HSET", "meta", "change", "x"),
    ],
)
def test_a_server_that_answers_oddly_grants_nothing(redis_server: RedisServer, spoil: tuple[str, ...]) -> None:
    ledger = redis_server.ledger("odd")
    with redis_server.client() as client:
        for key in client.keys("{zcpolicy:odd}:*"):
            client.delete(key)
        ledger.reserve("a", spender(), CALL, TWO, 0.0)
        number = client.hkeys("{zcpolicy:odd}:records")[0]
        command, name, *rest = spoil
        client.execute_command(command, "{zcpolicy:odd}:" + name, *[one.replace("NUMBER", number) for one in rest])
    for one in (ledger, redis_server.ledger("odd")):
        one.begin()  # as one that starts
        refused(one, "the store holds what no ledger wrote|cannot be used: ResponseError|of another edition")
        one.close()


def test_a_server_that_may_drop_what_was_charged_is_refused(own: RedisServer) -> None:
    with own.client() as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        refused(own.ledger(), "its maxmemory-policy is `allkeys-lru`")
        client.config_set("maxmemory-policy", "noeviction")
        run(own.ledger(), "a", 0.0)


def test_one_that_may_drop_it_from_now_on_is_refused_from_the_next_look_on(
    own: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = own.ledger()
    run(ledger, "a", 0.0)
    with own.client() as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
    run(ledger, "b", 0.0)  # it was asked just now
    monkeypatch.setattr(redis_ledger, "CHECK_SECONDS", 0.0)
    refused(ledger, "its maxmemory-policy is `allkeys-lru`")
    ledger.close()


def test_one_that_went_away_is_asked_again(own: RedisServer) -> None:
    ledger = own.ledger()
    run(ledger, "a", 0.0)
    own.kill()
    refused(ledger, "the ledger's server cannot be used")
    own.start()
    with own.client() as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
    refused(ledger, "its maxmemory-policy is `allkeys-lru`")
    ledger.close()


def test_one_that_still_reads_what_it_kept_is_waited_for(own: RedisServer) -> None:
    ledger = own.ledger()
    run(ledger, "a", 0.0)
    with own.client() as client:
        client.eval("for i = 1, 300000 do redis.call('SET', 'other' .. i, '1') end", 0)
    own.kill()
    refused(ledger, "the ledger's server cannot be used")
    own.start()  # it says who it is, and reads on for a quarter of a second
    run(ledger, "b", 0.0)
    assert ledger.look(TWO, 0.0)[0].total == 2
    ledger.close()


def test_the_time_is_the_servers(redis_server: RedisServer) -> None:
    ledger = redis_server.ledger("time")
    assert abs(ledger.now(5.0) - time.time()) < 5
    run(ledger, "a", 1e11)
    assert abs(next(iter(ledger.entries())).at - time.time()) < 5
    ledger.close()


def test_all_keys_lie_in_one_slot_of_a_cluster(redis_server: RedisServer) -> None:
    ledger = redis_server.ledger("slots")
    run(ledger, "a", 0.0)
    ledger.approve(Yes("b", once=True, use="", expires=None, by="ann"))
    with redis_server.client() as client:
        found = client.keys("*slots*")
    assert len(found) > 6
    assert all(key.startswith("{zcpolicy:slots}:") for key in found)
    ledger.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path, cluster=True)
    with server.client() as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        while client.cluster("INFO")["cluster_state"] != "ok":
            time.sleep(0.05)
    yield server
    server.kill()


def test_a_cluster_will_do(cluster: RedisServer) -> None:
    nodes = RedisCluster(host="127.0.0.1", port=cluster.port, decode_responses=True)
    ledger = RedisLedger(nodes)
    run(ledger, "a", 0.0)
    assert got(ledger.reserve("b", spender(), CALL, TWO, 0.0))
    assert not got(ledger.reserve("c", spender(), CALL, TWO, 0.0))
    ledger.approve(Yes("b", once=True, use="", expires=None, by="ann"))
    assert ledger.consume("b", "u", 0.0) is not None
    ledger.prune(1e11)
    assert [entry.key for entry in ledger.entries()] == ["b", "b"]
    ledger.close()


def test_more_than_one_answer_tells_is_read_in_several(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_ledger, "MAX_NEWS", 3)
    one, other = (redis_server.ledger("pages") for _ in range(2))
    limit = (pot(20, window=SESSION), pot(20))
    for n in range(10):
        run(one, f"a{n}", 0.0)
    assert [spent.total for spent in other.look(limit, 0.0)] == [10, 10]
    for n in range(7):
        run(one, f"b{n}", 0.0)
    assert got(other.reserve("c", spender(), CALL, limit, 0.0))
    assert [spent.total for spent in other.look(limit, 0.0)] == [18, 18]
    assert len({entry.key for entry in other.entries()}) == 18
    one.prune(1e11)
    assert [spent.total for spent in other.look(limit, 0.0)] == [1, 1]
    one.close()
    other.close()
