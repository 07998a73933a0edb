"""Memory over random bodies: what withholds never widens, and a child has nothing that is not its own or its delegator's."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.programs import body, program, rule, tool
from zcpolicy import Narrowing, ResolvedAgentExecution, Resolver, Session
from zcpolicy.memory import Shelf, genuine_scope

NAMES = st.lists(st.sampled_from(("own", "a", "b", "c", "team", "plans", "gone")), max_size=4, unique=True)
SAID: st.SearchStrategy[Any] = st.none() | st.fixed_dictionaries({"read": NAMES, "write": NAMES})
WHOSE: tuple[str, ...] = ("a", "b", "c", "n", "ceiling", "s")
BODIES = st.fixed_dictionaries(dict.fromkeys(WHOSE, SAID))


def resolver(said: dict[str, Any]) -> Resolver:
    def one(name: str, kind: str = "agent", **more: Any) -> Any:
        memory = {} if said[name] is None else {"memory": said[name]}
        return body(name, *([rule("allow", "0")] if kind == "agent" else []), kind=kind, **memory, **more)

    free = {"independent": True, "because": "x"}
    agents = (
        one("a", delegate={"to": {"b": {}, "c": free, "n": {}}, "depth": "2"}, skills=["s"]),
        one("b", delegate={"to": {"c": {}}}, skills=["s"]),
        one("c", skills=["s"]),
        one("n", "narrows"),
    )
    return Resolver(
        program(
            [tool("t")], *agents, narrows={"n": "a"}, ceiling=one("ceiling", "ceiling"), scopes=["plans", "team"],
            skills={"s": one("s", "skill")},
        )
    )  # fmt: skip


def shelves(run: ResolvedAgentExecution) -> set[tuple[str, Shelf]]:
    found = {("read", genuine_scope(scope, "read")[1]) for scope in run.memory.read}
    return found | {("write", genuine_scope(scope, "write")[1]) for scope in run.memory.write}


def own(run: ResolvedAgentExecution) -> set[tuple[str, Shelf]]:
    shelf = Shelf(run.session.client, "agent", run.agent)
    return {("read", shelf), ("write", shelf)}


@given(BODIES, st.sampled_from("abc"))
def test_a_ceiling_a_skill_and_a_narrowing_never_widen(said: dict[str, Any], agent: str) -> None:
    plain = shelves(resolver({**said, "ceiling": None}).resolve(agent))
    bounded = resolver(said).resolve(agent)
    assert shelves(bounded) <= plain
    under_a_skill = resolver(said).resolve(agent, skills=["s"])
    assert shelves(under_a_skill) <= shelves(bounded)
    assert shelves(resolver(said).resolve(agent, narrowing=Narrowing(exclude_memory=True))) == set()
    if said[agent] is None:
        assert plain == set()


@given(BODIES)
def test_an_agent_that_narrows_has_its_own_and_what_its_parent_has(said: dict[str, Any]) -> None:
    policy = resolver(said)
    narrow, wide = policy.resolve("n", session=Session(client="x")), policy.resolve("a", session=Session(client="x"))
    assert shelves(narrow) - own(narrow) <= shelves(wide)


@given(BODIES)
def test_a_bounded_child_has_its_own_and_what_its_delegator_has(said: dict[str, Any]) -> None:
    policy = resolver(said)
    above = policy.resolve("a", session=Session(client="x"))
    child = policy.resolve("b", parent=above)
    grandchild = policy.resolve("c", parent=child)
    assert shelves(child) - own(child) <= shelves(above)
    assert shelves(child) <= shelves(policy.resolve("b", session=above.session))
    assert shelves(grandchild) - own(grandchild) <= shelves(child)
    assert shelves(grandchild) <= shelves(policy.resolve("c", session=above.session))
    for mode in ("read", "write"):
        if said["a"] is None or not said["a"][mode]:
            assert not any(one == mode for one, _ in (*shelves(child), *shelves(grandchild)))


@given(BODIES)
def test_an_independent_child_has_what_it_has_alone_but_for_what_reaches_every_child(said: dict[str, Any]) -> None:
    policy = resolver(said)
    alone = shelves(policy.resolve("c", session=Session(client="x")))
    assert shelves(policy.resolve("c", parent=policy.resolve("a", session=Session(client="x")))) == alone
    without = policy.resolve("a", narrowing=Narrowing(exclude_memory=True), session=Session(client="x"))
    assert shelves(policy.resolve("c", parent=without)) == set()
    skilled = policy.resolve("a", skills=["s"], session=Session(client="x"))
    assert shelves(policy.resolve("c", parent=skilled, session=Session(client="x"))) <= alone


@given(BODIES, st.text("xy", max_size=2), st.text("xy", max_size=2))
def test_no_two_clients_have_a_shelf_in_common(said: dict[str, Any], one: str, other: str) -> None:
    policy = resolver(said)
    mine, yours = (
        {shelf for agent in "abcn" for _, shelf in shelves(policy.resolve(agent, session=Session(client=client)))}
        for client in (one, other)
    )
    assert mine.isdisjoint(yours) or one == other
