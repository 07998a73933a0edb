"""Small print of SPEC 5 to 10: where leaving out one branch of the engine would change an answer."""

from decimal import Decimal
from typing import Any

import pytest

from tests.engine.programs import STRING, body, leaf, limit, program, rule, run, schema, tool
from zcpolicy import Narrowing, ResolveError, Resolver, Session
from zcpolicy.call import Malformed, judge, same, spelt
from zcpolicy.condition import compile_condition, truth_of
from zcpolicy.mentions import is_url, sources
from zcpolicy.narrowing import body_of
from zcpolicy.operands import Call, Site

ANY = {"kind": "any"}
SAY = tool("say", schema(to=STRING, x="any"), risk="read")
ALLOW = rule("allow", "0")
TO_X = leaf("args.to", "==", "x")
WITHHOLDING = {**TO_X, "grants": False}

# --- one condition in several rules ------------------------------------------------------------------------------------

TOGETHER: dict[str, tuple[list[Any], dict[str, Any], list[str]]] = {
    "deny and ask": ([ALLOW, rule("deny", "0", WITHHOLDING), rule("ask", "0", WITHHOLDING)], {}, ["denied", "allowed", "denied"]),
    "ask and deny": ([ALLOW, rule("ask", "0", WITHHOLDING), rule("deny", "0", WITHHOLDING)], {}, ["denied", "allowed", "denied"]),
    "deny and unclear ask": (
        [ALLOW, rule("deny", "0", WITHHOLDING, unclear="ask"), rule("deny", "0", WITHHOLDING, unclear="ask", because="x")],
        {}, ["denied", "allowed", "asked"],
    ),
    "unclear ask beside a deny": (
        [ALLOW, rule("deny", "0", WITHHOLDING, unclear="ask"), rule("deny", "0", WITHHOLDING)], {}, ["denied", "allowed", "denied"],
    ),
    "allow and auto_approve": (
        [rule("allow", "0", TO_X), rule("auto_approve", "0", TO_X)],
        {"autonomy": dict.fromkeys(("read", "low", "medium", "high"), "ask")},
        ["allowed", "not-granted", "not-granted"],
    ),
    "allow, plain and with approval": (
        [rule("allow", "0", TO_X, approval=True), rule("allow", "0", TO_X)], {}, ["allowed", "not-granted", "not-granted"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TOGETHER)
def test_a_condition_that_several_rules_share(case: str) -> None:
    rules, parts, reasons = TOGETHER[case]
    execution = run([SAY], *rules, **parts)
    assert [execution.decide("say", one).reason for one in ({"to": "x"}, {"to": "y"}, {})] == reasons


# --- what may be shown -------------------------------------------------------------------------------------------------

NAMED = leaf("tool.name", "==", "say", grants=False)
SHOWN: dict[str, tuple[list[Any], bool]] = {
    "surely denied": ([ALLOW, rule("deny", "0", NAMED)], False),
    "surely denied, unclear ask or not": ([ALLOW, rule("deny", "0", NAMED, unclear="ask")], False),
    "denied for some arguments, unclear ask": ([ALLOW, rule("deny", "0", WITHHOLDING, unclear="ask")], True),
    "compared with an argument that it does not have": (
        [rule("allow", "0", {**TO_X, "right": {"operand": ["args", "zz"]}})], False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SHOWN)
def test_tools_that_are_shown(case: str) -> None:
    rules, shown = SHOWN[case]
    assert run([SAY], *rules).tools() == (("say",) if shown else ())


# --- arguments ---------------------------------------------------------------------------------------------------------


def test_objects_nest_as_deep_as_lists() -> None:
    deep: Any = "x"
    for _ in range(1_000):
        deep = {"a": deep}
    assert run([SAY], ALLOW).decide("say", {"x": deep}).note == "the arguments nest too deep"


def test_digits_of_an_exact_number() -> None:
    fits, long = Decimal("0." + "1" * 1_000), Decimal("0." + "1" * 1_001)
    assert judge(schema(x="number"), {"x": fits}) == {"x": fits}
    with pytest.raises(Malformed, match="out of bounds"):
        judge(schema(x="number"), {"x": long})
    assert judge(schema(x="number"), {"x": Decimal("1E+1000")}) == {"x": Decimal("1E+1000")}


@pytest.mark.parametrize("text", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_exact_numbers_that_are_none(text: str) -> None:
    with pytest.raises(Malformed, match="out of bounds"):
        judge(schema(x="number"), {"x": Decimal(text)})


def test_a_required_argument_that_the_tool_will_write() -> None:
    arguments = schema("x", "y", x={"kind": "string", "default": "d"}, y=STRING)
    assert judge(arguments, {"y": "a"}, supplies_defaults=False) == {"y": "a"}
    with pytest.raises(Malformed, match="`y` is missing"):
        judge(arguments, {"x": "a"}, supplies_defaults=False)


def test_booleans_inside_anything() -> None:
    assert judge(schema(x="any"), {"x": [True, False]}) == {"x": [True, False]}


def test_a_name_in_a_message() -> None:
    assert spelt("a`b\u202ec" + "d" * 100) == "a\ufffdb\ufffdc" + "d" * 55


def test_tools_that_can_hold_paths_and_urls() -> None:
    assert sources({"kind": "object", "fields": {}}) == (False, False)
    assert sources({"kind": "object", "fields": {}, "extra": "allow"}) == (True, True)
    assert sources(schema(p="path")) == (True, False)
    assert sources(schema(u="url")) == (False, True)


SAME: list[tuple[Any, Any, bool]] = [
    (1, 1.0, True), (1, Decimal("1.0"), True), (0.1, Decimal("0.1"), True), (1, True, False), (True, True, True), (0, False, False),
    ("a", "a", True), ("a", "A", False), ("1", 1, False), ([1, 2], [1.0, 2], True), ([1], [1, 2], False), ([1, 2], [1], False),
    ([1, 2], [1, 3], False), ([], {}, False), ({"a": [1]}, {"a": [1.0]}, True), ({"a": 1}, {"a": 1, "b": 2}, False),
    ({"a": 1, "b": 2}, {"a": 1}, False), ({"a": 1, "b": 2}, {"a": 1, "b": 3}, False), ({"a": True}, {"a": 1}, False),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "alike"), SAME)
def test_values_that_are_the_same(left: Any, right: Any, alike: bool) -> None:
    assert same(left, right) is alike
    assert same(right, left) is alike


def truth(condition: Any, arguments: Any, schema_: Any, session: Session | None = None, context: Any = None) -> Any:
    """The truth of a condition in a rule that withholds."""
    one: Any = tool("t", schema_)
    facts = session or Session(cwd="/w")
    node = compile_condition(condition, Site(one, "a", 0, context or {}, grants=False))
    return truth_of(node, Call(arguments, facts, facts.labels, one))


SECRET = leaf("paths", "glob", "**/.env", each="some", grants=False)
READ: dict[str, tuple[Any, Any, Any, Any]] = {
    "an argument of a tool that has none": (leaf("args.zz", "==", "a"), {}, schema(), False),
    "a text test on anything": (leaf("args.x", "like", "a*"), {"x": "ab"}, schema(x="any"), True),
    "a text test on anything else": (leaf("args.x", "like", "a*"), {"x": ["ab"]}, schema(x="any"), None),
    "a name of an open object is a path": (SECRET, {"o": {"/w/.env": 1}}, schema(o={"kind": "object", "extra": "allow"}), True),
    "a value of a map of paths is one": (
        SECRET, {"o": {"x": "/w/.env"}}, schema(o={"kind": "object", "extra": {"kind": "path"}}), True,
    ),
    "a file url in a shell": (SECRET, {"c": "curl file:///w/%2Eenv"}, schema(c="shell"), True),
    "a url of a shell that is partly known": (
        leaf("urls", "==", "https://x.org/a", each="some", grants=False), {"c": 'curl "https://$H/a"'}, schema(c="shell"), None,
    ),
    "a shell that cannot be read": (SECRET, {"c": "cat 'a"}, schema(c="shell"), None),
    "a url of a shell": (
        leaf("urls", "==", "https://x.org/a", each="some", grants=False), {"c": "curl https://x.org/a"}, schema(c="shell"), True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_what_a_test_reads(case: str) -> None:
    condition, arguments, schema_, expected = READ[case]
    assert truth(condition, arguments, schema_) is expected


URLS: Any = {"kind": "list", "item": {"kind": "url"}}
FACTS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "a part of a url": (leaf("session.site.host", "==", "x.org"), {"site": "https://X.org/"}, True),
    "a part of each url of a list": (leaf("session.sites.host", "==", "x.org", each="some"), {"sites": ["https://y.z", "https://x.org"]}, True),
    "a member of an object": (leaf("session.who.name", "==", "x"), {"who": {"name": "x"}}, True),
    "an element of a list": (leaf("session.team", "==", "x", each="some"), {"team": ["y", "x"]}, True),
    "a path among paths": (leaf("session.places", "under", "/w", each="every"), {"places": ["/w/a", "b"]}, True),
}  # fmt: skip


@pytest.mark.parametrize("case", FACTS)
def test_what_a_test_reads_of_the_session(case: str) -> None:
    condition, context, expected = FACTS[case]
    declared: Any = {
        "site": {"kind": "url"}, "sites": URLS, "who": {"kind": "object", "fields": {}, "extra": "allow"}, "team": {"kind": "list", "item": STRING},
        "places": {"kind": "list", "item": {"kind": "path"}},
    }  # fmt: skip
    assert truth(condition, {}, schema(), Session(context=context, cwd="/w"), declared) is expected


IS_URL = {
    "https://x": True, "HTTP:x": True, "wss:x": True, "ws:x": True, "ftp:x": True, "file:/x": True, "\t https:x": True,
    "a+b-c.1://x": True, "git://x": True, "://x": False, "1a://x": False, "+a://x": False, "\u00e9://x": False, "a_b://x": False,
    "mailto:x": False, "x": False, "": False, "/a://b": False,
}  # fmt: skip


@pytest.mark.parametrize("text", IS_URL)
def test_what_begins_as_a_url(text: str) -> None:
    assert is_url(text) is IS_URL[text]


@pytest.mark.parametrize(
    "arguments",
    [{"path": "/etc/p"}, '{"path": "/etc/p"}', b'{"path": "/etc/p"}', {"path": "/etc/p", "text": "x" * 100_000}],
)
def test_protected_files_however_arguments_come(arguments: Any) -> None:
    compiled = program([tool("put", schema("path", path="path", text=STRING))], body("a", ALLOW))
    execution = Resolver(compiled, protected=["/etc/p"]).resolve("a")
    assert execution.decide("put", arguments).reason == "protected"


# --- limits ------------------------------------------------------------------------------------------------------------

MINUTE = {"kind": "rolling", "seconds": "60"}


def clock() -> float:
    return 1_000.0


def call(execution: Any, **arguments: Any) -> str:
    """Decides, and runs what is allowed."""
    decision = execution.decide("say", arguments)
    if decision.effect == "allow":
        execution.permit(decision)
    reason: str = decision.reason
    return reason


def test_a_skills_pot_is_that_of_all_who_loaded_it() -> None:
    skill = body("s", kind="skill", limits=[limit("1", pot="skill:s", window=MINUTE)])
    resolver = Resolver(program([SAY], body("a", ALLOW, skills=["s"]), skills={"s": skill}))

    def said(*skills: str) -> str:
        return call(resolver.resolve("a", skills=skills, session=Session(clock=clock)))

    assert [said(), said("s"), said(), said("s")] == ["allowed", "allowed", "allowed", "budget"]


def test_a_pot_for_each_session() -> None:
    ceiling = body("ceiling", kind="ceiling", limits=[limit("1", pot="ceiling", window=MINUTE, each=["session"])])
    resolver = Resolver(program([SAY], body("a", ALLOW), body("b", ALLOW), ceiling=ceiling))
    one, other = Session(clock=clock), Session(clock=clock)
    said = [call(resolver.resolve(agent, session=session)) for agent, session in (("a", one), ("b", one), ("b", other))]
    assert said == ["allowed", "budget", "allowed"]


def test_each_delegates_session_has_its_own_pot() -> None:
    bodies = [body("a", ALLOW, delegate={"to": {"b": {}}}), body("b", ALLOW, limits=[limit("1", pot="agent:b")])]
    resolver = Resolver(program([SAY], *bodies))
    above = resolver.resolve("a", session=Session(clock=clock))
    children = [resolver.resolve("b", parent=above, session=Session(clock=clock)) for _ in range(2)]
    assert [call(child) for child in (*children, *children)] == ["allowed", "allowed", "budget", "budget"]


def test_of_two_limits_the_one_that_is_full_longer() -> None:
    limits = [limit("1", window={"kind": "rolling", "seconds": str(seconds)}) for seconds in (60, 3_600)]
    execution = run([SAY], ALLOW, limits=limits, session=Session(clock=clock))
    assert call(execution) == "allowed"
    assert execution.decide("say", {}).retry_after == 3_600.0


def test_a_pot_for_a_value_of_any_shape() -> None:
    execution = run([SAY], ALLOW, limits=[limit("1", each=["args", "x"])], session=Session(clock=clock))
    shapes: list[Any] = [[[None, True]], [[None, 1]], [[None, True]], [{"a": None}], [{"A": None}]]
    assert [call(execution, x=one) for one in shapes] == ["allowed", "allowed", "budget", "allowed", "budget"]


def test_a_narrowings_pot_is_that_of_its_session() -> None:
    resolver = Resolver(program([SAY], body("a", ALLOW)))
    once: Any = limit("1", pot="narrowing", window=MINUTE)
    narrowing = Narrowing(limits=[once])
    runs = [resolver.resolve("a", session=Session(clock=clock), narrowing=narrowing) for _ in range(2)]
    assert [call(one) for one in (*runs, *runs)] == ["allowed", "allowed", "budget", "budget"]


@pytest.mark.parametrize("value", ["5", True, [1], {"n": 1}, None])
def test_a_sum_of_what_is_no_number(value: Any) -> None:
    execution = run([SAY], ALLOW, limits=[limit("9", "sum", argument=["x"])], session=Session(clock=clock))
    assert call(execution, x=value) == "budget"
    assert call(execution, x=9) == "allowed"


# --- executions --------------------------------------------------------------------------------------------------------


def test_of_several_depths_the_least_holds() -> None:
    bodies = [
        body("a", delegate={"to": {"b": {}, "c": {}}, "depth": "3"}),
        body("n", kind="narrows", delegate={"to": {}, "depth": "1"}),
        body("b", delegate={"to": {"c": {}}}),
        body("c"),
    ]
    resolver = Resolver(program([SAY], *bodies, narrows={"n": "a"}))
    resolver.resolve("c", parent=resolver.resolve("b", parent=resolver.resolve("a")))
    with pytest.raises(Exception, match="agent `n` allows a delegation depth of 1"):
        resolver.resolve("c", parent=resolver.resolve("b", parent=resolver.resolve("n")))


def test_a_child_in_the_session_of_its_delegator() -> None:
    resolver = Resolver(program([SAY], body("a", ALLOW, delegate={"to": {"b": {}}}), body("b", ALLOW)))
    above = resolver.resolve("a", session=Session())
    assert resolver.resolve("b", parent=above, session=above.session).session.above is None
    with pytest.raises(ResolveError, match="this session stands below another than the delegator's"):
        resolver.resolve("b", parent=above, session=Session(above=Session()))
    assert resolver.resolve("b", parent=above, session=Session()).session.above is above.session


@pytest.mark.parametrize(("above", "own"), [(True, False), (False, True), (False, False), (True, True)])
def test_somebody_can_be_asked_only_if_both_sessions_say_so(above: bool, own: bool) -> None:
    resolver = Resolver(
        program([SAY], body("a", ALLOW, delegate={"to": {"b": {}}}), body("b", ALLOW, rule("ask", "0")))
    )
    parent = resolver.resolve("a", session=Session(interactive=above))
    child = resolver.resolve("b", parent=parent, session=Session(interactive=own))
    assert child.decide("say", {}).reason == ("asked" if above and own else "no-approver")
    assert parent.session.interactive is above


def test_independence_that_nobody_gave() -> None:
    resolver = Resolver(program([SAY], body("a", delegate={"to": {"b": {}}}), body("b")))
    with pytest.raises(ResolveError, match="agent `b` may not be delegated to independently"):
        resolver.resolve("b", parent=resolver.resolve("a"), independent=True)


def test_nobody_above_hears_an_answer() -> None:
    execution = run([SAY], ALLOW, session=Session(labels=["l"]))
    execution.finish()
    assert execution.session.labels == {"l"}


def test_a_narrowing_without_memory() -> None:
    compiled = program([SAY], body("a", ALLOW))
    assert body_of(Narrowing(exclude_memory=True), compiled, {}).data.get("memory") == {"read": (), "write": ()}
    assert body_of(Narrowing(), compiled, {}).data == {"kind": "narrowing", "name": "narrowing"}


def test_a_reason_without_a_note() -> None:
    assert run([SAY], rule("deny", "0")).decide("say", {}).for_person.splitlines()[-1] == "reason: not-granted"
    assert (
        run([SAY], ALLOW).decide("say", []).for_person.splitlines()[-1]
        == "reason: malformed (the arguments are not an object)"
    )


def test_a_person_sees_all_that_a_rule_on_paths_read() -> None:
    long = "/w/" + "d/" * 400 + "x"
    tools = [tool("put", schema("path", path="path", text=STRING))]
    asking = rule("ask", "0", leaf("paths", "under", "/w", each="some", grants=False))
    asked = run(tools, ALLOW, asking).decide("put", {"path": long, "text": "t"})
    assert long in asked.for_person
    plain = run(tools, ALLOW, rule("ask", "0")).decide("put", {"path": long, "text": "t"})
    assert long not in plain.for_person
