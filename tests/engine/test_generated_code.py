"""The generated functions decide as the plain evaluator does, whatever the schema, the conditions and the call."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine.programs import STRING, body, leaf, program, rule, tool
from tests.engine.programs import schema as object_schema
from zcpolicy import Resolver, Session
from zcpolicy.execution import plan_of

NAMES = ("a", "b", "c", "d")
TEXTS = st.sampled_from(
    [
        "",
        "a",
        "A",
        "abc",
        "ABC",
        "ab*",
        "x.org",
        "X.org",
        "a.x.org",
        "a.x.org.",
        "axorg",
        "é",
        "É",
        "a\nb",
        "a\u200bb",
        "\ud800",
        "a" * 70_000,
    ]
)
NUMBERS = st.sampled_from(
    [0, 1, -1, 7, 100, 2**53, 2**53 + 1, 10**40, 0.5, 1.0, -0.0, 1e300, float("nan"), float("inf"), True, False]
)
SCALARS = st.one_of(TEXTS, NUMBERS, st.none(), st.booleans())
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(st.sampled_from(NAMES), SCALARS, max_size=3))

PLAIN = st.sampled_from(["string", "integer", "number", "boolean", "path", "url", "shell", "command", "any", "null"])


@st.composite
def fields(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.one_of(PLAIN, st.sampled_from(["list", "object"])))
    field: dict[str, Any] = {"kind": kind}
    if kind == "list":
        field["item"] = {"kind": draw(PLAIN)}
    if kind == "object":
        field["fields"] = {name: {"kind": draw(PLAIN)} for name in draw(st.sets(st.sampled_from(NAMES), max_size=2))}
        field["extra"] = draw(st.sampled_from(["deny", "allow"]))
    if draw(st.integers(0, 4)) == 0:
        field["nullable"] = True
    if draw(st.integers(0, 5)) == 0:
        field["enum"] = draw(st.lists(st.sampled_from(["a", "abc", {"n": "1"}, True]), min_size=1, max_size=3))
    if draw(st.integers(0, 3)) == 0:
        field["default"] = draw(st.sampled_from(["a", "abc", {"n": "1"}, {"n": "1.5"}, True, {"list": ["a"]}, None]))
    return field


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    named = {name: draw(fields()) for name in draw(st.sets(st.sampled_from(NAMES), max_size=4))}
    required = sorted(draw(st.sets(st.sampled_from(sorted(named)), max_size=3))) if named else []
    return {
        "kind": "object",
        "fields": named,
        "required": required,
        "extra": draw(st.sampled_from(["deny", "deny", "allow"])),
    }


RIGHTS = {
    "==": st.sampled_from(["a", "abc", "/a", "https://x.org/", {"n": "1"}, {"n": "0.5"}, {"n": "100"}, True]),
    "<=": st.sampled_from([{"n": "1"}, {"n": "0.5"}, "abc"]),
    ">": st.sampled_from([{"n": "1"}, {"n": "99"}]),
    "like": st.sampled_from(["a*", "*c", "abc", "A*", "*", "?bc", "é", "x\\*"]),
    "matches": st.sampled_from(["a.*", "[a-c]+", "(?i)abc"]),
    "contains": st.sampled_from(["a", "b", {"n": "1"}]),
    "in_domain": st.sampled_from(["x.org", "org"]),
    "in_net": st.sampled_from(["10.0.0.0/8"]),
    "under": st.sampled_from(["/a", "/"]),
    "glob": st.sampled_from(["**/abc", "/a/*"]),
    "runs only": st.sampled_from(["ls ...", "abc"]),
    "runs any": st.sampled_from(["rm ...", "a"]),
}


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> dict[str, Any]:
    shape = draw(st.sampled_from(["leaf", "leaf", "leaf", "has", "marked", "all", "any", "not"])) if depth else "leaf"
    if shape == "has":
        return {"has": draw(st.sampled_from([["a"], ["b"], ["a", "b"], ["zz"]]))}
    if shape == "marked":
        return {"marked": draw(st.sampled_from(["l", "m"]))}
    if shape == "not":
        return {"not": draw(conditions(depth - 1))}
    if shape in ("all", "any"):
        return {shape: draw(st.lists(conditions(depth - 1), min_size=1, max_size=3))}
    test = draw(st.sampled_from(sorted(RIGHTS)))
    operands = [
        "args.a",
        "args.a",
        "args.b",
        "args.c",
        "args.d",
        "args.zz",
        "args.a.b",
        "args.a.host",
        "paths",
        "urls.host",
    ]
    left = draw(
        st.sampled_from([*operands, "tool.risk", "tool.server", "agent.depth", "session.interactive", "session.role"])
    )
    found: dict[str, Any] = {"test": test, "left": left.split("."), "grants": draw(st.booleans())}
    found["right"] = draw(st.lists(RIGHTS[test], min_size=1, max_size=2))
    if test in ("==", "<=") and draw(st.integers(0, 5)) == 0:
        found["right"] = {"operand": draw(st.sampled_from([["args", "b"], ["args", "zz"], ["session", "role"]]))}
    if left in ("paths", "urls.host") or draw(st.integers(0, 5)) == 0:
        found["each"] = draw(st.sampled_from(["some", "every"]))
    if draw(st.integers(0, 4)) == 0:
        found["negate"] = True
    return found


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    effect = draw(st.sampled_from(["allow", "allow", "ask", "deny", "auto_approve"]))
    made = rule(effect, "0", draw(st.one_of(st.none(), conditions(), conditions(), conditions())))
    if effect == "deny" and draw(st.booleans()):
        made["unclear"] = "ask"
    if effect == "allow" and draw(st.booleans()):
        made["approval"] = True
    return made


CALLS = st.one_of(
    st.dictionaries(st.sampled_from([*NAMES, "e"]), VALUES, max_size=4),
    VALUES,
    st.sampled_from(['{"a": 1}', '{"a": 1, "a": 2}', "{", "[" * 5_000]),
)


ALMOST: Any = {
    "kind": "object",
    "fields": {"a": {"kind": "any", "nullable": True, "default": "a"}},
    "required": [],
    "extra": "deny",
}


@settings(max_examples=300, deadline=None)
@example(ALMOST, [], [{"b": None}], True, False)  # an argument that is not there is not one that is null
@given(schemas(), st.lists(rules(), max_size=6), st.lists(CALLS, min_size=1, max_size=6), st.booleans(), st.booleans())
def test_generated_and_plain_agree(schema: Any, said: Any, calls: Any, writes: bool, marked: bool) -> None:
    compiled = program(
        [tool("t", schema)],
        body("a", *said, autonomy={"read": "allow", "low": "ask", "medium": "ask", "high": "deny"}),
        labels=["l"],
    )
    session = Session(interactive=True, supplies_defaults=writes, labels=["l"] if marked else [], cwd="/a")
    run = Resolver(compiled).resolve("a", session=session)
    shown = run.tools()
    for call in calls:
        decided = run.decide("t", call)
        plan = plan_of(run, "t")
        assert plan is not None
        plain = plan.slowly(call, run)
        assert (decided.effect, decided.reason, decided.rules, decided.note) == (
            plain.effect, plain.reason, plain.rules, plain.note,
        )  # fmt: skip
        assert repr(sorted(decided.arguments.items())) == repr(sorted(plain.arguments.items()))
        assert decided.effect == "deny" or "t" in shown, "tools() hid a callable tool"
        if decided.effect != "deny":
            again = run.decide("t", decided.arguments)
            assert (again.effect, again.reason) == (decided.effect, decided.reason), "what runs is not what was judged"
        assert decided.to_json(trace=True)["effect"] == decided.effect


EDGES: dict[str, list[Any]] = {
    "string": [
        "a",
        "A",
        "ab",
        "AB",
        "abc",
        "a.x.org",
        "A.X.ORG",
        "x.org.",
        "xx.org",
        "a\nb",
        "a\u200bb",
        "\u00e9",
        "",
        None,
        1,
    ],
    "integer": [0, 1, 2, 2**53, 1.0, 1.5, True, None, "1"],
    "number": [0, 1, 0.5, 1.0, 1.5, 2**60, float("nan"), True, None, "1"],
    "boolean": [True, False, 0, 1, None, "true"],
}
INLINE = [
    ("string", "==", ["a"]),
    ("string", "==", ["a", "abc"]),
    ("string", "like", ["a*"]),
    ("string", "like", ["*B", "abc"]),
    ("string", "like", ["a?"]),
    ("string", "in_domain", ["x.org"]),
    ("integer", "<=", [1]),
    ("integer", "==", [1]),
    ("integer", "==", [0, 2]),
    ("number", ">", [0, 1]),
    ("number", "==", [1]),
    ("number", "<", [{"n": "1.5"}]),
    ("boolean", "==", [True]),
    ("boolean", "==", [True, False]),
]


@pytest.mark.parametrize(("kind", "test", "right"), INLINE)
def test_each_inline_test_on_every_edge(kind: str, test: str, right: list[Any]) -> None:
    """Each in every place of a policy: granting, withholding, negated, of a required and of an optional argument."""
    for required in (True, False):
        arguments = object_schema(*(["a"] if required else []), a=kind, b=STRING)
        for grants in (True, False):
            for negate in (True, False):
                one = leaf("args.a", test, *right, grants=grants, negate=negate)
                for condition in (one, {"not": one}, {"all": [one, {"has": ["b"]}]}, {"any": [{"has": ["b"]}, one]}):
                    _agree_on(arguments, condition, EDGES[kind])


def test_policies_of_any_size_decide_alike() -> None:
    """Deep and wide conditions, and many of them: the plain evaluator takes over where generated code would be too much."""
    deep: Any = leaf("args.a", "==", "x")
    for depth in range(90):
        deep = (
            {"not": deep}
            if depth % 3
            else {"all": [deep, {"any": [deep, {"has": ["a"]}]}]}
            if depth < 12
            else {"all": [deep]}
        )
    _agree_on(object_schema(a=STRING), deep, ["x", "y"])
    _agree_on(object_schema(a=STRING), {"any": [leaf("args.a", "==", f"{n}") for n in range(5_000)]}, ["4999", "y"])
    many = [rule("allow", "0", leaf("args.a", "==", f"{n}")) for n in range(1_000)]
    run = Resolver(program([tool("t", object_schema(a=STRING))], body("a", *many))).resolve("a")
    assert [run.decide("t", {"a": text}).effect for text in ("999", "1000")] == ["allow", "deny"]
    wide = object_schema(**{f"f{n}": "string" for n in range(200)}, a=STRING)
    _agree_on(wide, leaf("args.a", "like", "x*"), ["x", "y"])


def _agree_on(arguments: Any, condition: Any, edges: list[Any]) -> None:
    said = [
        rule("allow", "0"),
        rule("deny", "0", condition, unclear="ask"),
        rule("ask", "0", condition),
        rule("allow", "0", condition),
    ]
    run = Resolver(program([tool("t", arguments)], body("a", *said))).resolve("a", session=Session(interactive=True))
    plan = plan_of(run, "t")
    assert plan is not None
    for edge in edges:
        for call in ({"a": edge}, {"a": edge, "b": "x"}, {"b": "x"}, {}):
            decided = run.decide("t", call)
            plain = plan.slowly(call, run)
            assert decided.verdict.bits == plain.verdict.bits, (condition, call)
            assert decided.reason == plain.reason
