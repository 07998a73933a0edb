"""SPEC 6: what a call's arguments are, and what runs is what was judged."""

from decimal import Decimal
from typing import Any

import pytest

from tests.engine.programs import STRING, leaf, rule, run, schema, tool
from zcpolicy import Session
from zcpolicy.call import MAX_CALL_CHARACTERS, MAX_CALL_DEPTH, MAX_CALL_VALUES, Malformed, judge, read_json

ANY = {"kind": "any"}

FITS: dict[str, tuple[Any, Any, Any]] = {
    "a string": ("string", "x", "x"),
    "text of every script": ("string", "\u00e9\U0001f600", "\u00e9\U0001f600"),
    "a whole number": ("integer", 7, 7),
    "a whole number written with a point": ("integer", 1.0, 1),
    "an exact whole number": ("integer", Decimal("1E+2"), 100),
    "a number": ("number", 1.5, 1.5),
    "a boolean": ("boolean", False, False),
    "a list": ({"kind": "list", "item": STRING}, ["a"], ["a"]),
    "a tuple is a list": ({"kind": "list", "item": STRING}, ("a",), ["a"]),
    "an empty list": ({"kind": "list", "item": STRING}, [], []),
    "an open object": ({"kind": "object"}, {"a": {"b": [1]}}, {"a": {"b": [1]}}),
    "an object of members": (schema("a", a="integer"), {"a": 1}, {"a": 1}),
    "a map": ({"kind": "object", "extra": {"kind": "integer"}}, {"k": 1}, {"k": 1}),
    "anything": (ANY, [None, {"a": 1.5}], [None, {"a": 1.5}]),
    "null, where it may be": ({"kind": "string", "nullable": True}, None, None),
    "one of the values": ({"kind": "string", "enum": ["a", "b"]}, "b", "b"),
    "one of the values, as a number": ({"kind": "number", "enum": [{"n": "1"}]}, 1.0, 1.0),
}


@pytest.mark.parametrize("what", FITS)
def test_what_fits(what: str) -> None:
    kind, given, kept = FITS[what]
    assert judge(schema("x", x=kind), {"x": given}) == {"x": kept}


MISFITS: dict[str, tuple[Any, Any, str]] = {
    "a number for a string": ("string", 7, "`x` is not a string"),
    "half of a surrogate pair": ("string", "\ud800", "`x` holds half of a surrogate pair"),
    "a boolean for a number": ("integer", True, "`x` is not a number"),
    "a string for a number": ("number", "1", "`x` is not a number"),
    "not whole": ("integer", 1.5, "`x` is not a whole number"),
    "not a number": ("number", float("nan"), "`x` is not finite"),
    "infinite": ("number", float("inf"), "`x` is not finite"),
    "too long a number": ("integer", 10**1_000, "`x` is out of bounds"),
    "too long an exact number": ("number", Decimal("1E+1001"), "`x` is out of bounds"),
    "a number for a boolean": ("boolean", 1, "`x` is neither true nor false"),
    "null": ("string", None, "`x` is null"),
    "not null": ("null", 1, "`x` is not null"),
    "a string for a list": ({"kind": "list"}, "a", "`x` is not a list"),
    "an item that does not fit": ({"kind": "list", "item": STRING}, ["a", 1], "`x`[] is not a string"),
    "a list for an object": ({"kind": "object"}, [], "`x` is not an object"),
    "a member that is not named": (
        schema(a="integer"),
        {"b": 1},
        "`x` has an argument `b` that the tool does not name",
    ),
    "a member that is misspelt": (
        schema(order="integer"),
        {"ordr": 1},
        "`x` has an argument `ordr` that the tool does not name (did you mean `order`?)",
    ),
    "a member that is missing": (schema("a", a="integer"), {}, "`a` is missing"),
    "none of the values": ({"kind": "string", "enum": ["a"]}, "A", "`x` is none of the values that the tool takes"),
    "true is not one": ({"kind": "any", "enum": [{"n": "1"}]}, True, "`x` is none of the values that the tool takes"),
    "an object of Python": (ANY, object(), "`x` is not a number"),
    "bytes": ("string", b"x", "`x` is not a string"),
    "a set": (ANY, {1}, "`x` is not a number"),
    "a name that is no string": ({"kind": "object"}, {1: 1}, "a name is not a string"),
    "NaN deep inside": (ANY, [[float("nan")]], "`x`[][] is not finite"),
}


@pytest.mark.parametrize("what", MISFITS)
def test_what_does_not_fit(what: str) -> None:
    kind, given, message = MISFITS[what]
    execution = run([tool("t", schema("x", x=kind))], rule("allow", "0"))
    decision = execution.decide("t", {"x": given})
    assert (decision.effect, decision.reason, decision.note, decision.arguments) == ("deny", "malformed", message, {})


