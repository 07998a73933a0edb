"""A newer generation of the policy decides at once, also for executions that stand already; and tickets."""

import gc
import json
from typing import Any

import pytest

from policy_lang import loads
from zcpolicy import (
    FactsError,
    Narrowing,
    PermitError,
    ResolvedAgentExecution,
    ResolveError,
    Resolver,
    Session,
    UnknownAgent,
)
from zcpolicy.plan import Plan
from zcpolicy.stack import Stack

OLD = """zcpolicy 1
tool look() risk read
tool act(n?: integer) risk high
agent a { autonomy full; allow look, act; delegate to b; delegate depth 2 }
agent b { autonomy full; allow look, act; delegate to a }
"""
TIGHTER = OLD + "ceiling { deny act when args.n > 3 }\n"
GONE = """zcpolicy 1
tool look() risk read
agent a { autonomy full; allow look }
"""
MOVED = "zcpolicy 1\ntool aaa() risk read\n" + OLD.removeprefix("zcpolicy 1\n")


def effect(run: ResolvedAgentExecution, n: int = 9) -> tuple[str, int]:
    decision = run.decide("act", {"n": n})
    return decision.effect, decision.to_json()["generation"]


def test_the_next_call_of_a_running_execution_is_decided_under_the_new_generation() -> None:
    resolver = Resolver(loads(OLD))
    run = resolver.resolve("a")
    assert effect(run) == ("allow", 1)
    resolver.publish(loads(TIGHTER))
    assert effect(run) == ("deny", 2)
    assert effect(run, 1) == ("allow", 2)


def test_a_decision_of_before_is_permitted_only_if_it_would_be_now() -> None:
    resolver = Resolver(loads(OLD))
    run = resolver.resolve("a")
    nine, one = run.decide("act", {"n": 9}), run.decide("act", {"n": 1})
    resolver.publish(loads(TIGHTER))
    with pytest.raises(PermitError, match="denied"):
        run.permit(nine)
    assert run.permit(one).effect == "allow"


def test_children_follow_their_line() -> None:
    resolver = Resolver(loads(OLD))
    child = resolver.resolve("b", parent=resolver.resolve("a"))
    assert effect(child) == ("allow", 1)
    resolver.publish(loads(TIGHTER))
    assert effect(child) == ("deny", 2)
    assert child.renewed().parent is not None


@pytest.mark.parametrize("agent", ["a", "b"])
def test_where_the_new_generation_has_no_such_execution_nothing_runs(agent: str) -> None:
    resolver = Resolver(loads(OLD))
    above = resolver.resolve("b" if agent == "a" else "a")
    run = resolver.resolve(agent, parent=above)
    resolver.publish(loads(GONE))
    decision = run.decide("look", {})
    assert decision.effect == "deny"
    assert decision.reason in {"unknown-agent", "stale-policy"}
    with pytest.raises(ResolveError):
        run.renewed()


def test_an_older_resolver_resolves_and_decides_by_the_newest() -> None:
    old = Resolver(loads(OLD))
    new = old.publish(loads(TIGHTER))
    assert old.resolve("a").resolver is new
    assert old.decide("a", "act", {"n": 9}).effect == "deny"
    assert old.newest is new.newest is new


def test_two_generations_later() -> None:
    resolver = Resolver(loads(OLD))
    run = resolver.resolve("a")
    resolver.publish(loads(TIGHTER))
    resolver.publish(loads(OLD))
    assert effect(run) == ("allow", 3)


def test_a_narrowing_stays_what_it_was_where_tools_moved() -> None:
    """Tools of a limit are packed as numbers of one program: another one numbers them otherwise."""
    resolver = Resolver(loads(OLD))
    run = resolver.resolve("a", narrowing=Narrowing(only=["act", "look"], limits=["0 calls to act per session"]))
    assert [run.decide(tool, {}).reason for tool in ("act", "look")] == ["budget", "allowed"]
    resolver.publish(loads(MOVED))
    assert [run.decide(tool, {}).reason for tool in ("act", "look", "aaa")] == ["budget", "allowed", "not-granted"]


def test_a_limit_that_names_tools_by_number_is_not_taken() -> None:
    resolver = Resolver(loads(OLD))
    act = str(resolver.program.tools.index("act"))
    limit: Any = {"amount": "0", "unit": "calls", "tools": act, "window": {"kind": "session"}, "pot": "narrowing"}
    with pytest.raises(ResolveError, match="is written as text"):
        resolver.resolve("a", narrowing=Narrowing(limits=[limit]))


