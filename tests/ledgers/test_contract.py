"""What every ledger does alike: in memory, in an SQLite file, on a Redis server."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from zcpolicy.ledgers.contract import Charge, Exhausted, LedgerUnavailable, Reserved, Who, Yes

from .said import ALICE, BOB, CALL, SESSION, TURN, calendar, got, pot, rolling, run, spender, usd


def total(ledger: Any, at: float, one: Any) -> Any:
    return ledger.look((one,), at)[0].total


def test_a_store_that_can_be_used(ledger: Any) -> None:
    ledger.check()
    assert list(ledger.entries()) == []
    assert got(ledger.reserve("k", spender(), CALL, (), 1000.0))
    ledger.check()
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="the ledger is closed"):
        ledger.check()


# --- counting --------------------------------------------------------------------------------------------------------


def test_the_nth_runs_and_the_next_is_told_when_to_retry(ledger: Any) -> None:
    six = (pot(6),)
    assert all(got(ledger.reserve(f"k{n}", spender(), CALL, six, 1000.0 + n)) for n in range(6))
    denied = ledger.reserve("k6", spender(), CALL, six, 1010.0)
    assert isinstance(denied, Exhausted)
    assert denied.spent[0] == (6, False, 50.0)  # the first, of 1000, leaves at 1060
    assert not got(ledger.reserve("k6", spender(), CALL, six, 1059.75))
    assert got(ledger.reserve("k6", spender(), CALL, six, 1060.0))


def test_all_pots_or_none(ledger: Any) -> None:
    pots = (pot(5), pot(0, "concurrent calls"))
    outcome = ledger.reserve("k", spender(), CALL, pots, 1000.0)
    assert [one.room for one in outcome.spent] == [True, False]
    assert total(ledger, 1000.0, pot(5)) == 0
    assert list(ledger.entries()) == []


def test_zero_is_never(ledger: Any) -> None:
    outcome = ledger.reserve("k", spender(), CALL, (pot(0),), 1000.0)
    assert outcome.spent[0] == (0, False, None)


def test_amounts_are_exact(ledger: Any) -> None:
    tiny, vast = Decimal("0.000001"), 10**40
    run(ledger, "a", 1000.0, charges=[usd(vast)])
    run(ledger, "b", 1000.0, charges=[usd(tiny)])
    assert str(total(ledger, 1000.0, pot(1, "money"))) == f"{vast}.000001"
    assert total(ledger, 1030.0, pot(1, "money", window=rolling(20))) == 0


@pytest.mark.parametrize(
    "amount", [-1, Decimal("-0.01"), Decimal("NaN"), Decimal("Infinity"), 10**500, Decimal("1E+600")]
)
def test_an_amount_that_is_none_charges_nothing(ledger: Any, amount: Any) -> None:
    with pytest.raises(ValueError, match="an amount is"):
        ledger.reserve("k", spender(), [usd(amount)], (), 1000.0)
    assert got(ledger.reserve("k", spender(), [usd(1)], (), 1000.0))
    with pytest.raises(ValueError, match="an amount is"):
        ledger.settle("k", [usd(amount)], 1000.0)
    assert total(ledger, 1000.0, pot(1, "money")) == 1


def test_an_edited_limit_applies_to_what_is_spent(ledger: Any) -> None:
    assert got(ledger.reserve("a", spender(), CALL, (pot(5),), 1000.0))
    assert got(ledger.reserve("b", spender(), CALL, (pot(2),), 1000.0))
    assert not got(ledger.reserve("c", spender(), CALL, (pot(2),), 1000.0))
    assert not got(ledger.reserve("c", spender(), CALL, (pot(1, window=rolling(3600)),), 1000.0))


def test_money_overshoots_only_by_what_was_underestimated_and_is_recorded_whole(ledger: Any) -> None:
    limit = (pot(10, "money", need=5),)
    run(ledger, "a", 1000.0, charges=[usd(9)])
    assert not got(ledger.reserve("b", spender(), [usd(5)], limit, 1000.0))
    one = (pot(10, "money", need=1),)
    assert got(ledger.reserve("c", spender(), [usd(1)], one, 1000.0))
    assert not got(ledger.reserve("d", spender(), [usd(1)], one, 1000.0))
    assert ledger.dispatch("c", 1001.0)
    ledger.settle("c", [usd(Decimal("7.5"))], 1002.0)
    assert total(ledger, 1002.0, one[0]) == Decimal("16.5")


def test_an_open_end_has_room_only_below_the_limit(ledger: Any) -> None:
    time = pot(10, "time", open_end=True)
    run(ledger, "a", 1000.0, charges=[Charge("time", Decimal("9.5"))])
    assert ledger.look((time,), 1000.0)[0].room
    run(ledger, "b", 1000.0, charges=[Charge("time", Decimal("0.5"))])
    assert ledger.look((time,), 1000.0)[0] == (10, False, 60.0)


# --- what counts where -----------------------------------------------------------------------------------------------

CHILD = Who("alice", "s3", "t9", "helper")


@pytest.mark.parametrize(
    ("where", "alone", "child"),
    [  # a call of alice's coder in (s1, t1), and one of a child of it
        ({}, 1, 2),
        ({"owner": "agent:coder"}, 1, 2),
        ({"owner": "agent:helper"}, 0, 1),
        ({"owner": "agent:base"}, 1, 1),  # which coder narrows
        ({"owner": "agent:tester"}, 0, 0),
        ({"owner": "skill:deploy"}, 1, 1),
        ({"owner": "skill:other"}, 0, 0),
        ({"owner": "narrowing"}, 1, 2),
        ({"owner": "narrowing", "who": BOB}, 0, 0),
        ({"window": SESSION}, 1, 2),
        ({"window": SESSION, "who": CHILD}, 0, 1),
        ({"window": SESSION, "who": BOB}, 0, 0),
        ({"window": TURN}, 1, 2),
        ({"window": TURN, "who": ALICE._replace(turn="t2")}, 0, 0),
        ({"window": TURN, "who": ALICE._replace(turn="t9")}, 0, 0),  # the child's turn, of another session
        ({"each": ("client",)}, 1, 2),
        ({"each": ("client",), "who": BOB}, 0, 0),
        ({"each": ("session",)}, 1, 2),
        ({"each": ("session",), "who": CHILD}, 0, 1),
        ({"each": ("agent",)}, 1, 2),
        ({"each": ("agent",), "who": ALICE._replace(agent="helper")}, 0, 1),
        ({"each": ("args", "to"), "value": "sx"}, 1, 1),
        ({"each": ("args", "to"), "value": "sy"}, 0, 1),
        ({"each": ("args", "cc"), "value": "sx"}, 0, 0),
        ({"tools": frozenset(["shell"])}, 1, 1),
        ({"tools": frozenset(["shell", ("github", "get_me")])}, 1, 2),
        ({"tools": frozenset(["github/get_me"])}, 0, 0),
        ({"unit": "iterations"}, 0, 0),
        ({"window": calendar("day"), "owner": "agent:coder"}, 1, 2),
    ],
)  # fmt: skip
def test_what_counts_in_which_pot(ledger: Any, where: dict[str, Any], alone: int, child: int) -> None:
    asked = pot(100, **where)
    run(ledger, "a", 1000.0, by=spender(ALICE, skills=("deploy",), chains=("base",), to="sx"))
    assert total(ledger, 1000.0, asked) == alone
    run(ledger, "b", 1001.0, by=spender(CHILD, ALICE, tool=("github", "get_me"), to="sy"))
    assert total(ledger, 1001.0, asked) == child


@pytest.mark.parametrize(
    "where", [{"window": SESSION}, {"window": TURN}, {"each": ("session",)}, {"owner": "narrowing"}], ids=str
)
def test_a_session_is_a_clients(ledger: Any, where: dict[str, Any]) -> None:
    """Whoever names a session as somebody else's is called spends from pots of his own."""
    eve = ALICE._replace(client="eve")
    run(ledger, "a", 1000.0, by=spender(ALICE))
    assert [one.total for one in ledger.look([pot(1, who=who, **where) for who in (ALICE, eve)], 1000.0)] == [1, 0]
    assert got(ledger.reserve("b", spender(eve), CALL, [pot(1, who=eve, **where)], 1000.0))
    assert [one.total for one in ledger.look([pot(1, who=who, **where) for who in (ALICE, eve)], 1000.0)] == [1, 1]