CALLS: dict[str, tuple[Any, str]] = {
    "a required argument is missing": ({}, "`to` is missing"),
    "an argument that is not named": ({"to": "a", "approved": True}, "the call has an argument `approved` that the tool does not name"),
    "a list": ([], "the arguments are not an object"),
    "nothing": (None, "the arguments are not an object"),
    "JSON that is no object": ("[]", "the arguments are not an object"),
    "the same name twice": ('{"to": "a", "to": "b"}', "an object has the same name twice"),
    "the same name twice, spelt in another way": ('{"to": "a", "t\\u006f": "b"}', "an object has the same name twice"),
    "NaN": ('{"to": NaN}', "a number is not finite"),
    "a number beyond all bounds": ('{"to": 1e999999}', "a number is out of bounds"),
    "digits beyond all bounds": ('{"to": ' + "9" * 5_000 + "}", "a number is out of bounds"),
    "half of a surrogate pair": ('{"to": "\\ud800"}', "`to` holds half of a surrogate pair"),
    "cut off": ('{"to": "a"', "the arguments are not well-formed JSON"),
    "bytes that are no UTF-8": (b'{"to": "\xff"}', "the arguments are not well-formed JSON"),
    "a byte order mark": (b'\xef\xbb\xbf{"to": "a"}', "the arguments are not well-formed JSON"),
    "too much text": ('{"to": "' + "a" * MAX_CALL_CHARACTERS + '"}', f"the arguments have more than {MAX_CALL_CHARACTERS} characters"),
    "too much of a string": ({"to": "a" * (MAX_CALL_CHARACTERS + 1)}, f"the call has more than {MAX_CALL_CHARACTERS} characters"),
    "JSON a thousand deep": ('{"more": ' + "[" * 1_000 + "]" * 1_000 + "}", "the arguments nest too deep"),
    "JSON a million deep": ("[" * 1_000_000, "the arguments nest too deep"),
}  # fmt: skip


@pytest.mark.parametrize("what", CALLS)
def test_malformed_calls(what: str) -> None:
    given, message = CALLS[what]
    execution = run([tool("t", schema("to", to=STRING, more=ANY))], rule("allow", "0"))
    decision = execution.decide("t", given)
    assert (decision.reason, decision.note) == ("malformed", message)


def test_bounds_are_where_they_are_said_to_be() -> None:
    deep: Any = "x"
    for _ in range(MAX_CALL_DEPTH - 2):
        deep = [deep]
    judge(schema(x=ANY), {"x": deep})
    with pytest.raises(Malformed, match="too deep"):
        judge(schema(x=ANY), {"x": [deep]})
    many = [0] * (MAX_CALL_VALUES - 1)
    judge(schema(x=ANY), {"x": many})
    with pytest.raises(Malformed, match=f"more than {MAX_CALL_VALUES} values"):
        judge(schema(x=ANY), {"x": [*many, 0]})


def test_a_list_that_holds_itself_is_too_deep() -> None:
    ring: list[Any] = []
    ring.append(ring)
    assert (
        run([tool("t", schema(x=ANY))], rule("allow", "0")).decide("t", {"x": ring}).note
        == "the arguments nest too deep"
    )


def test_what_runs_is_a_copy() -> None:
    given = {"x": ["a"]}
    decision = run([tool("t", schema(x=ANY))], rule("allow", "0")).decide("t", given)
    given["x"].append("b")
    assert decision.arguments == {"x": ["a"]}


def test_numbers_of_json_are_exact() -> None:
    assert read_json('{"a": 1, "b": 0.1, "c": 1e2, "d": 12345678901234567890}') == {
        "a": 1, "b": Decimal("0.1"), "c": Decimal(100), "d": 12345678901234567890,
    }  # fmt: skip
    decision = run([tool("t", schema(x="number"))], rule("allow", "0")).decide("t", '{"x": 0.10}')
    assert decision.wire() == '{"x": 0.1}'


def test_a_whole_number_runs_as_one() -> None:
    decision = run([tool("t", schema(x="integer"))], rule("allow", "0")).decide("t", '{"x": 1.0}')
    assert decision.wire() == '{"x": 1}'


DEFAULT = tool(
    "t", schema(x={"kind": "string", "default": "d"}, y=schema(z={"kind": "integer", "default": {"n": "1"}}))
)


def test_defaults_are_written_into_the_call_at_any_depth() -> None:
    execution = run([DEFAULT], rule("allow", "0", leaf("args.x", "==", "d")))
    assert execution.decide("t", {}).arguments == {"x": "d"}
    assert execution.decide("t", {"y": {}}).arguments == {"x": "d", "y": {"z": 1}}
    assert execution.decide("t", {"x": "e"}).reason == "not-granted"


def test_a_host_that_cannot_rewrite_calls_leaves_defaults_unknown() -> None:
    session = Session(interactive=True, supplies_defaults=False)
    granting = run([DEFAULT], rule("allow", "0", leaf("args.x", "==", "d")), session=session)
    withholding = run(
        [DEFAULT], rule("allow", "0"), rule("deny", "0", leaf("args.x", "==", "e", grants=False)), session=session
    )
    assert granting.decide("t", {}).reason == "not-granted"
    assert withholding.decide("t", {}).reason == "denied"
    assert granting.decide("t", {"x": "d"}).arguments == {"x": "d"}


def test_null_is_absence_for_every_test() -> None:
    arguments = schema(x={"kind": "string", "nullable": True})
    execution = run([tool("t", arguments)], rule("allow", "0"), rule("ask", "0", {"has": ["x"]}))
    assert execution.decide("t", {"x": None}).reason == "allowed"
    assert execution.decide("t", {"x": None}).arguments == {"x": None}
    assert execution.decide("t", {"x": "a"}).reason == "asked"


def test_null_is_not_the_default() -> None:
    arguments = schema(x={"kind": "string", "nullable": True, "default": "d"})
    execution = run([tool("t", arguments)], rule("allow", "0", leaf("args.x", "==", "d")))
    assert execution.decide("t", {"x": None}).reason == "not-granted"
    assert execution.decide("t", {}).reason == "allowed"


def test_arguments_beyond_those_named() -> None:
    execution = run(
        [tool("t", schema(x=STRING, extra="allow"))], rule("allow", "0"), rule("deny", "0", leaf("args.zz", "==", "a"))
    )
    assert execution.decide("t", {"zz": "a"}).reason == "denied"
    assert execution.decide("t", {"zz": "b"}).arguments == {"zz": "b"}
    assert execution.decide("t", {}).reason == "allowed"
