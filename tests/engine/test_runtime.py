"""Runtime knobs, rights to delegate and to load: the least of all bodies, told by the execution itself."""

import pytest

from policy_lang import loads
from zcpolicy import ResolvedAgentExecution, ResolveError, Resolver, Session
from zcpolicy.delegation import DelegationRights
from zcpolicy.runtime import DEFAULT_ITERATIONS, RuntimeKnobs

POLICY = """zcpolicy 1
tool look() risk read
skill slow {{ only look; runtime {{ call_timeout 5s }} }}
skill other {{ only look }}
profile wide {{ runtime {{ parallel_tools on, history 40, context 9_000 }} }}
ceiling {{ runtime {{ recall 4 }} }}
agent a {{ use wide; autonomy full; allow look; skills slow; {more}; delegate to b; delegate to c independent because "it may" }}
agent b {{ autonomy full; allow look; runtime {{ parallel_tools on, history 90, turn_timeout 60s }} }}
agent c {{ autonomy full; allow look }}
agent less narrows a {{ runtime {{ history 7, parallel_tools off }} }}
"""
DEFAULTS = RuntimeKnobs(False, 50, 32_000, 50_000, 5, 120.0, 3_600.0, DEFAULT_ITERATIONS)


def resolver(more: str = "runtime { tool_result 100 }") -> Resolver:
    return Resolver(loads(POLICY.format(more=more)))


def of(run: ResolvedAgentExecution) -> RuntimeKnobs:
    return run.runtime


def test_what_nobody_says_has_a_default() -> None:
    assert of(resolver().resolve("c")) == DEFAULTS._replace(recall=4)


def test_profile_body_and_ceiling_together() -> None:
    assert of(resolver().resolve("a")) == RuntimeKnobs(True, 40, 9_000, 100, 4, 120.0, 3_600.0, DEFAULT_ITERATIONS)


def test_a_narrowing_agent_narrows() -> None:
    knobs = of(resolver().resolve("less"))
    assert (knobs.history, knobs.parallel_tools) == (7, False)


def test_a_bounded_child_has_the_least_of_both() -> None:
    made = resolver()
    knobs = of(made.resolve("b", parent=made.resolve("a")))
    assert (knobs.history, knobs.tool_result, knobs.turn_timeout, knobs.parallel_tools) == (40, 100, 60.0, True)


def test_an_independent_child_has_its_own() -> None:
    made = resolver()
    assert of(made.resolve("c", parent=made.resolve("a"))) == DEFAULTS._replace(recall=4)


def test_a_turn_of_an_independent_child_has_no_more_requests_than_its_delegator() -> None:
    """What it spends counts above it as well, so that it could not make more."""
    made = resolver("limit 7 iterations per turn")
    assert of(made.resolve("c", parent=made.resolve("a"))).iterations == 7


def test_a_skill_narrows_from_its_load() -> None:
    run = resolver().resolve("a")
    run.load_skill("slow")
    assert of(run).call_timeout == 5.0


@pytest.mark.parametrize(
    ("limits", "iterations"),
    [
        ("limit 200 iterations per turn", 200),
        ("limit 7 iterations per turn; limit 9 iterations per turn", 7),
        ("limit 3 iterations per hour", DEFAULT_ITERATIONS),
        ("limit 0 iterations per turn", 0),
    ],
)
def test_iterations_of_a_turn(limits: str, iterations: int) -> None:
    assert of(resolver(limits).resolve("a")).iterations == iterations


@pytest.mark.parametrize(
    ("more", "rights"),
    [
        ("runtime { recall 9 }", DelegationRights({"b": False, "c": True}, 1)),
        ("delegate depth 3", DelegationRights({"b": False, "c": True}, 3)),
        ("delegate depth 0", DelegationRights({}, 0)),
    ],
)
def test_rights_to_delegate(more: str, rights: DelegationRights) -> None:
    assert resolver(more).resolve("a").rights == rights


def test_the_skills_that_may_be_loaded() -> None:
    made = resolver()
    assert [made.resolve(agent).loadable for agent in ("a", "b")] == [("slow",), ()]


def test_a_skill_of_the_session_is_there_before_anything_is_decided() -> None:
    policy = """zcpolicy 1
        tool look() risk read
        skill slow { runtime { call_timeout 5s }; limit 0 iterations per turn; skills none; delegate none }
        skill other { only look }
        agent a { autonomy full; allow look; skills slow, other; delegate to b }
        agent b { autonomy full; allow look }
        """
    made = Resolver(loads(policy))
    one = made.resolve("a", session=Session(id="s"))
    two = made.resolve("a", session=one.session)
    child = made.resolve("b", parent=one, session=Session())
    one.load_skill("slow")
    assert [run.runtime.call_timeout for run in (one, two, child)] == [5.0] * 3
    assert [run.runtime.iterations for run in (one, two, child)] == [0] * 3
    assert (two.loadable, two.rights.to) == ((), {})
    with pytest.raises(ResolveError, match="may not load skill `other`"):
        two.load_skill("other")
    assert child.budgets.iteration("i") is not None
