"""Executions: who makes them, and what becomes of one that nobody made, or that was altered since."""

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from policy_lang import loads
from zcpolicy import Narrowing, PermitError, ResolvedAgentExecution, Resolver, Session
from zcpolicy.authority import SealError, executions_of, genuine
from zcpolicy.sealed import put

Use = Callable[[ResolvedAgentExecution], object]
POLICY = """zcpolicy 1
tool look() risk read
tool act() risk high
agent weak { autonomy supervised; allow look }
agent strong { autonomy full; allow look, act; delegate to weak }
"""


@pytest.fixture
def resolver() -> Resolver:
    return Resolver(loads(POLICY))


def forged(run: ResolvedAgentExecution) -> ResolvedAgentExecution:
    """An object of the right type that no resolver made, filled as one that it made."""
    made: ResolvedAgentExecution = object.__new__(ResolvedAgentExecution)
    for slot in ("resolver", "session", "stack", "parent", "surface"):
        put(made, slot, getattr(run, slot))
    return made


def test_what_a_resolver_made_is_genuine(resolver: Resolver) -> None:
    run = resolver.resolve("weak")
    assert genuine(run).stack is run.stack


def test_a_forged_execution_carries_no_authority(resolver: Resolver) -> None:
    fake = forged(resolver.resolve("strong"))
    decision = fake.decide("act", {})
    uses: list[Use] = [genuine, lambda run: run.permit(decision), lambda run: run.budgets, lambda run: run.runtime]
    for use in uses:
        with pytest.raises(SealError, match="is no execution"):
            use(fake)
    with pytest.raises(SealError):
        resolver.resolve("weak", parent=fake)


@pytest.mark.parametrize("slot", ["stack", "session", "resolver", "parent", "surface"])
def test_an_altered_execution_carries_no_authority(resolver: Resolver, slot: str) -> None:
    weak, strong = (
        resolver.resolve("weak"),
        resolver.resolve("strong", session=Session(interactive=True), surface="other"),
    )
    decision = weak.decide("look", {})
    other: Any = {"parent": strong, "resolver": Resolver(resolver.program), "surface": "rpc"}
    put(weak, slot, other[slot] if slot in other else getattr(strong, slot))
    with pytest.raises(SealError, match="was altered"):
        weak.permit(decision)


def test_an_altered_execution_above_takes_the_authority_of_its_child(resolver: Resolver) -> None:
    strong = resolver.resolve("strong")
    child = resolver.resolve("weak", parent=strong)
    put(strong, "stack", resolver.resolve("weak").stack)
    with pytest.raises(SealError, match="was altered"):
        genuine(child)


def inherit(_run: object) -> object:
    return type("Mine", (ResolvedAgentExecution,), {})


def assign(run: object) -> None:
    setattr(run, "surface", "rpc")  # noqa: B010 - type checkers refuse the plain way


ATTEMPTS: dict[str, Callable[[Any], object]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "subclass": inherit,
    "construct": ResolvedAgentExecution,
    "set": assign,
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=list(ATTEMPTS))
def test_nobody_else_makes_or_changes_one(resolver: Resolver, attempt: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, AttributeError), match="sealed"):
        attempt(resolver.resolve("weak"))


THINGS: list[Any] = [None, "coder", [("look", {})], object()]


@pytest.mark.parametrize("thing", THINGS, ids=["none", "text", "list", "object"])
def test_what_is_no_execution_at_all(thing: Any) -> None:
    with pytest.raises(SealError, match="is no execution"):
        genuine(thing)


def test_the_record_lets_go_of_what_nobody_holds(resolver: Resolver) -> None:
    held = resolver.resolve("weak")
    dropped = resolver.resolve("strong", narrowing=Narrowing(only=[]))
    surfaces = [dropped.budgets, dropped.approvals, dropped.memory]
    assert len(surfaces) == 3
    surfaces.clear()
    del dropped
    gc.collect()
    assert executions_of(resolver) == [held]


def test_a_decision_of_one_execution_is_no_right_in_another(resolver: Resolver) -> None:
    decision = resolver.resolve("strong").decide("act", {})
    with pytest.raises(PermitError, match="of another execution"):
        resolver.resolve("strong").permit(decision)


def test_who_acts_and_for_whom(resolver: Resolver) -> None:
    above = resolver.resolve("strong", session=Session(client="c", id="s1", turn="t1"), surface="channel")
    below = resolver.resolve("weak", parent=above, session=Session(client="c", id="s2", turn="t2"), surface="delegate")
    assert below.identity.to_json() == {
        "agent": "weak", "client": "c", "session": "s2", "turn": "t2", "surface": "delegate", "depth": 1,
        "line": [["strong", "s1"]],
    }  # fmt: skip


def test_a_decision_without_an_execution_permits_nothing(resolver: Resolver) -> None:
    """Its execution is on no record: it stands under no delegator and no narrowing, so that nothing may act with it."""
    decision = resolver.decide("strong", "act", {})
    assert decision.effect == "allow"
    uses: list[Use] = [genuine, lambda run: run.permit(decision), lambda run: run.ticket(), lambda run: run.registry]
    for use in uses:
        with pytest.raises(SealError, match="is no execution"):
            use(decision.run)


def test_a_childs_session_is_not_decided_about_without_its_delegator(resolver: Resolver) -> None:
    session = Session(id="child")
    resolver.resolve("weak", parent=resolver.resolve("strong", narrowing=Narrowing(only=[])), session=session)
    decision = resolver.decide("weak", "look", {}, session=session)
    assert (decision.effect, decision.reason) == ("deny", "stale-policy")


def test_an_unknown_agent_has_no_tools(resolver: Resolver) -> None:
    assert resolver.decide("nobody", "look", {}).run.tools() == ()


@pytest.mark.parametrize("part", ["effect", "reason", "rules", "said", "tool"])
def test_nobody_changes_what_equal_calls_are_told(resolver: Resolver, part: str) -> None:
    verdict: Any = resolver.resolve("weak").decide("act", {}).verdict
    with pytest.raises(AttributeError, match="a verdict stands"):
        setattr(verdict, part, getattr(verdict, part))
    with pytest.raises(AttributeError, match="a verdict stands"):
        delattr(verdict, part)


STANDS: dict[str, Callable[[ResolvedAgentExecution], object]] = {
    "levels": lambda run: run.stack,
    "counted": lambda run: run.stack,
    "index": lambda run: run.decide("look", {}).rules[0],
    "bodies": lambda run: run.stack.own,
    "data": lambda run: run.stack.own.root,
    "effect": lambda run: run.decide("act", {}).said[0],
}


@pytest.mark.parametrize("part", STANDS)
def test_nobody_exchanges_what_an_execution_stands_under(resolver: Resolver, part: str) -> None:
    held = STANDS[part](resolver.resolve("weak"))
    with pytest.raises(AttributeError, match="is made once"):
        setattr(held, part, getattr(held, part))
    with pytest.raises(AttributeError, match="is made once"):
        delattr(held, part)