def test_what_was_spent_and_done_stands() -> None:
    limited = OLD.replace("delegate depth 2 }", "delegate depth 2; limit 1 calls to act per session }")
    resolver = Resolver(loads(limited))
    run = resolver.resolve("a", session=Session(id="s"))
    run.permit(run.decide("act", {}))
    resolver.publish(loads(limited.replace("limit 1 calls", "limit 2 calls")))
    assert run.decide("act", {}).effect == "allow"
    resolver.publish(loads(limited))
    assert run.decide("act", {}).reason == "budget"


# --- tickets -----------------------------------------------------------------------------------------------------


def test_a_ticket_makes_the_whole_line_again() -> None:
    resolver = Resolver(loads(OLD))
    sessions = {"s1": Session(id="s1"), "s2": Session(id="s2")}
    above = resolver.resolve("a", session=sessions["s1"], narrowing=Narrowing(only=["act"]), surface="channel")
    child = resolver.resolve("b", session=sessions["s2"], parent=above, surface="delegate")
    again = resolver.resume(json.loads(json.dumps(child.ticket())), sessions.get)
    assert again.identity == child.identity
    assert [again.decide(tool, {}).reason for tool in ("act", "look")] == ["allowed", "outside-only"]


def test_a_ticket_is_of_the_policy_of_now() -> None:
    resolver = Resolver(loads(OLD))
    session = Session(id="s")
    ticket = resolver.resolve("b", session=session).ticket()
    resolver.publish(loads(GONE))
    with pytest.raises(UnknownAgent):
        resolver.resume(ticket, {"s": session}.get)


NO_TICKETS: list[Any] = [
        {},
        {"line": []},
        {"line": "a"},
        {"line": [{"agent": "a"}]},
        {"line": [{"agent": "a", "session": "s", "surface": "run", "narrowing": [], "skills": [], "independent": False, "later": False}]},
        {"line": [{"agent": "a", "session": "s", "surface": "run", "narrowing": {}, "skills": [], "independent": False, "later": False}]},
        {"line": [{"agent": "a", "session": "s", "surface": "run", "narrowing": None, "skills": [1], "independent": False, "later": False}]},
        {"line": [{"agent": "a", "session": "t", "surface": "run", "narrowing": None, "skills": [], "independent": False, "later": False}]},
    ]  # fmt: skip


@pytest.mark.parametrize("ticket", NO_TICKETS, ids=range(len(NO_TICKETS)))
def test_what_is_no_ticket_makes_nothing(ticket: Any) -> None:
    with pytest.raises(ResolveError):
        Resolver(loads(OLD)).resume(ticket, {"s": Session(id="s")}.get)


def test_a_childs_session_is_never_resolved_without_those_above() -> None:
    resolver = Resolver(loads(OLD))
    session = Session(id="s2")
    above = resolver.resolve("a", session=Session(id="s1"))
    resolver.resolve("b", session=session, parent=above)
    with pytest.raises(ResolveError, match="is of a child of agent `a`"):
        resolver.resolve("b", session=session)
    with pytest.raises(ResolveError, match="of other executions"):
        resolver.resolve("b", session=session, parent=resolver.resolve("a", session=Session(id="s3")))
    assert resolver.resolve("b", session=session, parent=above).depth == 1


def test_a_run_for_later_may_be_of_the_same_agent_and_is_bounded_by_the_call() -> None:
    resolver = Resolver(loads(OLD))
    caller = resolver.resolve("a", narrowing=Narrowing(only=["look"]))
    later = resolver.resolve("a", session=Session(id="later"), parent=caller, later=True)
    assert [later.decide(tool, {}).reason for tool in ("look", "act")] == ["allowed", "outside-only"]
    with pytest.raises(ResolveError, match="may not delegate to `a`"):
        resolver.resolve("a", parent=caller)


def test_runs_for_later_end_where_the_depth_does() -> None:
    resolver = Resolver(loads(OLD))
    one = resolver.resolve("a")
    for _ in range(2):
        one = resolver.resolve("a", session=Session(), parent=one, later=True)
    with pytest.raises(ResolveError, match="depth of 2"):
        resolver.resolve("a", session=Session(), parent=one, later=True)


