"""What is kept of counting: it costs what is new, it is bounded, and what was dropped is counted again."""

from decimal import Decimal
from typing import Any

import pytest

from zcpolicy.ledgers import book, memory
from zcpolicy.ledgers.contract import Spent, Who, Yes
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.reservations import Reservation
from zcpolicy.ledgers.sqlite import SqliteLedger

from .said import ALICE, BOB, CALL, SESSION, TURN, calendar, got, pot, rolling, run, spender, usd


def test_a_look_reads_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, read = MemoryLedger(), [0]
    counted = book.counted

    def noticed(one: Reservation, of: Any) -> Any:
        read[0] += 1
        return counted(one, of)

    monkeypatch.setattr(book, "counted", noticed)
    for n in range(500):
        assert got(ledger.reserve(f"k{n}", spender(), CALL, (pot(1000), pot(1000, window=SESSION)), 1000.0))
    assert read[0] == 2 * 499


def test_a_cold_process_reads_only_its_own_rows(tmp_path: Any) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    other = Who("bob", "s9", "t1", "tester")
    for n in range(50):
        run(ledger, f"other {n}", 1000.0 + n, by=spender(other, to="sy"))
    run(ledger, "old", 1050.0)
    run(ledger, "mine", 2000.0)
    cold = SqliteLedger(tmp_path / "l.db")
    rows: list[str] = []
    cold.now(0.0)
    assert cold._db is not None
    cold._db.set_trace_callback(rows.append)
    cold.look((pot(1, owner="agent:coder"),), 2000.0)
    query = next(row for row in rows if "tags" in row)
    assert len(cold._db.execute(query).fetchall()) == 1
    cold.close()
    ledger.close()


@pytest.mark.parametrize("bound", ["MAX_TALLIES", "MAX_PARTS"])
def test_the_counted_is_bounded_and_right_all_the_same(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, bound, 4)
    ledger = MemoryLedger()
    for n in range(40):
        to = f"s{n % 8}"
        by, one = spender(to=to), pot(5, window=SESSION, each=("args", "to"), value=to)
        assert got(ledger.reserve(f"k{n}", by, CALL, (one, pot(40)), 1000.0 + n))
        kept = ledger._book
        assert len(kept._tallies) <= 8
        assert kept._parts == sum(map(len, kept._tallies.values()))
    again = [pot(5, window=SESSION, each=("args", "to"), value=f"s{n}") for n in range(8)]
    assert [one.total for one in ledger.look(again, 1040.0)] == [5] * 8


def test_sessions_share_the_count_of_what_is_common_to_them() -> None:
    ledger = MemoryLedger()
    for n in range(20):
        who = Who(f"c{n}", f"s{n}", "t", "coder")
        ledger.reserve(f"k{n}", spender(who), CALL, (pot(99, who=who), pot(99, who=who, window=SESSION)), 1000.0)
    assert len(ledger._book._tallies) == 21


# --- a ledger in memory does not grow for ever -----------------------------------------------------------------------

DAY = 86_400.0


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> MemoryLedger:
    monkeypatch.setattr(memory, "SWEEP_EVERY", 10)
    return MemoryLedger()


def kept(ledger: MemoryLedger) -> int:
    return len({one.key for one in ledger.entries()})


def test_what_is_older_than_all_windows_is_put_together(small: MemoryLedger) -> None:
    session, turn = pot(10**6, window=SESSION), pot(10**6, window=TURN)
    money = pot(10**6, "money", window=SESSION)
    for n in range(1000):
        run(small, f"k{n}", n * 3600.0, charges=[*CALL, usd(Decimal("0.1"))])
        assert kept(small) < 24 + 80
    found = small.look((session, turn, money), 3_600_000.0)
    assert [one.total for one in found] == [1000, 1000, 100]
    assert len(small.charged) == len(small._by_tag["*"])


def test_a_window_that_was_asked_about_keeps_them_apart(small: MemoryLedger) -> None:
    month = pot(10**6, window=calendar("month"))
    small.look((month, pot(1, window=rolling(60))), 0.0)
    for n in range(31):
        for m in range(20):
            run(small, f"k{n} {m}", n * DAY + m)
    assert small.look((month,), 30 * DAY + 100)[0] == Spent(31 * 20, room=True, retry_after=0.0)
    assert kept(small) == 31 * 20


def test_what_is_older_than_a_month_is_forgotten_but_for_what_runs(small: MemoryLedger) -> None:
    small.reserve("runs", spender(), CALL, (), 0.0, lease=1000 * DAY)
    small.dispatch("runs", 0.0)
    run(small, "old", 1.0)
    for n in range(50):
        run(small, f"k{n}", 40 * DAY + n)
    assert {"runs", "k0"} <= small.charged.keys()
    assert "old" not in small.charged
    assert small.look((pot(1, window=SESSION),), 41 * DAY)[0].total == 51


def test_with_the_keys_of_calls_go_the_yeses_that_they_took(small: MemoryLedger) -> None:
    """Else a turn that is taken up again would make its calls once more, and nobody would be asked."""
    for key in ("a", "b"):
        small.approve(Yes("binding", once=True, use=key, expires=None, by="ann"))
        assert small.consume("binding", key, 1000.0) is not None
        run(small, key, 1000.0)
    small.approve(Yes("lasting", once=False, use="", expires=None, by="ann"))
    small.approve(Yes("waiting", once=True, use="", expires=None, by="ann"))
    for n in range(50):
        run(small, f"later {n}", 2000.0 + DAY, by=spender(BOB))
    fresh = [got(small.reserve(key, spender(), CALL, (), 1000.0)) for key in ("a", "b")]
    yeses = [small.consume("binding", key, 1000.0) is not None for key in ("a", "b")]
    assert not any(new and yes for new, yes in zip(fresh, yeses, strict=True))
    assert any(fresh), "keys were forgotten"
    assert small.consume("lasting", "x", 1000.0) is not None
    assert small.consume("waiting", "x", 1000.0) is not None


def test_the_oldest_yeses_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_YESES", 2)
    ledger = MemoryLedger()
    for name in ("a", "b", "c"):
        ledger.approve(Yes(name, once=False, use="", expires=None, by="ann"))
    assert [ledger.consume(name, "u", 1.0) is None for name in ("a", "b", "c")] == [True, False, False]


def test_nothing_charged_is_told_for_free() -> None:
    ledger = MemoryLedger()
    charged = ledger.charged
    assert not charged
    ledger.reserve("a", spender(ALICE), CALL, (), 1.0)
    assert charged
