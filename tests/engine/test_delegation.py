"""SPEC 10: who may hand work to whom, and what holds for a child."""

from typing import Any

import pytest

from policy_lang import loads
from tests.engine.programs import STRING, body, leaf, program, rule, schema, tool
from zcpolicy import Narrowing, ResolvedAgentExecution, ResolveError, Resolver, Session, UnknownAgent

TOOLS = [tool("read", schema(to=STRING), risk="read"), tool("write")]  # 0, 1
BOTH, READ = rule("allow", "0-1"), rule("allow", "0")


def to(*bounded: str, free: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {
        "to": {**{name: {} for name in bounded}, **{name: {"independent": True, "because": "x"} for name in free}},
        **more,
    }


def line(resolver: Resolver, *names: str, narrowing: Narrowing | None = None) -> ResolvedAgentExecution:
    """Executions one below the other."""
    run = resolver.resolve(names[0], session=Session(interactive=True), narrowing=narrowing)
    for name in names[1:]:
        run = resolver.resolve(name, parent=run)
    return run


def may(run: ResolvedAgentExecution) -> list[str]:
    return [name for name in ("read", "write") if run.decide(name, {}).effect == "allow"]


def test_a_bounded_child_is_the_minimum() -> None:
    resolver = Resolver(program(TOOLS, body("a", READ, delegate=to("b")), body("b", BOTH)))
    assert may(resolver.resolve("b")) == ["read", "write"]
    assert may(line(resolver, "a", "b")) == ["read"]
    assert line(resolver, "a", "b").tools() == ("read",)


def test_each_execution_is_taken_whole() -> None:
    """The child's grant does not lift the prompt of the delegator, whose own waiver does."""
    supervised = {"read": "allow", "low": "ask", "medium": "ask", "high": "ask"}
    parent = body("a", BOTH, rule("auto_approve", "1"), autonomy=supervised, delegate=to("b"))
    resolver = Resolver(program(TOOLS, parent, body("b", BOTH, autonomy=supervised)))
    assert resolver.resolve("a").decide("write", {}).effect == "allow"
    assert line(resolver, "a", "b").decide("write", {}).effect == "ask"


def test_an_independent_child_is_free_of_its_delegators_bodies_only() -> None:
    ceiling = body("ceiling", rule("deny", "0", {"marked": "l"}), kind="ceiling")
    resolver = Resolver(
        program(TOOLS, body("a", READ, delegate=to(free=("b",))), body("b", BOTH), ceiling=ceiling, labels=["l"])
    )
    assert may(line(resolver, "a", "b")) == ["read", "write"]
    assert may(line(resolver, "a", "b", narrowing=Narrowing(only=["read"]))) == ["read"]
    above = resolver.resolve("a", session=Session(labels=["l"]))
    child = resolver.resolve("b", parent=above, session=Session(interactive=True))
    assert may(child) == ["write"]
    assert child.session.interactive is False
    assert may(resolver.resolve("b", parent=above, independent=False)) == []


def test_a_skill_of_the_delegator_reaches_an_independent_child() -> None:
    skill = body("s", kind="skill", only=[{"tools": "0"}])
    own = body("a", BOTH, skills=["s"], delegate=to(free=("b",)))
    resolver = Resolver(program(TOOLS, own, body("b", BOTH), skills={"s": skill}))
    assert may(resolver.resolve("b", parent=resolver.resolve("a", skills=["s"]))) == ["read"]
    assert may(resolver.resolve("b", parent=resolver.resolve("a"))) == ["read", "write"]


REFUSED: dict[str, tuple[list[Any], tuple[str, ...], str]] = {
    "nobody is named": ([body("a"), body("b")], ("a", "b"), "agent `a` may not delegate to `b`"),
    "another is named": ([body("a", delegate=to("c")), body("b"), body("c")], ("a", "b"), "agent `a` may not delegate to `b`"),
    "none beats all": ([body("a", delegate=to("b", none=True)), body("b")], ("a", "b"), "agent `a` may not delegate to `b`"),
    "itself": ([body("a", delegate=to("a"))], ("a", "a"), "agent `a` may not delegate to `a`"),
    "the depth is one": (
        [body("a", delegate=to("b", "c")), body("b", delegate=to("c")), body("c")], ("a", "b", "c"),
        "agent `a` allows a delegation depth of 1",
    ),
    "a bounded child reaches only whom its delegator may": (
        [body("a", delegate=to("b", depth="5")), body("b", delegate=to("c")), body("c")], ("a", "b", "c"),
        "agent `a` may not delegate to `c`",
    ),
    "depth reaches an independent child": (
        [body("a", delegate=to(free=("b",))), body("b", delegate=to("c")), body("c")], ("a", "b", "c"),
        "agent `a` allows a delegation depth of 1",
    ),
    "an agent that is not there": ([body("a", delegate=to("z"))], ("a", "z"), "there is no agent `z`"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    bodies, names, message = REFUSED[case]
    with pytest.raises(ResolveError) as caught:
        line(Resolver(program(TOOLS, *bodies)), *names)
    assert str(caught.value) == message


def test_deeper_where_it_is_said() -> None:
    bodies = [body("a", READ, delegate=to("b", "c", depth="2")), body("b", BOTH, delegate=to("c")), body("c", BOTH)]
    child = line(Resolver(program(TOOLS, *bodies)), "a", "b", "c")
    assert (may(child), child.depth, child.agent) == (["read"], 2, "c")


@pytest.mark.parametrize(
    ("said_above", "allowed"),
    [(to("b", "c", depth="2"), ["read"]), (to("b", free=("c",), depth="2"), ["read", "write"])],
)
def test_independently_only_if_every_delegator_says_so(said_above: Any, allowed: list[str]) -> None:
    bodies = [body("a", READ, delegate=said_above), body("b", READ, delegate=to(free=("c",))), body("c", BOTH)]
    assert may(line(Resolver(program(TOOLS, *bodies)), "a", "b", "c")) == allowed


def test_a_body_that_restricts_takes_the_right_away() -> None:
    bodies = [body("a", delegate=to("b")), body("n", kind="narrows", delegate={"to": {}, "none": True}), body("b")]
    resolver = Resolver(program(TOOLS, *bodies, narrows={"n": "a"}))
    line(resolver, "a", "b")
    with pytest.raises(ResolveError):
        line(resolver, "n", "b")


def test_the_acting_executions_facts_hold_throughout() -> None:
    parent = body("a", rule("allow", "0", leaf("agent.name", "==", "b")), delegate=to("b"))
    resolver = Resolver(program(TOOLS, parent, body("b", rule("allow", "0", leaf("agent.depth", "==", 1)))))
    assert may(resolver.resolve("a")) == []
    assert may(line(resolver, "a", "b")) == ["read"]


def test_approval_none_above_is_none_below() -> None:
    bodies = [body("a", READ, approval={"none": True}, delegate=to("b")), body("b", READ, rule("ask", "0"))]
    resolver = Resolver(program(TOOLS, *bodies))
    assert resolver.resolve("b", session=Session(interactive=True)).decide("read", {}).reason == "asked"
    assert line(resolver, "a", "b").decide("read", {}).reason == "no-approver"


def test_skills() -> None:
    skill = body("s", kind="skill")
    resolver = Resolver(program(TOOLS, body("a", READ, skills=["s"]), body("b", READ), skills={"s": skill}))
    resolver.resolve("a", skills=["s", "s"])
    with pytest.raises(ResolveError, match="agent `b` may not load skill `s`"):
        resolver.resolve("b", skills=["s"])
    with pytest.raises(ResolveError, match="there is no skill `z`"):
        resolver.resolve("a", skills=["z"])


def test_a_skill_holds_for_the_session_in_every_run_of_it() -> None:
    skill = body("s", kind="skill", only=[{"tools": "0"}])
    own = body("a", BOTH, skills=["s"], delegate=to("b"))
    resolver = Resolver(program(TOOLS, own, body("b", BOTH, skills=["s"]), skills={"s": skill}))
    session = Session(interactive=True)
    first, second = (resolver.resolve("a", session=session) for _ in range(2))
    child = resolver.resolve("b", parent=first)
    other = resolver.resolve("a", session=Session(interactive=True))
    for run in (first, second, child, other):
        assert may(run) == ["read", "write"]
    child.load_skill("s")
    for run in (first, second, child):
        assert may(run) == ["read"]
        assert run.tools() == ("read",)
        assert run.decide("write", "{}").reason == "outside-only"
    assert may(other) == ["read", "write"]


def test_a_skill_of_another_policy_leaves_nothing() -> None:
    before = Resolver(program(TOOLS, body("a", BOTH, skills=["s"]), skills={"s": body("s", kind="skill")}))
    after = Resolver(program(TOOLS, body("a", BOTH), skills={"t": body("t", kind="skill")}))
    session = Session(interactive=True)
    run = after.resolve("a", session=session)
    before.resolve("a", session=session, skills=["s"])
    assert run.decide("read", {}).reason == "stale-policy"
    assert run.tools() == ()
    assert after.decide("a", "read", {}, session=session).reason == "stale-policy"
    with pytest.raises(ResolveError, match="there is no skill `s`"):
        after.resolve("a", session=session)


def test_a_skill_that_is_loaded_on_the_way_holds_from_then_on() -> None:
    skill = body("s", kind="skill", only=[{"tools": "0"}])
    bodies = [body("a", BOTH, skills=["s"], delegate=to(free=("b",))), body("b", BOTH, skills=[])]
    resolver = Resolver(program(TOOLS, *bodies, skills={"s": skill}))
    run = resolver.resolve("a")
    assert may(run) == ["read", "write"]
    run.load_skill("s")
    run.load_skill("s")
    assert (may(run), run.tools()) == (["read"], ("read",))
    assert may(resolver.resolve("a", session=run.session)) == ["read"], "the session remembers it"
    assert may(resolver.resolve("b", parent=run)) == ["read"], "and it reaches every child"
    assert resolver.decide("a", "write", {}, session=run.session).reason == "outside-only"
    assert may(resolver.resolve("a")) == ["read", "write"], "another session does not"
    with pytest.raises(ResolveError, match="agent `b` may not load skill `s`"):
        resolver.resolve("b").load_skill("s")


def test_labels_of_a_child_are_its_delegators_at_once() -> None:
    bodies = [body("a", READ, delegate=to("b")), body("b", READ, rule("mark", "0", label="l"))]
    resolver = Resolver(program(TOOLS, *bodies, labels=["l", "m"]))
    above = resolver.resolve("a", session=Session(labels=["m"]))
    child = resolver.resolve("b", parent=above, session=Session())
    child.permit(child.decide("read", {}))
    assert child.session.labels == {"l", "m"}
    assert above.session.labels == {"l", "m"}


def test_labels_that_a_childs_session_brings_are_its_delegators_too() -> None:
    resolver = Resolver(program(TOOLS, body("a", READ, delegate=to("b")), body("b", READ), labels=["l"]))
    above = resolver.resolve("a", session=Session())
    resolver.resolve("b", parent=above, session=Session(labels=["l"]))
    assert above.session.labels == {"l"}


def test_a_skill_loaded_above_reaches_a_child_that_is_made_later() -> None:
    """Also where the execution in between has decided nothing since."""
    policy = """zcpolicy 1
        tool ping() risk read
        skill quiet { deny ping }
        agent a { autonomy full; allow ping; skills quiet; delegate to b, c; delegate depth 2 }
        agent b { autonomy full; allow ping; delegate to c }
        agent c { autonomy full; allow ping }
        """
    resolver = Resolver(loads(policy))
    top = resolver.resolve("a", session=Session())
    between = resolver.resolve("b", parent=top, session=Session())
    other = resolver.resolve("a", session=top.session)
    other.load_skill("quiet")
    below = resolver.resolve("c", parent=between, session=Session())
    assert [run.decide("ping", {}).effect for run in (top, between, below)] == ["deny"] * 3


def test_a_later_run_of_another_agent_is_a_delegation_and_is_charged() -> None:
    policy = """zcpolicy 1
        tool ping() risk read
        agent a { autonomy full; allow ping; delegate to b; limit 1 delegations per day }
        agent b { autonomy full; allow ping }
        """
    resolver = Resolver(loads(policy))
    top = resolver.resolve("a", session=Session(id="s"))
    later = resolver.resolve("b", parent=top, session=Session(id="later"), later=True)
    with pytest.raises(ResolveError, match=r"no delegation to `b` is left \(budget\)"):
        resolver.resolve("b", parent=top, session=Session(), later=True)
    assert resolver.resolve("a", parent=top, session=Session(), later=True).agent == "a"
    sessions = {one.session.id: one.session for one in (top, later)}
    assert resolver.resume(later.ticket(), sessions.get).agent == "b", "made again, and charged before"


def test_agents_that_are_not_there() -> None:
    resolver = Resolver(program(TOOLS, body("a")))
    odd_names: list[Any] = ["z", "", None, 7, [], ("a",)]
    for odd in odd_names:
        with pytest.raises(UnknownAgent):
            resolver.resolve(odd)
    above = resolver.resolve("a")
    with pytest.raises(ResolveError, match="another resolver"):
        Resolver(resolver.program).resolve("a", parent=above)


def test_a_skill_that_a_delegator_loads_reaches_the_children_that_stand_already() -> None:
    policy = """zcpolicy 1
        tool ping() risk read
        skill quiet { deny ping }
        agent a {
            autonomy full; allow ping; skills quiet; delegate depth 2
            delegate to b, d; delegate to c independent because "it may"
        }
        agent b { autonomy full; allow ping; delegate to d }
        agent c { autonomy full; allow ping }
        agent d { autonomy full; allow ping }
        """
    resolver = Resolver(loads(policy))
    top = resolver.resolve("a")
    bounded = resolver.resolve("b", parent=top, session=Session())
    below = resolver.resolve("d", parent=bounded, session=Session())
    free = resolver.resolve("c", parent=top, session=Session())
    other = resolver.resolve("c")
    runs = (top, bounded, below, free, other)
    assert [run.decide("ping", {}).effect for run in runs] == ["allow"] * 5
    top.load_skill("quiet")
    assert [run.decide("ping", {}).effect for run in runs] == ["deny"] * 4 + ["allow"]