def test_sums_count_by_argument_and_money_by_currency(ledger: Any) -> None:
    charges = [Charge("sum", 5, "", ("amount",)), Charge("sum", 7, "", ("fee",)), usd(1), Charge("money", 2, "eur")]
    run(ledger, "a", 1000.0, charges=charges)
    assert total(ledger, 1000.0, pot(9, "sum", argument=("amount",))) == 5
    assert total(ledger, 1000.0, pot(9, "sum", argument=("fee",))) == 7
    assert total(ledger, 1000.0, pot(9, "money")) == 1
    assert total(ledger, 1000.0, pot(9, "money", currency="eur")) == 2


@pytest.mark.parametrize(
    ("part", "zone", "at", "spent", "wait"),
    [  # charged at 2024-03-30 23:30 in Berlin, the night before clocks go forward
        ("day", "Europe/Berlin", 1711837800.0 + 1799, 1, 1.0),
        ("day", "Europe/Berlin", 1711837800.0 + 1800, 0, 0.0),
        ("day", "UTC", 1711837800.0 + 5399, 1, 1.0),
        ("month", "Europe/Berlin", 1711837800.0 + 1800 + 82_799, 1, 1.0),  # March 31 had 23 hours
        ("month", "Europe/Berlin", 1711837800.0 + 1800 + 82_800, 0, 0.0),
    ],
)
def test_calendars_begin_at_midnight_of_their_zone(
    ledger: Any, part: str, zone: str, at: float, spent: int, wait: float
) -> None:
    run(ledger, "a", 1711837800.0)
    asked = pot(1, window=calendar(part, zone))
    found = ledger.look((asked,), at)[0]
    assert (found.total, found.room) == (spent, spent == 0)
    if wait > 0:
        assert found.retry_after == wait


