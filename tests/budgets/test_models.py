"""SPEC 8 for what no tool spends: requests to models, iterations, delegations; and prices."""

from decimal import Decimal
from typing import Any

import pytest

from tests.budgets.stories import Fixed, Story, access, agent, call, usd
from zcpolicy import ResolveError
from zcpolicy.combine import Verdict
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.loop.messages import Usage
from zcpolicy.prices import GenaiPrices, PricesError, PriceTable


def reason(found: Verdict | None) -> str | None:
    return None if found is None else found.reason


def test_iterations_of_a_turn(ledger: Ledger) -> None:
    run = Story(agent("limit 2 iterations per turn"), ledger=ledger).run(turn="1")
    said = [reason(run.budgets.iteration(key)) for key in ("1", "2", "2", "3")]
    assert said == [None, None, None, "budget"]  # the key that came again is charged once
    assert run.decide("ping", {}).effect == "allow"  # the calls of the last iteration still run
    run.session.turn = "2"
    assert reason(run.budgets.iteration("4")) is None


def test_tokens_are_reserved_with_the_longest_answer_and_settled_as_they_were(ledger: Ledger) -> None:
    run = Story(agent("limit 1000 tokens"), ledger=ledger).run()
    model = access(output=400)
    assert run.budgets.tokens_left() == 1000
    assert run.budgets.model_call("1", model, 500) is None
    assert run.budgets.tokens_left() == 100
    assert reason(run.budgets.model_call("2", model, 500)) == "budget"
    run.budgets.model_done("1", model, Usage(450, 50))
    assert run.budgets.tokens_left() == 500
    assert run.budgets.model_call("2", model, 450, 50) is None
    run.budgets.model_done("2", model, Usage(700, 50))  # more than reserved: recorded whole
    assert run.budgets.tokens_left() == 0
    assert reason(run.budgets.model_call("3", model, 0, 0)) == "budget"


def test_each_request_is_charged_also_one_that_is_made_again(ledger: Ledger) -> None:
    run = Story(agent("limit 1000 tokens"), ledger=ledger).run()
    assert run.budgets.model_call("1", access(), 1) is None
    for _ in range(2):
        again = run.budgets.model_call("1", access(), 1)
        assert again is not None
        assert (again.reason, again.note) == ("budget", "this very request was made before")
        run.budgets.model_done("1", access(), Usage(1, 1))


def test_a_host_that_reports_no_usage_spends_what_it_reserved(ledger: Ledger) -> None:
    run = Story(agent("limit 1000 tokens", "limit 1.00 usd"), ledger=ledger).run()
    model = access(PriceTable({"large": 1000}), output=100)
    for key, usage in {"1": Usage(), "2": Usage(1, None), "3": Usage(9 * 10**499, 10**499)}.items():
        assert run.budgets.model_call(key, model, 200) is None
        run.budgets.model_done(key, model, usage)
    assert run.budgets.tokens_left() == 100
    assert reason(run.budgets.model_call("4", model, 1)) == "budget"


def test_time_of_models(ledger: Ledger) -> None:
    run = Story(agent("limit 1m time per turn"), ledger=ledger).run()
    for key, left in {"1": 30, "2": 0}.items():
        assert run.budgets.model_call(key, access(), 1) is None
        run.budgets.model_done(key, access(), Usage(1, 1), seconds=30.0)
        assert run.budgets.time_left() == left
    assert reason(run.budgets.model_call("3", access(), 1)) == "budget"


def test_money_of_models_is_exact(ledger: Ledger) -> None:
    run = Story(agent("limit 0.30 usd"), ledger=ledger).run()
    model = access(PriceTable({"large": (Decimal("0.10"), Decimal(0))}), output=0)
    for number in range(3):
        assert run.budgets.model_call(f"k{number}", model, 1_000_000) is None
        run.budgets.model_done(f"k{number}", model, Usage(1_000_000, 0))
    assert reason(run.budgets.model_call("over", model, 1)) == "budget"


UNPRICED: dict[str, tuple[Any, str]] = {
    "no price": (None, "has no price"),
    "no amount": ({}, "has no price"),
    "negative": ({"usd": Decimal(-1)}, "has a price that is no amount"),
    "not finite": ({"usd": Decimal("Infinity")}, "has a price that is no amount"),
    "of another currency": ({"eur": Decimal(1)}, "has no price in usd"),
    "a list that fails": (RuntimeError("no connection"), "has no price since the price function failed (RuntimeError)"),
    "no list of amounts": (5, "has no price"),
}


