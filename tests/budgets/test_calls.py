"""SPEC 8 for calls: reserve, dispatch, settle, release; on a ledger in memory and on one in a file."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import count
from typing import Any, Final

import pytest

from tests.budgets.stories import Story, agent, call, reserve, reserved, usd
from tests.clock import Clock
from zcpolicy import FactsError, Narrowing, PermitError, Session
from zcpolicy.combine import Verdict
from zcpolicy.ledgers.contract import LEASE_SECONDS, Ledger
from zcpolicy.program import pack


def test_the_sixth_runs_and_the_seventh_is_told_when_to_retry(ledger: Ledger) -> None:
    story = Story(agent("limit 6 calls to ping per hour"), ledger=ledger)
    run = story.run()
    for number in range(6):
        assert call(run, f"k{number}") == "ran"
        story.clock.now += 60
    over = run.budgets.reserve(run.decide("pong", {}), "k6")
    assert not isinstance(over, Verdict)  # another tool
    denied = run.decide("ping", {})
    assert (denied.reason, denied.retry_after) == ("budget", 3_600 - 6 * 60)
    story.clock.now += 3_600 - 6 * 60
    assert call(run, "k7") == "ran"


def test_a_place_that_another_took_while_the_call_was_permitted(ledger: Ledger) -> None:
    story = Story(agent("limit 1 calls to ping per hour"), ledger=ledger)
    run, quicker, looks = story.run(), story.run(), count(1)
    quicker.permit(quicker.decide("pong", {}))  # from now on a decision looks at the ledger

    def clock() -> float:
        if next(looks) == 3:  # the decision, the same again, and now the reservation
            quicker.permit(quicker.decide("ping", {}))
        return 1_000.0

    run.session.clock = clock
    with pytest.raises(PermitError, match="budget") as refused:
        run.permit(run.decide("ping", {}))
    denied = refused.value.decision
    assert denied is not None
    assert (denied.effect, denied.reason, denied.tool, denied.retry_after) == ("deny", "budget", "ping", 3_600)
    with pytest.raises(PermitError, match="budget") as refused:
        run.permit(run.decide("ping", {}))
    assert refused.value.decision is not None


def test_one_place_and_many_callers(ledger: Ledger) -> None:
    run = Story(agent("limit 1 calls to ping per hour"), ledger=ledger).run()
    decision = run.decide("ping", {})

    def wanted(number: int) -> bool:
        return not isinstance(run.budgets.reserve(decision, f"k{number}"), Verdict)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(wanted, range(24))) == 1


def test_money_reserved_at_once_is_room_that_nobody_else_has(ledger: Ledger) -> None:
    run = Story(agent("limit 10.00 usd"), ledger=ledger).run()
    assert call(run, "spent", cost=usd("9.00"), spent=usd("9.00")) == "ran"
    assert [reserve(run, "five 1", cost=usd("5.00")), reserve(run, "five 2", cost=usd("5.00"))] == ["budget", "budget"]
    assert [reserve(run, "one 1", cost=usd("1.00")), reserve(run, "one 2", cost=usd("1.00"))] == ["reserved", "budget"]


def test_who_dies_before_the_call_left_gives_it_back_and_who_dies_later_does_not(ledger: Ledger) -> None:
    story = Story(agent("limit 1 calls per day"), ledger=ledger)
    run = story.run()
    assert reserve(run, "died early") == "reserved"
    assert reserve(run, "next") == "budget"
    story.clock.now += LEASE_SECONDS + 1
    assert not run.budgets.dispatch("died early")
    assert reserve(run, "next") == "reserved"
    assert run.budgets.dispatch("next")
    story.clock.now += 100 * LEASE_SECONDS
    assert reserve(run, "one more") == "budget"


def test_a_lease_is_renewed_while_the_holder_lives(ledger: Ledger) -> None:
    story = Story(agent("limit 1 calls per day"), ledger=ledger)
    run = story.run()
    assert reserve(run, "slow") == "reserved"
    for _ in range(3):
        story.clock.now += LEASE_SECONDS - 1
        run.budgets.renew("slow")
    assert reserve(run, "other") == "budget"
    assert run.budgets.dispatch("slow")


def test_what_never_left_is_given_back_and_what_failed_counts(ledger: Ledger) -> None:
    run = Story(agent("limit 2 calls"), ledger=ledger).run()
    assert reserve(run, "never left") == "reserved"
    run.budgets.release("never left")
    assert [call(run, "failed 1"), call(run, "failed 2"), call(run, "third")] == ["ran", "ran", "budget"]
    run.budgets.release("failed 1")  # it left: there is nothing to give back
    assert call(run, "fourth") == "budget"


def test_a_key_is_charged_once(ledger: Ledger) -> None:
    run = Story(agent("limit 2 calls"), ledger=ledger).run()
    decision = run.decide("ping", {})
    first, again = reserved(run.budgets.reserve(decision, "k")), reserved(run.budgets.reserve(decision, "k"))
    assert (first.fresh, again.fresh, again.state) == (True, False, "reserved")
    assert [reserve(run, "other"), reserve(run, "third")] == ["reserved", "budget"]


def test_all_limits_of_a_call_at_once_or_none(ledger: Ledger) -> None:
    run = Story(agent("limit 5 calls", "limit 1 calls to pong", "limit 1.00 usd"), ledger=ledger).run()
    assert [call(run, "1", "pong"), call(run, "2", "pong")] == ["ran", "budget"]
    assert call(run, "3", cost=usd("1.01")) == "budget"
    assert [call(run, f"more {number}") for number in range(5)] == ["ran"] * 4 + ["budget"]


def test_calls_at_the_same_time(ledger: Ledger) -> None:
    run = Story(agent("limit 2 concurrent calls to ping"), ledger=ledger).run()
    assert [reserve(run, "1"), reserve(run, "2"), reserve(run, "3")] == ["reserved", "reserved", "budget"]
    assert reserve(run, "pong", "pong") == "reserved"
    assert run.decide("ping", {}).reason == "budget"
    assert run.budgets.dispatch("1")
    assert reserve(run, "3") == "budget"
    run.budgets.settle("1")
    run.budgets.release("2")
    assert [reserve(run, "4"), reserve(run, "5"), reserve(run, "6")] == ["reserved", "reserved", "budget"]


def test_calls_in_turn_take_their_place_when_they_are_sent(ledger: Ledger) -> None:
    run = Story(agent("limit 1 concurrent calls to ping", "limit 2 calls to ping"), ledger=ledger).run()
    budgets = run.budgets
    for key in ("1", "2"):
        assert reserved(budgets.reserve(run.decide("ping", {}), key, in_turn=True)).fresh
    assert run.decide("ping", {}).reason == "budget"  # both count as calls
    assert budgets.dispatch("1")
    assert not budgets.dispatch("2")
    budgets.release("1")  # it left: its place is its own
    assert not budgets.dispatch("2")
    budgets.renew("1")
    budgets.settle("1")
    assert budgets.dispatch("2")
    assert not budgets.dispatch("2")
    budgets.settle("2")
    assert [entry.state for entry in ledger.entries() if entry.charge.unit == "calls"] == ["settled", "settled"]


ONE_AT_A_TIME: Final[Any] = {
    "amount": "1", "unit": "concurrent calls", "window": {"kind": "session"}, "pot": "narrowing",
}  # fmt: skip


def test_a_call_in_turn_counts_for_others_as_any_call(ledger: Ledger) -> None:
    """Whether a limit of its own makes it wait for its place or not."""
    for limits in ((), ("limit 5 concurrent calls",)):
        story = Story(agent(*limits), ledger=ledger)
        session = Session(id="s", client=f"c{len(limits)}", clock=story.clock)
        run = story.resolver.resolve("a", session=session)
        narrowed = story.resolver.resolve("a", session=session, narrowing=Narrowing(limits=[ONE_AT_A_TIME]))
        assert reserved(run.budgets.reserve(run.decide("ping", {}), f"k{limits}", in_turn=True)).fresh
        assert run.budgets.dispatch(f"k{limits}")
        assert narrowed.decide("ping", {}).reason == "budget"
        run.budgets.settle(f"k{limits}")
        assert narrowed.decide("ping", {}).effect == "allow"


def test_a_call_in_turn_that_is_not_sent_leaves_no_place(ledger: Ledger) -> None:
    run = Story(agent("limit 1 concurrent calls to ping"), ledger=ledger).run()
    for key in ("1", "2"):
        assert reserved(run.budgets.reserve(run.decide("ping", {}), key, in_turn=True)).fresh
        run.budgets.release(key)
    assert call(run, "3") == "ran"
    assert not [entry for entry in ledger.entries() if entry.state in ("reserved", "dispatched")]


def test_time_is_charged_when_it_is_known(ledger: Ledger) -> None:
    run = Story(agent("limit 10s time per turn"), ledger=ledger).run()
    assert run.budgets.time_left() == 10
    for number, seconds in enumerate((4.5, 5.0)):
        assert reserve(run, f"k{number}") == "reserved"
        run.budgets.dispatch(f"k{number}")
        run.budgets.settle(f"k{number}", seconds=seconds)
    assert run.budgets.time_left(run.decide("ping", {})) == 0.5
    assert reserve(run, "long") == "reserved"
    run.budgets.dispatch("long")
    run.budgets.settle("long", seconds=7.25)
    assert (run.budgets.time_left(), run.decide("ping", {}).reason) == (0, "budget")
    run.session.turn = "the next"
    assert (run.budgets.time_left(), run.decide("ping", {}).reason) == (10, "allowed")


def test_no_time_at_all(ledger: Ledger) -> None:
    run = Story(agent("limit 0s time per turn"), ledger=ledger).run()
    assert run.decide("ping", {}).reason == "budget"


def test_sums_and_a_pot_for_each_value(ledger: Ledger) -> None:
    limits = ("limit 100 sum args.amount to pay", "limit 2 calls to pay for each args.to")
    run = Story(agent(*limits), ledger=ledger).run()
    assert call(run, "1", "pay", amount=99.5, to=["Ann", "bob"]) == "ran"
    assert call(run, "2", "pay", amount=0.6, to=["cid"]) == "budget"
    assert call(run, "3", "pay", amount=0.25, to=["ANN"]) == "ran"
    assert call(run, "4", "pay", amount=0.125, to=["ann", "cid"]) == "budget"
    assert call(run, "5", "pay", amount=0.125, to=["cid"]) == "ran"
    assert call(run, "6", "pay", amount=0.125) == "budget"  # no value, no pot


NO_PRICE: Final = {"not known": "has no price", "another currency": "has no price in usd"}
BROKEN: dict[str, dict[str, object] | None] = {
    "not known": None,
    "negative": {"usd": Decimal("-0.01")},
    "not a number": {"usd": Decimal("NaN")},
    "without end": {"usd": float("inf")},
    "text": {"usd": "1.00"},
    "true": {"usd": True},
    "another currency": {"eur": Decimal(1)},
    "half of it": {"eur": Decimal(0), "usd": None},
    "nonsense beside an amount": {"usd": Decimal(1), "eur": Decimal(-1)},
    "nonsense beside an amount, in one currency": {"USD": Decimal(-5), "usd": Decimal(1)},
    "too long to be kept": {"usd": Decimal("1e-900")},
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_cost_that_cannot_be_counted_is_denied_under_a_money_limit(case: str, ledger: Ledger) -> None:
    run = Story(agent("limit 10.00 usd to ping"), ledger=ledger).run()
    found = run.budgets.reserve(run.decide("ping", {}), "k", BROKEN[case])
    assert isinstance(found, Verdict)
    why = NO_PRICE.get(case, "has a price that is no amount")
    assert (found.reason, found.note) == ("budget", f"the call {why}, and a limit in usd holds")
    assert [rule.part for rule in found.rules] == ["limits"]
    free = run.budgets.reserve(run.decide("pong", {}), "k", BROKEN[case])
    assert not isinstance(free, Verdict)


def test_a_currency_that_is_named_twice_counts_twice(ledger: Ledger) -> None:
    run = Story(agent("limit 10.00 usd"), ledger=ledger).run()
    assert call(run, "too much", cost={"USD": Decimal(9), "usd": Decimal(2)}) == "budget"
    assert call(run, "both", cost={"USD": Decimal(7), "usd": Decimal(2)}) == "ran"
    assert reserve(run, "the rest", cost=usd("1.01")) == "budget"
    assert call(run, "more than reserved", cost=usd("0.5"), spent={"Usd": Decimal(1), "usd": Decimal(1)}) == "ran"
    assert reserve(run, "nothing left", cost=usd("0.01")) == "budget"
    run = Story(agent("limit 10.00 usd"), ledger=ledger).run()
    assert call(run, "nonsense", cost=usd("9"), spent={"USD": Decimal(0), "usd": Decimal(-1)}) == "ran"
    assert reserve(run, "the rest", cost=usd("1.01")) == "budget"


def test_what_is_free_is_free_in_every_currency(ledger: Ledger) -> None:
    run = Story(agent("limit 0.00 usd"), ledger=ledger).run()
    assert [call(run, "1", cost=usd("0")), call(run, "2", cost={"eur": 0}), call(run, "3")] == ["ran"] * 3
    assert call(run, "4", cost=usd("0.000001")) == "budget"


def test_an_overshoot_is_recorded_whole_and_a_nonsense_counts_as_reserved(ledger: Ledger) -> None:
    run = Story(agent("limit 10.00 usd"), ledger=ledger).run()
    assert call(run, "1", cost=usd("2"), spent=usd("11.50")) == "ran"
    denied = run.decide("ping", {})
    assert (denied.reason, denied.retry_after) == ("budget", None)
    other = Story(agent("limit 10.00 usd", name="b")).run("b")
    assert call(other, "1", cost=usd("9"), spent=usd("-9")) == "ran"
    assert [reserve(other, "2", cost=usd("1.01")), reserve(other, "3", cost=usd("1"))] == ["budget", "reserved"]


def test_what_was_reserved_and_not_spent_is_room_again(ledger: Ledger) -> None:
    run = Story(agent("limit 10.00 usd"), ledger=ledger).run()
    assert call(run, "1", cost=usd("10"), spent=usd("0.1")) == "ran"
    assert [reserve(run, "2", cost=usd("9.91")), reserve(run, "3", cost=usd("9.9"))] == ["budget", "reserved"]


def test_nothing_is_nothing(ledger: Ledger) -> None:
    run = Story(agent("limit 0 calls to ping"), ledger=ledger).run()
    assert [run.decide("ping", {}).reason, call(run, "1"), call(run, "2", "pong")] == ["budget", "budget", "ran"]


def test_counters_stand_through_a_restart_and_an_edited_limit_applies_to_what_is_spent(ledger: Ledger) -> None:
    said: list[str] = []
    for number, limit in enumerate((3, 3, 2, 3, 3)):
        run = Story(agent(f"limit {limit} calls to ping per day"), ledger=ledger).run()
        said.append(call(run, f"k{number}"))
    assert said == ["ran", "ran", "budget", "ran", "budget"]


def test_a_limit_that_is_new_applies_to_what_was_spent_before_it(ledger: Ledger) -> None:
    assert call(Story(agent(), ledger=ledger).run(), "1", cost=usd("4")) == "ran"
    run = Story(agent("limit 5.00 usd per day", "limit 2 calls per day"), ledger=ledger).run()
    assert [call(run, "2", cost=usd("2")), call(run, "3", cost=usd("1")), call(run, "4")] == ["budget", "ran", "budget"]


def test_a_clock_set_back_grants_nothing_twice(ledger: Ledger) -> None:
    story = Story(agent('limit 1 calls per calendar day in "UTC"', "limit 1 calls per hour"), ledger=ledger)
    run = story.run()
    assert call(run, "1") == "ran"
    for back in (3_600, 86_400, 40 * 86_400):
        story.clock.now -= back
        assert call(run, f"back {back}") == "budget"
    story.clock = Clock(story.clock.now)


def test_a_day_of_the_calendar_begins_anew(ledger: Ledger) -> None:
    story = Story(agent('limit 1 calls per calendar day in "Europe/Berlin"'), ledger=ledger)
    run = story.run()
    assert call(run, "1") == "ran"
    denied = run.decide("ping", {})
    assert denied.retry_after == 11 * 3_600  # noon UTC is one o'clock there
    story.clock.now += 11 * 3_600
    assert call(run, "2") == "ran"


def test_the_hosts_own_limit_stands_at_its_run(ledger: Ledger) -> None:
    story = Story(agent(), ledger=ledger)
    least = Narrowing(limits=[{"amount": "1", "unit": "calls", "window": {"kind": "session"}, "pot": "narrowing"}])
    one, two = story.run(narrowing=least), story.run(narrowing=least)
    assert [call(one, "1"), call(one, "2"), call(two, "3"), call(two, "4")] == ["ran", "budget", "ran", "budget"]


@pytest.mark.parametrize("pot", ["narrowing", "agent:another", "skill:none", "ceiling", ""])
def test_a_hosts_limit_bounds_its_run_whatever_pot_it_names(pot: str, ledger: Ledger) -> None:
    least = Narrowing(limits=[{"amount": "1", "unit": "calls", "window": {"kind": "session"}, "pot": pot}])
    run = Story(agent(), ledger=ledger).run(narrowing=least)
    assert [call(run, "1"), call(run, "2")] == ["ran", "budget"]


NO_LIMITS: dict[str, dict[str, Any]] = {
    "a window without a length": {"window": {"kind": "rolling"}},
    "a window of no time": {"window": {"kind": "rolling", "seconds": "0"}},
    "a calendar of nothing": {"window": {"kind": "calendar", "zone": "UTC"}},
    "a turn of an hour": {"window": {"kind": "turn", "seconds": "3600"}},
    "money of no currency": {"unit": "money"},
    "calls of a currency": {"currency": "usd"},
    "a sum of nothing": {"unit": "sum"},
    "for each of what nobody counts": {"each": ["tool"]},
    "for each argument": {"each": ["args"]},
    "for each client of something": {"each": ["client", "x"]},
    "tokens of a tool": {"unit": "tokens", "tools": pack({0})},
    "iterations of a tool": {"unit": "iterations", "tools": pack({0})},
    "delegations of a tool": {"unit": "delegations", "tools": pack({0})},
    "tokens by an argument": {"unit": "tokens", "each": ["args", "to"]},
    "a negative amount": {"amount": "-1"},
}


@pytest.mark.parametrize("case", NO_LIMITS)
def test_a_limit_that_would_bound_nothing_is_refused(case: str) -> None:
    said: Any = {"amount": "1", "unit": "calls", "window": {"kind": "session"}, "pot": "narrowing", **NO_LIMITS[case]}
    with pytest.raises(FactsError, match="`limits` holds what is no limit"):
        Narrowing(limits=[said])