# --- the life of a reservation ---------------------------------------------------------------------------------------


def test_an_undispatched_lease_that_is_over_returns_what_was_reserved(ledger: Any) -> None:
    one = (pot(1),)
    assert got(ledger.reserve("a", spender(), CALL, one, 1000.0, lease=10.0))
    assert not got(ledger.reserve("b", spender(), CALL, one, 1009.75))
    assert got(ledger.reserve("b", spender(), CALL, one, 1010.0))
    assert not ledger.dispatch("a", 1010.0)
    ledger.renew("a", 1010.0)
    assert total(ledger, 1010.0, one[0]) == 1


def test_a_dispatched_lease_that_is_over_counts_at_what_was_reserved(ledger: Any) -> None:
    run_pot, counts = pot(1, "concurrent calls"), pot(9)
    ledger.reserve("a", spender(), CALL, (), 1000.0, lease=10.0)
    assert ledger.dispatch("a", 1001.0)
    assert (total(ledger, 1009.0, run_pot), total(ledger, 1009.0, counts)) == (1, 1)
    assert (total(ledger, 1010.0, run_pot), total(ledger, 1010.0, counts)) == (0, 1)
    ledger.release("a")
    assert total(ledger, 1011.0, counts) == 1


def test_a_released_reservation_counts_no_more_and_its_key_is_new(ledger: Any) -> None:
    one = (pot(1),)
    ledger.reserve("a", spender(), CALL, one, 1000.0)
    ledger.release("a")
    assert not ledger.dispatch("a", 1000.0)
    assert got(ledger.reserve("b", spender(), CALL, one, 1001.0))
    assert not got(ledger.reserve("a", spender(), CALL, one, 1001.0))
    ledger.release("b")
    assert got(ledger.reserve("a", spender(), CALL, one, 1002.0))


