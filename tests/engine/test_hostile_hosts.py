"""What a host hands over may be odd: names of another type, a clock that fails, a history that is none, a yes that is none."""

import enum
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from tests.engine.programs import body, leaf, limit, program, rule, run, schema, tool
from zcpolicy import Entry, FactsError, Narrowing, PermitError, ResolveError, Resolver, Session
from zcpolicy.windows import calendar

T, U = tool("t", schema(p="path", n="number")), tool("u", schema(p="path"))
ALLOW = rule("allow", "0-1")


# --- names and arguments -----------------------------------------------------------------------------------------


class Name(enum.StrEnum):
    T = "t"


class Pair(NamedTuple):
    server: str
    name: str


@pytest.mark.parametrize("name", [Name.T, Pair("s", "t")])
def test_a_name_of_a_subclass_is_answered_alike_at_first_and_later(name: Any) -> None:
    tools = [tool("t"), tool("s/t")]
    execution = run(tools, ALLOW, connect={"servers": ["s"], "tools": "1"})
    assert [execution.decide(name, {}).reason for _ in range(2)] == ["allowed"] * 2


def test_what_only_calls_itself_a_decimal_is_no_number() -> None:
    forged = type("Decimal", (), {})()
    assert run([T], ALLOW.copy() | {"tools": "0"}).decide("t", {"n": forged}).reason == "malformed"


@pytest.mark.parametrize("extra", ["deny", "allow"])
@pytest.mark.parametrize("arguments", [{}, "{}"])
def test_an_argument_that_is_required_and_not_described(extra: str, arguments: Any) -> None:
    bare: Any = {"kind": "object", "fields": {}, "required": ["x"], "extra": extra}
    assert run([tool("t", bare)], rule("allow", "0")).decide("t", arguments).reason == "malformed"


# --- the clock ---------------------------------------------------------------------------------------------------


def failing() -> float:
    raise OSError


CLOCKS: dict[str, Callable[[], Any]] = {
    "fails": failing,
    "none": lambda: None,
    "text": lambda: "noon",
    "not a number": lambda: float("nan"),
    "without end": lambda: float("inf"),
    "before all time": lambda: -1e30,
    "after the calendar": lambda: 1e18,
}
DAY = {"kind": "calendar", "calendar": "day", "zone": "Europe/Berlin"}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("window", [DAY, {"kind": "rolling", "seconds": "60"}, {"kind": "session"}])
def test_a_clock_that_does_not_tell_the_time_leaves_no_room(clock: str, window: dict[str, str]) -> None:
    session = Session(clock=CLOCKS[clock])
    execution = run([T], rule("allow", "0"), limits=[limit("1", window=window)], session=session)
    first = execution.decide("t", {})
    if first.effect == "allow":  # nothing is spent yet, whatever the time
        with pytest.raises(PermitError, match="does not tell the time"):
            execution.permit(first)
        return
    assert first.reason == "ledger-unavailable"
    assert first.to_json()["charges"] == []


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_clock_that_does_not_tell_the_time_meets_no_precondition(clock: str) -> None:
    session = Session(clock=CLOCKS[clock], history=[Entry("u", {}, at=1)])
    require = [{"earlier": "1", "later": "0", "within": "60"}]
    assert run([T, U], ALLOW, require=require, session=session).decide("t", {}).reason == "precondition"


@pytest.mark.parametrize("zone", ["America/Havana", "Atlantic/Azores"])
def test_a_midnight_that_comes_twice_begins_one_day(zone: str) -> None:
    fall_back = {
        "America/Havana": datetime(2024, 11, 3, 4, tzinfo=UTC),
        "Atlantic/Azores": datetime(2024, 10, 27, tzinfo=UTC),
    }
    midnight = fall_back[zone].timestamp()
    window: Any = {"kind": "calendar", "calendar": "day", "zone": zone}
    starts = {calendar(window, midnight + minutes * 60)[0] for minutes in range(0, 180, 10)}
    assert starts == {midnight}


# --- the history -------------------------------------------------------------------------------------------------

ENTRIES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "no tool": (None, {}, {}),
    "an object as tool": ({"a": 1}, {}, {}),
    "three names": (["a", "b", "c"], {}, {}),
    "no arguments": ("u", None, {}),
    "text as arguments": ("u", "{}", {}),
    "no time": ("u", {}, {"at": None}),
    "text as time": ("u", {}, {"at": "noon"}),
    "text as success": ("u", {}, {"ok": "no"}),
}


