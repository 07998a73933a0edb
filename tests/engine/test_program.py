"""The compiled form: canonical bytes, digest, the file, and what damaged files come to."""

import copy
import json
import pickle
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine.programs import STRING, body, data, leaf, rule, schema, tool
from zcpolicy import CompiledError, Program, Resolver, load_compiled
from zcpolicy.exact import canonical
from zcpolicy.program import pack, unpack

NO_ORIGINS: Any = {"agents": {}, "ceiling": {}, "skills": {}}


def small(**more: Any) -> Any:
    tools = [tool("mail", schema("to", to=STRING)), tool("read", risk="read")]
    bodies = [body("a", rule("allow", "0", leaf("args.to", "like", "*@x"))), body("b", rule("allow", "0-1"))]
    return data(tools, *bodies, **more)


def built(whole: Any = None, origins: Any = None) -> Program:
    return Program.build(small() if whole is None else whole, NO_ORIGINS if origins is None else origins)


TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=8)
JSON = st.recursive(
    st.one_of(TEXT, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=4)),
)


@settings(max_examples=200, deadline=None)
@example(
    {"\U0001f600": "a", "\ufb33": "b", "\u20ac": "c", "z": "\x7f\x1f\u2028"}
)  # UTF-16 order is not code point order
@given(JSON)
def test_canonical_text_is_rfc_8785(value: Any) -> None:
    assert canonical(value).encode() == rfc8785.dumps(value)


def test_the_digest_is_of_the_canonical_bytes() -> None:
    whole = small()
    program = built(whole)
    assert program.canonical() == rfc8785.dumps(whole)
    assert program.digest == sha256(rfc8785.dumps(whole)).hexdigest()


def test_a_program_does_not_follow_the_data_it_was_built_from() -> None:
    whole = small()
    program = built(whole)
    whole["agents"]["a"]["body"]["rules"].clear()
    assert Resolver(program).decide("a", "mail", {"to": "me@x"}).effect == "allow"


def test_the_file_holds_the_same_program(tmp_path: Path) -> None:
    origins: Any = {"agents": {"a": {"rules": [[["f", "3", "allow mail"]]]}}, "ceiling": {}, "skills": {}}
    program = built(origins=origins)
    file = tmp_path / "p.zcpc"
    file.write_bytes(program.dump())
    loaded = load_compiled(file)
    assert (loaded.digest, loaded.canonical(), loaded.dump()) == (program.digest, program.canonical(), program.dump())
    assert json.loads(program.dump()).keys() == {"format", "digest", "program", "origins"}
    assert Resolver(loaded).decide("a", "mail", {"to": "me@x"}).rules[0].place == ["f", "3", "allow mail"]


def test_a_file_that_was_laid_out_anew_is_the_same_program() -> None:
    program = built()
    assert load_compiled(json.dumps(json.loads(program.dump()), indent=2).encode()).digest == program.digest