def test_a_renewed_lease_runs_from_then(ledger: Any) -> None:
    running = pot(1, "concurrent calls")
    ledger.reserve("a", spender(), CALL, (running,), 1000.0, lease=10.0)
    ledger.dispatch("a", 1000.0)
    for at in (1008.0, 1016.0, 1024.0):
        ledger.renew("a", at, lease=10.0)
    assert total(ledger, 1033.0, running) == 1
    assert total(ledger, 1034.0, running) == 0
    ledger.renew("a", 1035.0, lease=10.0)  # its holder lives after all
    assert total(ledger, 1035.0, running) == 1


def test_concurrent_calls_are_free_again_when_settled(ledger: Any) -> None:
    running = (pot(1, "concurrent calls"),)
    assert got(ledger.reserve("a", spender(), CALL, running, 1000.0))
    assert not got(ledger.reserve("b", spender(), CALL, running, 1000.0))
    ledger.dispatch("a", 1000.0)
    ledger.settle("a", (), 1000.0)
    assert got(ledger.reserve("b", spender(), CALL, running, 1000.0))


def test_a_key_is_charged_once_whatever_its_state(ledger: Any) -> None:
    limit = (pot(1),)
    assert ledger.reserve("a", spender(), CALL, limit, 1000.0) == Reserved("a", "reserved", 1000.0, fresh=True)
    assert ledger.reserve("a", spender(), CALL, limit, 1001.0) == Reserved("a", "reserved", 1000.0, fresh=False)
    assert ledger.dispatch("a", 1001.0)
    assert ledger.reserve("a", spender(), CALL, limit, 1002.0) == Reserved("a", "dispatched", 1000.0, fresh=False)
    ledger.settle("a", (), 1002.0)
    assert ledger.reserve("a", spender(), CALL, limit, 1003.0) == Reserved("a", "settled", 1000.0, fresh=False)
    assert total(ledger, 1003.0, limit[0]) == 1


def test_one_reservation_starts_one_call(ledger: Any) -> None:
    ledger.reserve("a", spender(), CALL, (), 1000.0)
    assert [ledger.dispatch("a", 1000.0) for _ in range(3)] == [True, False, False]
    ledger.settle("a", (), 1001.0)
    assert not ledger.dispatch("a", 1001.0)
    assert not ledger.dispatch("nobody's", 1001.0)


def test_it_is_settled_once_unit_by_unit_and_counts_from_when_it_was_reserved(ledger: Any) -> None:
    ledger.reserve("a", spender(), [usd(3), Charge("tokens", 100)], (), 1000.0)
    ledger.dispatch("a", 1000.0)
    ledger.settle("a", [usd(1), usd(1), Charge("time", 5)], 1030.0)
    ledger.settle("a", [usd(50)], 1031.0)
    spent = [total(ledger, 1031.0, pot(9, unit)) for unit in ("money", "tokens", "time")]
    assert spent == [2, 100, 5]
    assert total(ledger, 1060.0, pot(9, "money")) == 0


def test_what_was_spent_without_a_dispatch_or_after_its_lease_counts(ledger: Any) -> None:
    ledger.reserve("a", spender(), [usd(3)], (), 1000.0, lease=10.0)
    ledger.settle("a", [usd(4)], 1020.0)
    assert total(ledger, 1020.0, pot(9, "money")) == 4


def test_what_nobody_reserved_is_nothing(ledger: Any) -> None:
    ledger.settle("x", [usd(4)], 1000.0)
    ledger.release("x")
    ledger.renew("x", 1000.0)
    assert list(ledger.entries()) == []


