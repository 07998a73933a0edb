"""What a yes is bound to: equal for the same question, different for every other, and nothing that can be read two ways."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_lang import loads
from tests.approvals.people import ASKS, TOOLS, resolver, session, shell, start
from zcpolicy import Resolver
from zcpolicy.approvals.binding import bound, digest
from zcpolicy.call import same
from zcpolicy.exact import is_list, is_object

json: Any = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-1_000, 1_000),
        st.floats(allow_nan=False, allow_infinity=False),
        st.decimals(allow_nan=False, allow_infinity=False, places=3),
        st.text(max_size=4),
        st.sampled_from(["n", "number", "list", "1", "null", "true", "\ud800", "\U00010000", '"', "\n", ","]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("anl\ud800", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(json, json)
def test_equal_digests_mean_equal_values(left: Any, right: Any) -> None:
    assert (digest(left) == digest(right)) == (spelled(left) == spelled(right))


def spelled(value: Any) -> Any:
    """A value so that Python's equality is that of JSON: `true` is not `1`, `1.0` is `1`, `-0.0` is written as it is."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    if is_list(value):
        return ["list", *map(spelled, value)]
    if is_object(value):
        return {name: spelled(one) for name, one in value.items()}
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return ("number", number, number.is_signed() and not isinstance(value, int))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"a": "1"}), ({"a": 1}, {"a": True}), ({"a": []}, {"a": {}}), ({"a": None}, {}), ({"a": ""}, {"a": None}),
        ({"a": ["number", "1"]}, {"a": 1}), ({"a": ["list"]}, {"a": []}), ({"a": ["x", "y"]}, {"a": ["x,y"]}),
        ({"a": "\ud800"}, {"a": "\\ud800"}), ({"a": 0.1}, {"a": Decimal("0.10000000000000001")}), ({"a": "é"}, {"a": "e\u0301"}),
        ({"a": 10**30}, {"a": 10**30 + 1}), ({"a": {"b": 1}}, {"a.b": 1}),
    ],
)  # fmt: skip
def test_told_apart(left: Any, right: Any) -> None:
    assert digest(left) != digest(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [({"a": 1}, {"a": 1.0}), ({"a": 1}, {"a": Decimal("1.00")}), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({"a": 1e2}, {"a": 100})],
)  # fmt: skip
def test_the_same(left: Any, right: Any) -> None:
    assert (digest(left), same(left, right)) == (digest(right), True)


@pytest.mark.parametrize("value", [object(), {"a": {1}}, b"x", {"a": float("nan")}])
def test_what_is_no_json(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - no message is promised
        digest(value)


def test_the_same_question_is_bound_alike_in_every_execution() -> None:
    text = TOOLS + ASKS % ""
    first = Resolver(loads(text)).resolve("coder", session=session())
    second = Resolver(loads(text)).resolve("coder", session=session())
    assert bound(shell(first)) == bound(shell(second))


def test_the_parts_do_not_run_into_each_other() -> None:
    one, other = start(client="a", id="bc"), start(client="ab", id="c")
    assert bound(shell(one)) != bound(shell(other))


def test_without_arguments_only_arguments_are_left_out() -> None:
    run = start()
    one, other = bound(shell(run, "ls")), bound(shell(run, "git push"))
    assert (one.tool == other.tool, one.call == other.call) == (True, False)
    run.session.mark(["untrusted"])
    assert bound(shell(run)).tool != other.tool


CEILING = TOOLS + "agent one { allow mail }\nagent two { allow mail }\nceiling { ask mail\n on drift any ask }"


@pytest.mark.parametrize(
    ("agent", "facts", "alike"),
    [
        ("one", {}, True), ("two", {}, False), ("one", {"labels": ["of no rule"]}, False),
        ("one", {"drift": {"mail": "description"}}, False), ("one", {"turn": "t2"}, True), ("one", {"drift": {"shell": "schema"}}, True),
    ],
)  # fmt: skip
def test_where_the_same_rule_asks(agent: str, facts: dict[str, Any], alike: bool) -> None:
    made = Resolver(loads(CEILING))
    first = made.resolve("one", session=session()).decide("mail", {"to": "bob"})
    other = made.resolve(agent, session=session(**facts)).decide("mail", {"to": "bob"})
    assert (first.effect, other.effect) == ("ask", "ask")
    assert (bound(first) == bound(other), bound(first).tool == bound(other).tool) == (alike, alike)


def test_drift_that_asks_for_nothing_more_is_another_question_all_the_same() -> None:
    made = Resolver(
        loads(CEILING.replace("any ask", "any allow").replace("allow mail }", "allow mail\n on drift any allow }"))
    )
    first = made.resolve("one", session=session()).decide("mail", {"to": "bob"})
    drifted = made.resolve("one", session=session(drift={"mail": "description"})).decide("mail", {"to": "bob"})
    assert (first.approval, first.rules[0].data) == (drifted.approval, drifted.rules[0].data)
    assert bound(first) != bound(drifted)


DEFINITIONS = {
    "an argument": ("mail(to: string, body?: string)", "mail(to: string, body?: string, cc?: string)"),
    "a kind": ("body?: string", "body?: any"),
    "what is required": ("body?: string", "body: string"),
}


@pytest.mark.parametrize("what", DEFINITIONS)
def test_the_tools_definition(what: str) -> None:
    before, after = DEFINITIONS[what]
    assert before in TOOLS
    made = resolver()
    run = made.resolve("coder", session=session())

    def binding() -> str:
        return bound(run.renewed().decide("mail", {"to": "bob", "body": "hi"})).call

    first = binding()
    made.publish(loads(TOOLS + ASKS % ""))
    assert binding() == first
    made.publish(loads(TOOLS.replace(before, after) + ASKS % ""))
    assert binding() != first


def test_the_directory_of_a_server_is_its_own() -> None:
    made = resolver()

    def lookup(**facts: Any) -> str:
        run = made.resolve("coder", session=session(**facts))
        return bound(run.decide(("github", "lookup"), {"q": "x"})).call

    assert lookup(cwd="/a") == lookup(cwd="/b")
    assert lookup(server_cwd={"github": "/a"}) != lookup(server_cwd={"github": "/b"})
    assert lookup(server_cwd={"gitlab": "/a"}) == lookup(server_cwd={"gitlab": "/b"})


def test_two_bodies_of_one_name_ask_two_questions() -> None:
    """A skill that is called as the agent is, and has the same rule."""
    text = TOOLS + 'agent coder { allow shell\n skills coder\n %s }\nskill coder { ask shell because "x" }\n'
    plain = Resolver(loads(text % 'ask shell because "x"')).resolve("coder", session=session())
    skilled = Resolver(loads(text % "")).resolve("coder", session=session(), skills=["coder"])
    asked = [shell(plain), shell(skilled)]
    assert [one.effect for one in asked] == ["ask", "ask"]
    assert asked[0].approval != asked[1].approval


def test_a_deny_asks_nothing() -> None:
    run = start()
    with pytest.raises(ValueError, match="asks nothing"):
        bound(run.decide("no_such_tool", {}))
