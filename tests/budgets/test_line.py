"""Every charge counts for the execution that spends and for each one above it (SPEC 8, 10)."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from tests.budgets.stories import Story, access, agent, call, reserve, usd
from zcpolicy import Narrowing, ResolvedAgentExecution
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.loop.messages import Usage
from zcpolicy.prices import PriceTable

ROOT = agent(
    "limit 10.00 usd per session",
    more='delegate to b\ndelegate to c independent because "its own tools"\ndelegate depth 2',
)
CHILDREN = agent("limit 4.00 usd per session", name="b", more="delegate to c") + agent(name="c")


def spend(run: ResolvedAgentExecution, key: str, amount: str) -> bool:
    return call(run, key, cost=usd(amount), spent=usd(amount)) == "ran"


def test_five_children_never_spend_more_than_their_root(ledger: Ledger) -> None:
    story = Story(ROOT + CHILDREN, ledger=ledger)
    above = story.run()
    children = [story.run("b", parent=above) for _ in range(5)]
    spent = sum(
        (
            Decimal("0.75")
            for turn in range(6)
            for number, run in enumerate(children)
            if spend(run, f"{turn}.{number}", "0.75")
        ),
        Decimal(0),
    )
    assert spent == Decimal("9.75")
    assert [spend(above, "root", "0.26"), spend(above, "root", "0.25")] == [False, True]


def test_children_in_threads_overshoot_by_what_runs_and_nothing_is_lost(ledger: Ledger) -> None:
    story = Story(agent("limit 10.00 usd", more="delegate to c") + agent(name="c"), ledger=ledger)
    above = story.run()
    children = [story.run("c", parent=above) for _ in range(5)]

    def until_denied(child: int) -> int:
        """Each call reserves half of what it spends."""
        for number in range(100):
            if call(children[child], f"{child}.{number}", cost=usd("0.15"), spent=usd("0.30")) != "ran":
                return number
        raise AssertionError("never denied")

    with ThreadPoolExecutor(5) as pool:
        ran = sum(pool.map(until_denied, range(5)))
    spent = [entry.charge.amount for entry in ledger.entries() if entry.charge.unit == "money"]
    assert spent == [Decimal("0.30")] * ran
    assert Decimal("9.85") < sum(spent) <= 10 + 5 * Decimal("0.15")


def test_a_child_keeps_its_own_limit_and_the_ones_above(ledger: Ledger) -> None:
    story = Story(ROOT + CHILDREN, ledger=ledger)
    above = story.run()
    child = story.run("b", parent=above)
    assert [spend(child, "1", "4.01"), spend(child, "2", "4.00"), spend(child, "3", "0.01")] == [False, True, False]
    assert spend(above, "4", "6.00")


@pytest.mark.parametrize("independent", [False, True])
def test_a_grandchild_spends_of_every_pot_above_it(independent: bool, ledger: Ledger) -> None:
    story = Story(ROOT + CHILDREN, ledger=ledger)
    above = story.run()
    child = above if independent else story.run("b", parent=above)
    below = story.run("c", parent=child)
    cheap = access(PriceTable({"large": (1, 0)}), output=0)
    assert below.budgets.model_call("k", cheap, 3_000_000) is None
    below.budgets.model_done("k", cheap, Usage(3_000_000, 0))
    assert spend(above, "rest", "7.01") is False
    assert spend(above, "rest", "7.00") is True
    if not independent:
        other = story.run("b", parent=story.run())
        assert [spend(child, "more", "0.01"), spend(other, "4", "4.00")] == [
            False,
            True,
        ]  # another root, another session


def test_the_pots_of_those_above_are_of_their_session_and_turn(ledger: Ledger) -> None:
    story = Story(agent("limit 2 calls per turn", more="delegate to b") + agent(name="b"), ledger=ledger)
    above = story.run(turn="1")
    child = story.run("b", parent=above, turn="of its own")
    assert [call(child, "1"), call(above, "2"), call(child, "3"), call(above, "4")] == [
        "ran",
        "ran",
        "budget",
        "budget",
    ]
    child.session.turn = "next"  # of no matter to the turn above
    assert call(child, "5") == "budget"
    above.session.turn = "2"
    assert call(child, "6") == "ran"


def test_iterations_and_running_calls_of_children_count_above(ledger: Ledger) -> None:
    text = agent(
        "limit 3 iterations", "limit 1 concurrent calls to ping", "limit 1m time", more="delegate to b"
    ) + agent(name="b")
    story = Story(text, ledger=ledger)
    above = story.run()
    one, two = story.run("b", parent=above), story.run("b", parent=above)
    said = [
        one.budgets.iteration("1"),
        two.budgets.iteration("2"),
        above.budgets.iteration("3"),
        one.budgets.iteration("4"),
    ]
    assert [found and found.reason for found in said] == [None, None, None, "budget"]
    assert [reserve(one, "c1"), reserve(two, "c2"), reserve(above, "c3")] == ["reserved", "budget", "budget"]
    one.budgets.dispatch("c1")
    one.budgets.settle("c1", seconds=45.0)
    assert (two.budgets.time_left(), above.budgets.time_left()) == (15, 15)


def test_a_narrowing_of_the_root_is_one_pot_for_the_whole_tree(ledger: Ledger) -> None:
    story = Story(ROOT + CHILDREN, ledger=ledger)
    least = Narrowing(limits=[{"amount": "2", "unit": "calls", "window": {"kind": "session"}, "pot": "narrowing"}])
    above = story.run(narrowing=least)
    bounded, free = story.run("b", parent=above), story.run("c", parent=above)
    assert [call(bounded, "1"), call(free, "2"), call(above, "3"), call(free, "4")] == [
        "ran",
        "ran",
        "budget",
        "budget",
    ]


def test_a_skills_pot_is_of_those_who_loaded_it(ledger: Ledger) -> None:
    text = (
        agent(more="skills deploy")
        + agent(name="b", more="skills deploy")
        + "skill deploy { limit 1 calls to ping per day }\n"
    )
    story = Story(text, ledger=ledger)
    with_skill, without = story.run(), story.run()
    with_skill.load_skill("deploy")
    assert [call(without, "1"), call(with_skill, "2"), call(with_skill, "3"), call(without, "4")] == [
        "ran",
        "ran",
        "budget",
        "ran",
    ]
    other = story.run("b")
    other.load_skill("deploy")
    assert call(other, "5") == "budget"


def test_whose_pot_it_is_for_each_client_session_agent(ledger: Ledger) -> None:
    ceiling = (
        "ceiling { limit 1 calls to ping per day for each client; limit 1 calls to pong per day for each agent }\n"
    )
    story = Story(agent() + agent(name="b") + ceiling, ledger=ledger)
    mine, yours, other = story.run(client="me"), story.run(client="you"), story.run("b", client="me")
    assert [call(mine, "1"), call(other, "2"), call(yours, "3")] == ["ran", "budget", "ran"]
    assert [call(mine, "4", "pong"), call(yours, "5", "pong"), call(other, "6", "pong")] == ["ran", "budget", "ran"]