@pytest.mark.parametrize("agents", [{}, {"a": {"body": body("a"), "narrows": None}}])
def test_few_agents(agents: Any) -> None:
    program = built({**small(), "agents": agents})
    assert load_compiled(program.dump()).agents == tuple(agents)


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda file: b"", "this is not a compiled policy: not well-formed JSON"),
    "not JSON": (lambda file: b"\x00\xff", "this is not a compiled policy: not well-formed JSON"),
    "a list": (lambda file: b"[]", "this is not a compiled policy"),
    "cut off": (lambda file: file[:-30], "this is not a compiled policy: not well-formed JSON"),
    "a rule edited": (
        lambda file: file.replace(b'"allow"', b'"alloy"', 1),
        "the digest does not fit the program: the file is damaged or was edited",
    ),
    "an agent taken out": (
        lambda file: file.replace(file[file.rindex(b'"a":') : file.rindex(b'"b":')], b""),
        "the digest does not fit the program: the file is damaged or was edited",
    ),
    "another format": (
        lambda file: file.replace(b'"format":"1"', b'"format":"2"'),
        "format `2`, and this engine reads `1`: compile the policy again",
    ),
    "deep": (lambda file: b"[" * 100_000, "this is not a compiled policy: not well-formed JSON"),
    "no origins": (lambda file: b'{"digest":"","format":"1","program":{"agents":{}}}', "this is not a compiled policy"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_file_says_what_is_wrong(what: str) -> None:
    damage, message = DAMAGE[what]
    with pytest.raises(CompiledError) as caught:
        load_compiled(damage(built().dump()))
    assert str(caught.value) == message


def test_another_edition_of_the_semantics_is_refused() -> None:
    with pytest.raises(CompiledError, match="semantics `9`, and this engine has `1`"):
        load_compiled(built(small(semantics="9")).dump())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_files_are_compiled_errors_or_programs(choose: st.DataObject) -> None:
    file = bytearray(built().dump())
    for _ in range(choose.draw(st.integers(1, 4))):
        place = choose.draw(st.integers(0, len(file) - 1))
        file[place : place + choose.draw(st.integers(0, 3))] = choose.draw(st.binary(max_size=3))
    try:
        program = load_compiled(bytes(file))
    except CompiledError:
        return
    assert program.digest == built().digest  # only the origins were hit


WRONG: dict[str, Any] = {
    "a body of another shape": {"agents": {"a": {"body": [], "narrows": None}}},
    "an unknown effect": {"agents": {"a": {"body": body("a", rule("permit", "0")), "narrows": None}}},
    "tools that are not there": {"agents": {"a": {"body": body("a", rule("allow", "0-99999999999")), "narrows": None}}},
    "tools that are no numbers": {"agents": {"a": {"body": body("a", rule("allow", "x")), "narrows": None}}},
    "a condition of no kind": {"agents": {"a": {"body": body("a", rule("allow", "0", {"x": 1})), "narrows": None}}},
    "a number that is none": {"agents": {"a": {"body": body("a", rule("allow", "0", leaf("args.to", "==", {"n": "x"}))), "narrows": None}}},
    "an agent that narrows itself": {"agents": {"a": {"body": body("a", kind="narrows"), "narrows": "a"}}},
    "an agent that narrows nobody": {"agents": {"a": {"body": body("a", kind="narrows"), "narrows": "z"}}},
    "an agent without a granting body": {"agents": {"a": {"body": body("a", kind="skill"), "narrows": None}}},
    "tools of another shape": {"tools": [{"name": 1}]},
    "a schema of no kind": {"tools": [tool("mail", {"kind": "text"})]},
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_digest_does_not_vouch_for_what_is_in_the_file(what: str) -> None:
    file = built({**small(), **WRONG[what]}).dump()
    with pytest.raises(CompiledError, match=r"this is not a compiled policy|set of tools|narrows|no body that grants"):
        Resolver(load_compiled(file)).resolve("a")


def test_deep_conditions_are_refused() -> None:
    deep: Any = leaf("args.to", "==", "x")
    for _ in range(300):
        deep = {"not": deep}
    whole = {**small(), "agents": {"a": {"body": body("a", rule("allow", "0", deep)), "narrows": None}}}
    with pytest.raises(CompiledError, match="has not the shape"):
        Resolver(built(whole)).resolve("a")


def test_origins_of_another_shape_are_no_places() -> None:
    shapes: list[Any] = [[], {"rules": 5}, {"rules": [[["f"]]]}, {"rules": [[[1, 2, 3]]]}, {"rules": []}]
    for odd in shapes:
        program = built(origins={"agents": {"a": odd}, "ceiling": [], "skills": 1})
        decision = Resolver(program).decide("a", "mail", {"to": "me@x"})
        assert decision.to_json()["rules"] == [{"file": None, "line": None, "text": None, "because": None}]


@given(st.sets(st.integers(0, 60)))
def test_packed_sets(ids: set[int]) -> None:
    assert unpack(pack(ids)) == ids


@pytest.mark.parametrize(("ids", "packed"), [([], ""), ([3], "3"), ([3, 7, 8, 9], "3,7-9"), ([0, 1], "0-1")])
def test_packed_sets_in_their_spelling(ids: list[int], packed: str) -> None:
    assert pack(set(ids)) == packed


def test_sealed() -> None:
    program: Any = built()
    resolver: Any = Resolver(program)
    for one in (program, resolver, resolver.resolve("a")):
        with pytest.raises(TypeError):
            type("Mine", (one.__class__,), {})
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                attempt(one)
        with pytest.raises(AttributeError):
            one.digest = "0"
        with pytest.raises(AttributeError):
            del one.digest
    with pytest.raises(TypeError):
        type(program)()
    with pytest.raises(TypeError):
        type(resolver.resolve("a"))(resolver)
    with pytest.raises(TypeError):
        Resolver(resolver)
