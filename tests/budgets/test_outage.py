"""A ledger that cannot be reached, a clock that does not tell the time, executions that no resolver made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.budgets.stories import Story, access, agent, call, reserve
from zcpolicy import PermitError, ResolvedAgentExecution, Session, faults
from zcpolicy.authority import SealError
from zcpolicy.budgets import Budgets
from zcpolicy.combine import Verdict
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.loop.messages import Usage
from zcpolicy.prices import PriceTable

CAUSES = {"closed": "the ledger is closed", "the host says so": "the session says that the ledger cannot be reached"}


def closed(run: ResolvedAgentExecution) -> None:
    run.resolver.ledger.close()


def away(run: ResolvedAgentExecution) -> None:
    run.session.ledger = False


OUTAGES: dict[str, Callable[[ResolvedAgentExecution], None]] = {"closed": closed, "the host says so": away}


@pytest.mark.parametrize("case", OUTAGES)
def test_calls_under_a_limit_are_denied_and_others_run(case: str, ledger: Ledger) -> None:
    run = Story(agent("limit 5 calls to ping", "limit 5 iterations"), ledger=ledger).run()
    assert call(run, "before") == "ran"
    OUTAGES[case](run)
    denied = run.decide("ping", {})
    assert (denied.reason, denied.to_json()["charges"]) == ("ledger-unavailable", [])
    assert [rule.part for rule in denied.rules] == ["limits"]
    assert (denied.note, json.loads(denied.for_log)["note"]) == (CAUSES[case], CAUSES[case])
    assert CAUSES[case] not in denied.for_model
    found = [run.budgets.iteration("i"), run.budgets.model_call("m", access(), 1)]
    assert [one.reason if one else None for one in found] == ["ledger-unavailable", None]
    run.budgets.model_done("m", access(), Usage(1, 1))
    assert call(run, "after", "pong") == "ran"
    assert reserve(run, "again", "pong") == "reserved"
    run.budgets.renew("again")
    run.budgets.release("again")
    assert run.permit(run.decide("pong", {})).effect == "allow"
    assert len(run.session.history or []) == 1


def test_the_log_has_each_cause_once(
    ledger: Ledger, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "_told", {})
    for case, spoil in OUTAGES.items():
        run = Story(agent("limit 5 calls to ping"), ledger=ledger if case == "closed" else None).run()
        assert call(run, f"before {case}") == "ran"
        spoil(run)
        assert [run.decide("ping", {}).reason for _ in range(3)] == ["ledger-unavailable"] * 3
    assert [one.getMessage() for one in caplog.records] == [
        f"what limits leave cannot be told: {CAUSES[case]}" for case in OUTAGES
    ]


def test_a_cause_that_lasts_is_told_again(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_told", {})
    faults.log_once("gone")
    monkeypatch.setattr(faults, "AGAIN_SECONDS", 0.0)
    faults.log_once("gone")
    assert len(caplog.records) == 2


@pytest.mark.parametrize("case", OUTAGES)
def test_a_call_that_somebody_said_yes_to_needs_the_ledger(case: str, ledger: Ledger) -> None:
    """That one yes starts one call, it alone knows."""
    run = Story(agent(more="ask pong"), ledger=ledger).run(interactive=True)
    decision = run.decide("pong", {})
    assert decision.effect == "ask"
    OUTAGES[case](run)
    found = run.budgets.reserve(decision, "k")
    assert (isinstance(found, Verdict), getattr(found, "reason", "")) == (True, "ledger-unavailable")
    with pytest.raises(PermitError, match="ledger-unavailable"):
        run.permit(decision, approved=True)
    assert not run.budgets.dispatch("k")


@pytest.mark.parametrize("case", OUTAGES)
def test_what_is_left_when_it_cannot_be_told(case: str, ledger: Ledger) -> None:
    run = Story(agent("limit 500 tokens", "limit 5.00 usd"), ledger=ledger).run()
    OUTAGES[case](run)
    found = run.budgets.model_call("m", access(PriceTable({"large": 1})), 1)
    assert found is not None
    assert found.reason == "ledger-unavailable"
    assert (run.budgets.tokens_left(), run.budgets.time_left()) == (0, None)


def test_what_is_under_way_when_the_ledger_goes(ledger: Ledger) -> None:
    run = Story(agent("limit 5 calls"), ledger=ledger).run()
    assert [reserve(run, key) for key in ("not sent", "given back", "sent")] == ["reserved"] * 3
    assert run.budgets.dispatch("sent")
    ledger.close()
    assert not run.budgets.dispatch("not sent")
    run.budgets.release("given back")
    run.budgets.renew("sent")
    run.budgets.settle("sent", seconds=1.0)
    run.budgets.model_done("sent", access(), Usage(1, 1))


def test_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    from zcpolicy.ledgers.sqlite import SqliteLedger

    run = Story(agent("limit 5 calls to ping"), ledger=SqliteLedger(tmp_path / "nowhere" / "ledger.db")).run()
    assert [run.decide("ping", {}).reason, run.decide("pong", {}).reason] == ["ledger-unavailable", "allowed"]
    assert [call(run, "1"), call(run, "2", "pong")] == ["ledger-unavailable", "ran"]


def test_a_clock_that_fails_reserves_nothing_and_ends_what_is_under_way(ledger: Ledger) -> None:
    story = Story(agent("limit 2 calls"), ledger=ledger)
    run = story.run()
    assert reserve(run, "1") == "reserved"
    decision = run.decide("ping", {})
    run.session.clock = lambda: float("nan")
    assert run.decide("ping", {}).reason == "ledger-unavailable"
    found: Any = run.budgets.reserve(decision, "2")
    assert (found.reason, found.note) == ("ledger-unavailable", "the session's clock does not tell the time")
    assert run.budgets.dispatch("1")
    run.budgets.settle("1", seconds=1.0)
    run.session.clock = story.clock
    assert [call(run, "2"), call(run, "3")] == ["ran", "budget"]


def test_labels_and_history_only_where_the_reservation_stood(ledger: Ledger) -> None:
    text = "label seen\n" + agent("limit 1 calls to ping", more="mark seen on ping\nmark seen on pong")
    run = Story(text, ledger=ledger).run()
    decision = run.decide("ping", {})
    assert reserve(run, "somebody else's") == "reserved"
    with pytest.raises(PermitError, match="the call is not permitted: budget"):
        run.permit(decision)
    assert (run.session.labels, run.session.history) == (frozenset(), [])
    run.budgets.release("somebody else's")
    run.permit(decision)
    assert (run.session.labels, len(run.session.history or [])) == ({"seen"}, 1)


def test_no_budget_for_what_no_resolver_made() -> None:
    run = Story(agent("limit 1 calls")).run()
    forged: Any = object.__new__(ResolvedAgentExecution)
    for name in ("resolver", "session", "stack", "parent", "surface"):
        object.__setattr__(forged, name, getattr(run, name))
    with pytest.raises(SealError):
        Budgets(forged)
    budgets = run.budgets
    decision = run.decide("ping", {})
    object.__setattr__(run, "session", Session())
    with pytest.raises(SealError):
        budgets.reserve(decision, "k")


def test_a_decision_of_another_execution_and_one_that_denies() -> None:
    story = Story(agent("limit 5 calls", more="deny pong"))
    mine, other = story.run(), story.run()
    with pytest.raises(PermitError, match="the decision is of another execution"):
        mine.budgets.reserve(other.decide("ping", {}), "k")
    for tool, arguments, reason in (
        ("pong", {}, "denied"),
        ("nothing", {}, "unknown-tool"),
        ("ping", {"x": 1}, "malformed"),
    ):
        found: Any = mine.budgets.reserve(mine.decide(tool, arguments), "k")
        assert found.reason == reason


def test_a_call_that_was_on_no_record_is_on_record_when_it_is_reserved_again(ledger: Ledger) -> None:
    run = Story(agent("limit 1 calls to pong"), ledger=ledger).run()
    run.session.ledger = False
    assert reserve(run, "k") == "reserved"
    run.session.ledger = True
    assert call(run, "k", "pong") == "ran"
    assert call(run, "other", "pong") == "budget"


def test_what_a_tool_says_it_cost_may_be_anything(ledger: Ledger) -> None:
    run = Story(agent("limit 1.00 usd"), ledger=ledger).run()
    nonsense: list[Any] = [5, "usd", [("usd", 1)], {None: None}, {"usd": {}}]
    assert [call(run, f"k{number}", spent=said) for number, said in enumerate(nonsense)] == ["ran"] * 5


def test_a_request_of_less_than_nothing(ledger: Ledger) -> None:
    run = Story(agent(), ledger=ledger).run()
    found: Any = run.budgets.model_call("k", access(), -1_000)
    assert (found.reason, found.note) == ("budget", "an amount is negative or out of bounds")