# --- time ------------------------------------------------------------------------------------------------------------


def test_a_clock_set_back_grants_nothing(opened: Callable[[], Any]) -> None:
    day = (pot(1, window=calendar("day")),)
    assert got(opened().reserve("a", spender(), CALL, day, 200_000.0))
    other = opened()
    assert other.now(100_000.0) == 200_000.0
    assert not got(other.reserve("b", spender(), CALL, day, 100_000.0))
    assert not got(other.reserve("b", spender(), CALL, (pot(1),), 200_059.0))
    assert got(other.reserve("b", spender(), CALL, (pot(1),), 200_060.0))
    assert not got(opened().reserve("c", spender(), CALL, (pot(1),), 100_000.0))


@pytest.mark.parametrize("clock", [-1.0, float("nan"), float("inf"), 1e12])
def test_a_clock_that_tells_no_time(ledger: Any, clock: float) -> None:
    with pytest.raises(LedgerUnavailable, match="the clock tells no time"):
        ledger.reserve("a", spender(), CALL, (), clock)
    assert got(ledger.reserve("a", spender(), CALL, (), 1000.0))


# --- the record ------------------------------------------------------------------------------------------------------


def test_all_is_on_record_for_those_who_open_the_store_later(opened: Callable[[], Any]) -> None:
    ledger = opened()
    ledger.reserve("a", spender(CHILD, ALICE, tool=("github", "x"), skills=("d",), to="s\ud800\0"), CALL, (), 1000.25)
    ledger.reserve("b\ud800\0", spender(BOB, tool=None), [usd(Decimal("1.50"))], (), 1001.0)
    again = opened()
    found = list(again.entries())
    assert [(one.key, one.at, one.state, one.charge.unit) for one in found] == [
        ("a", 1000.25, "reserved", "calls"),
        ("a", 1000.25, "reserved", "concurrent calls"),
        ("b\ud800\0", 1001.0, "reserved", "money"),
    ]
    assert found[0].spender == spender(CHILD, ALICE, tool=("github", "x"), skills=("d",), to="s\ud800\0")
    assert found[2].charge.amount == Decimal("1.5")
    assert [one.key for one in again.entries(client="bob")] == ["b\ud800\0"]
    assert [one.key for one in again.entries(session="s1", agent="helper")] == ["a", "a"]
    assert list(again.entries(client="bob", agent="helper")) == []
    assert again.dispatch("b\ud800\0", 1001.0)


def test_others_see_what_was_done_at_once(opened: Callable[[], Any]) -> None:
    one, other = opened(), opened()
    limit = (pot(2), pot(1, "concurrent calls"))
    assert got(one.reserve("a", spender(), CALL, limit, 1000.0))
    assert not got(other.reserve("b", spender(), CALL, limit, 1000.0))
    assert other.dispatch("a", 1000.0)
    assert not one.dispatch("a", 1000.0)
    other.settle("a", (), 1001.0)
    assert got(one.reserve("b", spender(), CALL, limit, 1001.0))
    one.release("b")
    assert got(other.reserve("c", spender(), CALL, limit, 1001.0))
    assert [spent.total for spent in one.look(limit, 1001.0)] == [2, 1]


def test_what_is_pruned_is_forgotten_by_all_but_for_what_runs(opened: Callable[[], Any]) -> None:
    ledger, other = opened(), opened()
    run(ledger, "old", 1000.0)
    ledger.reserve("runs", spender(), CALL, (), 1001.0, lease=100.0)
    ledger.dispatch("runs", 1001.0)
    run(ledger, "new", 1010.0)
    assert total(other, 1010.0, pot(9, window=SESSION)) == 3
    ledger.prune(1005.0)
    assert total(other, 1010.0, pot(9, window=SESSION)) == 2
    assert total(ledger, 1010.0, pot(9, window=SESSION)) == 2
    assert sorted({one.key for one in ledger.entries()}) == ["new", "runs"]
    assert got(other.reserve("old", spender(), CALL, (), 1011.0))


