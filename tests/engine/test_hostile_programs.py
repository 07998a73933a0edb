"""A compiled file whose digest fits may hold anything: it is refused when it is used, or it decides; nothing else."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.programs import STRING, body, data, leaf, limit, rule, schema, tool
from zcpolicy import CompiledError, Program, ResolveError, Resolver, Session, load_compiled

EVERY = schema(
    "s", s=STRING, n="number", p="path", u="url", c="shell", l={"kind": "list", "item": STRING}, o=schema(x="any"),
    d={"kind": "integer", "default": {"n": "1"}, "enum": [{"n": "1"}, {"n": "2"}]},
)  # fmt: skip
CALL = {"s": "a", "n": 1, "p": "/a", "u": "https://x.org", "c": "ls", "l": ["a"], "o": {"x": [1]}}


def whole() -> Any:
    own = body(
        "a",
        rule("allow", "0-1"),
        rule(
            "allow",
            "0",
            {"all": [leaf("args.s", "like", "a*"), {"not": leaf("paths", "glob", "**/x", each="some")}]},
            approval=True,
        ),
        rule("deny", "0", leaf("args.n", ">", 5), because="x", unclear="ask"),
        rule("deny", "0", {"any": [leaf("args.c", "runs any", "rm"), {"marked": "l"}, {"has": ["o", "x"]}]}),
        rule("ask", "0", leaf("args.u.host", "in_domain", "evil.test", negate=True)),
        rule("ask", "0", {**leaf("session.role", "=="), "right": {"operand": ["args", "s"]}}),
        rule("mark", "0", leaf("args.s", "matches", "a.*"), label="l"),
        rule("auto_approve", "0"),
        only=[{"tools": "0-1"}],
        autonomy={"read": "allow", "low": "ask", "medium": "ask", "high": "deny"},
        limits=[
            limit("5", window={"kind": "calendar", "calendar": "day", "zone": "Europe/Berlin"}),
            limit(
                "5", "sum", argument=["n"], each=["args", "l"], window={"kind": "rolling", "seconds": "60"}, tools="0"
            ),
        ],
        connect={"servers": ["srv"], "tools": "1"},
        skills=["s"],
        delegate={"to": {"b": {"independent": True, "because": "x"}}, "depth": "2"},
        approval={"routes": ["ops"], "timeout": "60", "remember": "exact"},
        require=[{"earlier": "1", "later": "0", "within": "60", "same": [["s"]]}],
        drift={"schema": "ask"},
    )
    tools = [tool("t", EVERY), tool("srv/t", EVERY, hints={"read_only": True})]
    skills = {"s": body("s", rule("deny", "1"), kind="skill")}
    return data(
        tools, own, body("b", kind="narrows"), narrows={"b": "a"}, labels=["l"], context={"role": STRING}, skills=skills
    )


ODD = st.one_of(
    st.none(), st.booleans(), st.text(max_size=3),
    st.sampled_from(["", "0", "-1", "0-9", "x", "1e999", "args", "paths", "deny", "[", "(?", "\ud7ff", "1" * 2_000, "agent:", "Nowhere/Zone", "any", "object",
        "1.5", "mark", ["urls", "x"], [True], "0-1,0-1"]),
    st.lists(st.text(max_size=2), max_size=2), st.dictionaries(st.sampled_from(["kind", "n", "list", "to", "x"]), st.text(max_size=2), max_size=2),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    whole = value
    keys: list[Any] = [*whole] if type(value) is dict else [*range(len(whole))] if type(value) is list else []
    for key in keys:
        found += places(whole[key], (*path, key))
    return found


PLACES = places(whole())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD, st.booleans()), min_size=1, max_size=3))
def test_a_program_of_any_shape_is_refused_or_decides(changes: list[tuple[tuple[Any, ...], Any, bool]]) -> None:
    odd = copy.deepcopy(whole())
    for path, value, remove in changes:
        at = odd
        try:
            for key in path[:-1]:
                at = at[key]
            if remove:
                del at[path[-1]]
            else:
                at[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    origins: Any = {"agents": {}, "ceiling": {}, "skills": {}}
    try:
        program = load_compiled(Program.build(odd, origins).dump())
        resolver = Resolver(program, protected=["/a"])
        for agent, skills in (("a", []), ("b", ["s"])):
            run = resolver.resolve(agent, session=Session(interactive=True, history=[]), skills=skills)
            run.tools()
            for name in ("t", ("srv", "t"), "z"):
                decision = run.decide(name, CALL)
                decision.to_json(trace=True)
                if decision.effect != "deny":
                    run.permit(decision, approved=True)
    except (CompiledError, ResolveError):
        return


def changed(path: tuple[Any, ...], value: Any) -> Resolver:
    odd = copy.deepcopy(whole())
    at = odd
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    origins: Any = {"agents": {}, "ceiling": {}, "skills": {}}
    return Resolver(load_compiled(Program.build(odd, origins).dump()))


OWN = ("agents", "a", "body")
REFUSED: dict[str, tuple[tuple[Any, ...], Any]] = {
    "a depth that is no whole number": ((*OWN, "delegate", "depth"), "1.5"),
    "a mark without a label": ((*OWN, "rules", 0, "effect"), "mark"),
    "tools that are named over and over": ((*OWN, "rules", 0, "tools"), "0-1,0-1,0-1"),
}
UNKNOWN: dict[str, tuple[tuple[Any, ...], Any]] = {
    "a part that no URL has": ((*OWN, "rules", 4, "if", "left"), ["urls", "x"]),
    "a pattern that is no text": ((*OWN, "rules", 6, "if", "right"), [True]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    with pytest.raises(CompiledError):
        changed(*REFUSED[what]).resolve("a")


@pytest.mark.parametrize("what", UNKNOWN)
def test_a_test_that_cannot_be_made_is_unknown(what: str) -> None:
    run = changed(*UNKNOWN[what]).resolve("a", session=Session(interactive=True))
    assert run.decide("t", CALL).effect != "allow"
    assert run.decide("t", CALL).to_json(trace=True)