def test_what_is_written_into_a_ticket_changes_no_execution() -> None:
    resolver = Resolver(loads(OLD))
    run = resolver.resolve("a", narrowing=Narrowing(only=["look"]))
    run.ticket()["line"][0]["narrowing"]["only"].append("act")
    resolver.publish(loads(OLD))
    assert run.decide("act", {}).reason == "outside-only"


# --- drift that is seen while a session runs -----------------------------------------------------------------------


def test_drift_is_heard_at_the_next_call_of_its_session_and_of_those_below() -> None:
    resolver = Resolver(loads(OLD))
    session, other = Session(id="s"), Session(id="o")
    run, elsewhere = resolver.resolve("a", session=session), resolver.resolve("a", session=other)
    child = resolver.resolve("b", parent=run, session=Session(id="c"))
    everybody = (run, child, elsewhere)
    assert [one.decide("act", {}).effect for one in everybody] == ["allow"] * 3
    session.drifted("act", "schema")
    assert [one.decide("act", {}).reason for one in everybody] == ["drift", "drift", "allowed"]
    assert resolver.resolve("b", parent=run, session=Session(id="d")).decide("act", {}).reason == "drift"
    assert resolver.resolve("a", session=session).decide("act", {}).reason == "drift"
    with pytest.raises(PermitError, match="drift"):
        run.permit(run.decide("act", {}))


def test_drift_that_is_heard_while_a_plan_is_made_counts_from_the_next_call_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """By another thread: as soon as the first plan is made the host hears of it, for one of two sessions of the agent."""
    resolver, session = Resolver(loads(OLD)), Session()
    run, other = resolver.resolve("a", session=session), resolver.resolve("a", session=Session())

    def made(*given: Any) -> Plan:
        plan = Plan(*given)
        session.drifted("act", "schema")
        return plan

    monkeypatch.setattr("zcpolicy.resolver.Plan", made)
    run.decide("act", {})
    assert run.decide("act", {}).reason == "drift"
    assert other.decide("act", {}).effect == "allow"


def test_drift_is_told_and_not_written() -> None:
    session: Any = Session(drift={"act": "launch"})
    with pytest.raises(TypeError):
        session.drift["look"] = "schema"
    with pytest.raises(AttributeError):
        session.drift = {}
    with pytest.raises(FactsError, match='"description", "schema" or "launch"'):
        session.drifted("act", "other")


def test_a_narrowing_shares_nothing_with_anybody() -> None:
    one = Narrowing(autonomy="readonly")
    assert one.autonomy is not None
    one.autonomy["medium"] = "allow"
    other = Narrowing(autonomy="readonly")
    assert other.autonomy is not None
    assert other.autonomy["medium"] == "deny"
    run = Resolver(loads(OLD)).resolve("a", narrowing=other)
    other.autonomy["high"] = "allow"
    assert run.decide("act", {}).reason == "autonomy"


def test_what_an_execution_decided_by_goes_with_it() -> None:
    """A daemon has a narrowed run, or a child, for each turn: none of them stays once nobody holds it."""
    resolver = Resolver(loads(OLD))
    for _ in range(3):
        resolver.resolve("a", narrowing=Narrowing(deny=["act"])).decide("look", {})
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one) is Stack and one.program is resolver.program]


def test_a_narrowing_outlives_a_policy_that_does_not_have_its_tools() -> None:
    """One reload takes a tool away, the next brings it back: what was taken from the run is taken from it still."""
    resolver, session = Resolver(loads(OLD)), Session(id="s")
    taken: list[Narrowing] = [
        Narrowing(limits=["0 calls to act"]),
        Narrowing(deny=["act"]),
        Narrowing(ask=["act"]),
        Narrowing(only=["look"]),
    ]
    runs = [resolver.resolve("a", session=session, narrowing=one) for one in taken]
    said = [run.decide("act", {}).reason for run in runs]
    assert said == ["budget", "denied", "no-approver", "outside-only"]
    resolver.publish(loads(GONE))
    between = [run.renewed() for run in runs]
    tickets = [run.ticket() for run in between]
    resolver.publish(loads(OLD))
    assert [run.renewed().decide("act", {}).reason for run in between] == said
    assert [resolver.resume(one, {"s": session}.get).decide("act", {}).reason for one in tickets] == said