def test_closed_is_closed(ledger: Any) -> None:
    ledger.close()
    for use in (
        lambda: ledger.look((), 1.0), lambda: ledger.reserve("a", spender(), CALL, (), 1.0), lambda: ledger.now(1.0),
        lambda: ledger.consume("b", "u", 1.0), lambda: list(ledger.entries()),
    ):  # fmt: skip
        with pytest.raises(LedgerUnavailable, match="closed"):
            use()


# --- yeses -----------------------------------------------------------------------------------------------------------


def test_one_yes_goes_to_one_use_which_may_have_it_again(opened: Callable[[], Any]) -> None:
    one, other = opened(), opened()
    yes = Yes("b1", once=True, use="", expires=None, by="ann")
    one.approve(yes)
    assert one.consume("b2", "u1", 1000.0) is None
    assert one.consume("b1", "u1", 1000.0) == yes
    assert other.consume("b1", "u2", 1000.0) is None
    assert other.consume("b1", "u1", 1000.0) == yes


def test_a_yes_for_one_use_is_for_no_other(ledger: Any) -> None:
    ledger.approve(Yes("b", once=True, use="u1", expires=None, by="ann"))
    assert ledger.consume("b", "u2", 1000.0) is None
    assert ledger.consume("b", "u1", 1000.0) is not None


def test_a_call_takes_the_yes_that_suits_it_best(ledger: Any) -> None:
    ledger.approve(Yes("b", once=True, use="", expires=None, by="any"))
    ledger.approve(Yes("b", once=True, use="u1", expires=None, by="own"))
    assert ledger.consume("b", "u1", 1000.0).by == "own"
    assert ledger.consume("b", "u1", 1000.0).by == "own"
    ledger.approve(Yes("b", once=False, use="", expires=None, by="lasting"))
    assert ledger.consume("b", "u2", 1000.0).by == "lasting"
    assert ledger.consume("b", "u3", 1000.0).by == "lasting"


def test_expiry_is_tested_at_use_and_a_clock_set_back_revives_nothing(opened: Callable[[], Any]) -> None:
    ledger = opened()
    ledger.approve(Yes("b", once=False, use="", expires=1010.0, by="ann"))
    assert ledger.consume("b", "u", 1009.75) is not None
    assert ledger.consume("b", "u", 1010.0) is None
    assert opened().consume("b", "u", 1000.0) is None


def test_a_clock_set_back_makes_no_yes_last_longer(opened: Callable[[], Any]) -> None:
    """When it was said is a time that was acted on."""
    one = opened()
    now = one.now(1000.0)
    one.approve(Yes("b", once=False, use="", expires=now + 60.0, by="ann"))
    assert opened().now(0.0) >= now


def test_revoked_yeses_are_gone(opened: Callable[[], Any]) -> None:
    ledger, other = opened(), opened()
    for binding in ("b1", "b2", "b3"):
        ledger.approve(Yes(binding, once=False, use="", expires=None, by="ann"))
    other.revoke("b1")
    assert [ledger.consume(binding, "u", 1.0) is None for binding in ("b1", "b2", "b3")] == [True, False, False]
    other.revoke()
    assert [ledger.consume(binding, "u", 1.0) is None for binding in ("b2", "b3")] == [True, True]


def test_old_yeses_are_pruned(ledger: Any) -> None:
    ledger.now(1000.0)
    run(ledger, "a", 1000.0)
    ledger.approve(Yes("b", once=False, use="", expires=None, by="ann"))
    run(ledger, "c", 2000.0)
    ledger.approve(Yes("b", once=False, use="", expires=None, by="bea"))
    ledger.prune(1500.0)
    assert ledger.consume("b", "u", 2000.0).by == "bea"