@pytest.mark.parametrize("what", ENTRIES)
def test_an_entry_of_another_shape(what: str) -> None:
    name, arguments, more = ENTRIES[what]
    with pytest.raises(FactsError):
        Entry(name, arguments, **more)


def test_a_history_holds_entries() -> None:
    odd: Any = ["u"]
    with pytest.raises(FactsError):
        Session(history=odd)


def test_an_earlier_call_is_held_against_this_one_whatever_it_held() -> None:
    require = [{"earlier": "1", "later": "0", "same": [["n"]]}]
    server = tool("s/u", schema(n="any"))
    pair: Any = ["s", "u"]  # as JSON writes it
    for value, reason in ((float("nan"), "precondition"), ([float("inf")], "precondition"), (1.0, "allowed")):
        session = Session(history=[Entry(pair, {"n": value})])
        execution = run(
            [T, server], rule("allow", "0"), require=require, connect={"servers": [], "tools": ""}, session=session
        )
        assert execution.decide("t", {"n": 1}).reason == reason


# --- permits, clients, sessions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["no", 1, [False], None])
def test_only_a_yes_is_a_yes(answer: Any) -> None:
    execution = run([T], rule("allow", "0", approval=True))
    with pytest.raises(PermitError):
        execution.permit(execution.decide("t", {}), approved=answer)


def test_what_is_no_decision_is_not_permitted() -> None:
    odd: Any = None
    with pytest.raises(PermitError):
        run([T], rule("allow", "0")).permit(odd)


PER_CLIENT = limit("1", each=["client"], window={"kind": "rolling", "seconds": "60"})
FAMILY = [
    body("a", ALLOW, limits=[PER_CLIENT], delegate={"to": {"b": {}}}, require=[{"earlier": "1", "later": "0"}]),
    body("b", ALLOW, delegate={"to": {"a": {}}}),
]


@pytest.mark.parametrize("client", ["", "c"])
def test_a_child_counts_for_the_client_of_those_above_it(client: str) -> None:
    resolver = Resolver(program([T, U], *FAMILY))
    above = resolver.resolve("a", session=Session(client="c"))
    child = resolver.resolve("b", session=Session(client=client), parent=above)
    child.permit(child.decide("u", {}))
    assert child.decide("u", {}).reason == "budget"
    assert above.decide("u", {}).reason == "budget"


def test_a_child_is_of_its_delegators_client() -> None:
    """Else it would spend another's budget, and read another's memory."""
    resolver = Resolver(program([T, U], *FAMILY))
    above = resolver.resolve("a", session=Session(client="c"))
    with pytest.raises(ResolveError, match="is of another client"):
        resolver.resolve("b", session=Session(client="another"), parent=above)
    given_none = Session()
    resolver.resolve("b", session=given_none, parent=above)
    assert given_none.client == "c"


def test_a_session_below_another_is_no_root() -> None:
    with pytest.raises(ResolveError, match="stands below another"):
        Resolver(program([T, U], *FAMILY)).resolve("a", session=Session(above=Session()))


def test_the_session_of_a_child_cannot_stand_above_its_delegator() -> None:
    one, two = Session(), Session()
    resolver = Resolver(program([T, U], *FAMILY))
    resolver.resolve("b", session=two, parent=resolver.resolve("a", session=one))
    with pytest.raises(ResolveError, match="is of a child of agent `a`"):
        resolver.resolve("a", session=two)
    assert (one.above, two.above) == (None, one)


# --- narrowings ----------------------------------------------------------------------------------------------------

MISSPELT: dict[Any, str] = {
    "File_Read": "did it mean `file_read`?",
    "file-raed": "did it mean `file_read`?",
    "file_read ": "did it mean `file_read`?",
    "gh/get_me": 'did it mean `("gh", "get_me")`?',
    "mcp__gh__get_me": 'did it mean `("gh", "get_me")`?',
    ("gh", "get_mee"): 'did it mean `("gh", "get_me")`?',
    "get_me": 'write `("gh", "get_me")`',
    "get-me": 'did it mean `("gh", "get_me")`?',
    ("hub", "get_me"): 'write `("gh", "get_me")`',
    ("gh", "file_read"): "write `file_read`",
    "close": 'write `("gh", "close")` or `("hub", "close")`',
    "any": "`any` is a pattern",
    "@reads": "`@reads` is a pattern",
    "file_*": "`file_*` is a pattern",
    "\x1b*": "`\\u{1b}*` is a pattern",
    "delete_all": "names `delete_all`, which is no tool of the policy",
    ("gh", "push"): "names `gh/push`, which is no tool of the policy",
    "": "names ``, which is no tool of the policy",
}
TOOLS = [tool("file_read"), tool("gh/get_me"), tool("gh/close"), tool("hub/close")]