@pytest.mark.parametrize("case", UNPRICED)
def test_what_cannot_be_priced_is_denied_under_a_money_limit(case: str, ledger: Ledger) -> None:
    cost, why = UNPRICED[case]
    model = access(Fixed(cost))
    bound = Story(agent("limit 10.00 usd"), ledger=ledger).run()
    found = bound.budgets.model_call("1", model, 1)
    assert found is not None
    assert (found.reason, found.note) == ("budget", f"model `large` {why}, and a limit in usd holds")
    unbound = Story(agent("limit 1000 tokens"), ledger=ledger).run()
    assert unbound.budgets.model_call("2", model, 1) is None


def test_a_host_without_prices_under_a_money_limit(ledger: Ledger) -> None:
    run = Story(agent("limit 10.00 usd"), ledger=ledger).run()
    found = run.budgets.model_call("1", access(None), 1)
    assert found is not None
    assert (found.reason, found.note) == ("budget", "model `large` has no price, and a limit in usd holds")
    assert run.budgets.model_call("2", access(PriceTable({"large": 0})), 1) is None


def test_a_request_that_no_empty_pot_has_room_for_says_what_to_do(ledger: Ledger) -> None:
    run = Story(agent("limit 1.00 usd", "limit 5000 tokens"), ledger=ledger).run()
    dear = access(PriceTable({"large": (0, 500)}), output=4_100)
    found = run.budgets.model_call("1", dear, 0)
    assert found is not None
    assert found.note == (
        "one request reserves 2.05 usd, and the limit is 1.00 usd: lower `max_output_tokens`, or raise the limit"
    )
    found = run.budgets.model_call("2", access(PriceTable({"large": 0})), 6_000, 0)
    assert found is not None
    assert found.note == (
        "one request reserves 6000 tokens, and the limit is 5000 tokens: send less, lower `max_output_tokens`, or raise the limit"
    )


def test_delegations_are_charged_by_whoever_delegates(ledger: Ledger) -> None:
    story = Story(agent("limit 2 delegations", more="delegate to b") + agent(name="b"), ledger=ledger)
    above = story.run()
    for _ in range(2):
        story.run("b", parent=above)
    with pytest.raises(ResolveError):
        story.run("b", parent=above)


def test_tools_that_cost_count_with_models(ledger: Ledger) -> None:
    run = Story(agent("limit 1.00 usd"), ledger=ledger).run()
    assert call(run, "tool", cost=usd("0.6"), spent=usd("0.6")) == "ran"
    dear = access(PriceTable({"large": (0, 5)}), output=100_000)
    assert reason(run.budgets.model_call("model", dear, 0)) == "budget"
    assert run.budgets.model_call("model", dear, 0, 80_000) is None


# --- prices ------------------------------------------------------------------------------------------------------


def test_a_hosts_table_comes_before_the_public_list() -> None:
    prices = PriceTable({"large": (3, 15), "gpt-4o": 0, "cents": 0.1}, otherwise=GenaiPrices())
    assert prices.cost("large", 1_000, 1) == {"usd": Decimal("0.003015")}
    assert prices.cost("gpt-4o", 1_000, 1_000) == {"usd": 0}
    assert prices.cost("cents", 1, 0) == {"usd": Decimal("0.0000001")}
    listed = prices.cost("gpt-4o-mini", 1_000_000, 0)
    assert listed is not None
    assert listed["usd"] > 0
    assert prices.cost("nobody-ever-made-this", 1, 1) is None
    assert PriceTable({}, "EUR").cost("large", 1, 1) is None
    assert PriceTable({"m": 1}, "EUR").cost("m", 1_000_000, 0) == {"eur": 1}


def test_the_public_list() -> None:
    public = GenaiPrices()
    assert (
        public.cost("openai:gpt-4o", 10, 10)
        == public.cost("gpt-4o", 10, 10)
        == GenaiPrices(provider="openai").cost("gpt-4o", 10, 10)
    )
    assert public.cost("nobody:gpt-4o", 10, 10) is None
    assert GenaiPrices(provider="nobody").cost("gpt-4o", 10, 10) is None
    azure = GenaiPrices(provider="azure")
    assert azure.cost("ada", 10, 0) == {"usd": Decimal("0.000001")}
    assert azure.cost("ada", 10, 1) is None  # what it says has no price


BAD: dict[str, Any] = {
    "negative": -1,
    "not finite": float("nan"),
    "text": "1",
    "one": (1,),
    "three": (1, 2, 3),
    "none": None,
    "true": True,
}


@pytest.mark.parametrize("case", BAD)
def test_a_table_of_what_are_no_prices(case: str) -> None:
    with pytest.raises(PricesError, match="the price of `m` is an amount per million tokens, or one in and one out"):
        PriceTable({"m": BAD[case]})