@pytest.mark.parametrize("name", MISSPELT)
@pytest.mark.parametrize("part", ["deny", "ask", "only"])
def test_a_narrowing_that_names_no_tool_is_refused(name: Any, part: str) -> None:
    resolver = Resolver(program(TOOLS, body("a", ALLOW)))
    given: Any = {part: [name]}
    with pytest.raises(ResolveError, match=re.escape(MISSPELT[name]) + "$"):
        resolver.resolve("a", narrowing=Narrowing(**given))


def test_so_is_one_whose_limit_does() -> None:
    resolver = Resolver(program(TOOLS, body("a", ALLOW)))
    with pytest.raises(ResolveError, match=r"did it mean `file_read`\?"):
        resolver.resolve("a", narrowing=Narrowing(limits=["3 calls to file_raed per hour"]))


FLEET = body("a", rule("allow", "0-3"), connect={"servers": ["gh", "hub"], "tools": "1-3"})
LESS = body("a", rule("allow", "0-2"), connect={"servers": ["gh", "hub"], "tools": "0-2"})


def test_a_narrowing_may_name_what_an_earlier_policy_had() -> None:
    resolver = Resolver(program(TOOLS, FLEET))
    given = Narrowing(deny=["file_read"], only=["file_read", ("gh", "close")], limits=["1 calls to file_read"])
    run = resolver.resolve("a", narrowing=given)
    ticket = run.ticket()
    resolver.publish(program(TOOLS[1:], LESS))
    for one in (
        run.renewed(),
        resolver.resolve("a", narrowing=given),
        resolver.resume(ticket, lambda _id: run.session),
    ):
        assert one.tools() == (("gh", "close"),)
    another = Resolver(program(TOOLS[1:], LESS))  # as after a restart
    assert another.resume(ticket, lambda _id: run.session).tools() == (("gh", "close"),)
    with pytest.raises(ResolveError, match="names `file_read`, which is no tool of the policy"):
        another.resolve("a", narrowing=given)


def test_a_limit_of_a_narrowing_is_written_as_in_the_language() -> None:
    resolver = Resolver(program(TOOLS, FLEET))
    run = resolver.resolve("a", narrowing=Narrowing(limits=["1 calls to file_read, gh/close per hour"]))
    run.permit(run.decide("file_read", {}))
    assert [run.decide(name, {}).reason for name in ("file_read", ("gh", "close"), ("gh", "get_me"))] == [
        "budget", "budget", "allowed",
    ]  # fmt: skip
    later = resolver.resume(run.ticket(), lambda _id: run.session)
    assert later.decide(("gh", "close"), {}).reason == "budget"


@pytest.mark.parametrize(
    "limits", ["3 calls", ["3"], [""], [3], [{"amount": "3"}], {"amount": "3"}, ["1 calls to s/get_*"]]
)
def test_a_limit_that_is_none(limits: Any) -> None:
    with pytest.raises(FactsError):
        Narrowing(limits=limits)


# --- what is shown -------------------------------------------------------------------------------------------------

UNSEEN = "a\x1b[31m\x9b31m\x7f\u202e\u2028\u3164\ufe0f\U000e0101z"


def test_texts_hold_nothing_that_a_terminal_acts_on_or_nobody_sees() -> None:
    execution = run([tool("t", schema(s="string"))], rule("ask", "0"), rule("allow", "0"))
    decision = execution.decide("t", {"s": UNSEEN})
    for text in (decision.for_log, decision.for_person.replace("\n", ""), decision.wire()):
        assert text.isprintable()
        assert not any(letter in text for letter in "\u3164\ufe0f\U000e0101")
    assert json.loads(decision.wire()) == {"s": UNSEEN}
    assert json.loads(decision.for_log)["arguments"] == {"s": UNSEEN}


# --- hosts in a policy -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["B\u00fccher.de", "xn--bcher-kva.de", "[::0001]", "no host"])
def test_a_host_that_is_denied_is_denied_in_every_spelling(written: str) -> None:
    denied = rule("deny", "0", leaf("args.u.host", "==", written, grants=False))
    execution = run([tool("t", schema(u="url"))], rule("allow", "0"), denied)
    host = "[0:0::1]" if written.startswith("[") else "xn--bcher-kva.de"
    assert execution.decide("t", {"u": f"https://{host}/"}).reason == "denied"
