"""SPEC 4 and 5: what one body says, the minimum of all bodies, and what a deny is called."""

from typing import Any

import pytest

from tests.engine.programs import STRING, body, leaf, limit, program, rule, run, schema, tool
from zcpolicy import Narrowing, Resolver, Session

MAIL = tool("mail", schema("to", to=STRING))
HIGH = tool("mail", schema("to", to=STRING), risk="high")
GET = tool("gh/get", risk="read")
TO_X = leaf("args.to", "like", "*@x")
UNKNOWN = leaf("session.role", "==", "x")  # no such fact
FALSE = leaf("args.to", "==", "nobody")
ALLOW = rule("allow", "0")
SUPERVISED = {"read": "allow", "low": "ask", "medium": "ask", "high": "ask"}
READONLY = {"read": "allow", "low": "deny", "medium": "deny", "high": "deny"}

ONE_BODY: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "nothing said": ([], {}, "not-granted"),
    "allowed": ([ALLOW], {}, "allowed"),
    "allowed if TRUE": ([rule("allow", "0", TO_X)], {}, "allowed"),
    "not allowed if FALSE": ([rule("allow", "0", FALSE)], {}, "not-granted"),
    "not allowed if UNKNOWN": ([rule("allow", "0", UNKNOWN)], {}, "not-granted"),
    "deny beats allow": ([ALLOW, rule("deny", "0")], {}, "denied"),
    "denied if UNKNOWN": ([ALLOW, rule("deny", "0", UNKNOWN)], {}, "denied"),
    "not denied if FALSE": ([ALLOW, rule("deny", "0", FALSE)], {}, "allowed"),
    "unclear ask: TRUE denies": ([ALLOW, rule("deny", "0", TO_X, unclear="ask")], {}, "denied"),
    "unclear ask: UNKNOWN asks": ([ALLOW, rule("deny", "0", UNKNOWN, unclear="ask")], {}, "asked"),
    "unclear ask: FALSE is nothing": ([ALLOW, rule("deny", "0", FALSE, unclear="ask")], {}, "allowed"),
    "ask grants nothing": ([rule("ask", "0")], {}, "not-granted"),
    "ask": ([ALLOW, rule("ask", "0")], {}, "asked"),
    "asks if UNKNOWN": ([ALLOW, rule("ask", "0", UNKNOWN)], {}, "asked"),
    "with approval": ([rule("allow", "0", approval=True)], {}, "asked"),
    "with approval beside a plain allow": ([rule("allow", "0", approval=True), ALLOW], {}, "allowed"),
    "with approval beside a plain allow that is not TRUE": (
        [rule("allow", "0", approval=True), rule("allow", "0", FALSE)], {}, "asked",
    ),
    "outside an only": ([ALLOW], {"only": [{"tools": ""}]}, "outside-only"),
    "inside an only": ([ALLOW], {"only": [{"tools": "0"}]}, "allowed"),
    "several only intersect": ([ALLOW], {"only": [{"tools": "0"}, {"tools": ""}]}, "outside-only"),
    "a cap that asks": ([ALLOW], {"autonomy": SUPERVISED}, "asked"),
    "a cap that asks, waived": ([ALLOW, rule("auto_approve", "0")], {"autonomy": SUPERVISED}, "allowed"),
    "a waiver must be TRUE": ([ALLOW, rule("auto_approve", "0", UNKNOWN)], {"autonomy": SUPERVISED}, "asked"),
    "a waiver does not lift an ask": ([ALLOW, rule("ask", "0"), rule("auto_approve", "0")], {"autonomy": SUPERVISED}, "asked"),
    "a waiver does not lift with approval": ([rule("allow", "0", approval=True), rule("auto_approve", "0")], {}, "asked"),
    "a waiver grants nothing": ([rule("auto_approve", "0")], {}, "not-granted"),
    "a cap that denies": ([ALLOW, rule("auto_approve", "0")], {"autonomy": READONLY}, "autonomy"),
    "approval none": ([ALLOW, rule("ask", "0")], {"approval": {"none": True}}, "no-approver"),
    "approval none, nobody asked": ([ALLOW], {"approval": {"none": True}}, "allowed"),
    "a limit of nothing": ([ALLOW], {"limits": [limit("0")]}, "budget"),
    "a limit that asks first": ([rule("allow", "0", approval=True)], {"limits": [limit("0")]}, "budget"),
    "the first reason is the name": ([rule("deny", "0")], {"only": [{"tools": ""}], "autonomy": READONLY}, "not-granted"),
    "denied before autonomy": ([ALLOW, rule("deny", "0")], {"autonomy": READONLY}, "denied"),
    "outside before denied": ([ALLOW, rule("deny", "0")], {"only": [{"tools": ""}]}, "outside-only"),
}  # fmt: skip


@pytest.mark.parametrize("case", ONE_BODY)
def test_one_body(case: str) -> None:
    rules, parts, reason = ONE_BODY[case]
    decision = run([MAIL], *rules, **parts).decide("mail", {"to": "me@x"})
    assert decision.reason == reason
    assert decision.effect == {"allowed": "allow", "asked": "ask"}.get(reason, "deny")


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "says nothing": ({}, "allowed"),
    "denies": ({"rules": [rule("deny", "0")]}, "denied"),
    "asks": ({"rules": [rule("ask", "0")]}, "asked"),
    "asks, and the waiver is another body's": ({"autonomy": SUPERVISED}, "asked"),
    "caps": ({"autonomy": READONLY}, "autonomy"),
    "leaves out": ({"only": [{"tools": ""}]}, "outside-only"),
    "asks nobody": ({"approval": {"none": True}, "rules": [rule("ask", "0")]}, "no-approver"),
    "limits": ({"limits": [limit("0", pot="ceiling")]}, "budget"),
    "requires": ({"require": [{"earlier": "0", "later": "0"}]}, "precondition"),
}


@pytest.mark.parametrize("kind", ["ceiling", "skill", "narrows"])
@pytest.mark.parametrize("case", OTHERS)
def test_every_other_body_only_withholds(kind: str, case: str) -> None:
    said, reason = OTHERS[case]
    other = body("other", kind=kind, **said)
    own = body("a", ALLOW, rule("auto_approve", "0"), autonomy={**SUPERVISED, "medium": "allow"}, skills=["other"])
    if kind == "narrows":
        resolver = Resolver(program([MAIL], own, other, narrows={"other": "a"}))
        execution = resolver.resolve("other", session=Session(interactive=True))
    else:
        head = {"skills": {"other": other}} if kind == "skill" else {"ceiling": {**other, "name": "ceiling"}}
        resolver = Resolver(program([MAIL], own, **head))
        skills = ["other"] if kind == "skill" else []
        execution = resolver.resolve("a", session=Session(interactive=True), skills=skills)
    assert execution.decide("mail", {"to": "me@x"}).reason == reason


NARROWINGS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "allowed"),
    "only it": ({"only": ["mail"]}, "allowed"),
    "only another": ({"only": ["read"]}, "outside-only"),
    "an empty only is nothing at all": ({"only": []}, "outside-only"),
    "deny": ({"deny": ["mail"]}, "denied"),
    "deny of the same name on a server": ({"deny": [("gh", "mail")]}, "allowed"),
    "ask": ({"ask": ["mail"]}, "asked"),
    "readonly": ({"autonomy": "readonly"}, "autonomy"),
    "supervised": ({"autonomy": "supervised"}, "asked"),
    "full": ({"autonomy": "full"}, "allowed"),
    "a class": ({"autonomy": {**SUPERVISED, "medium": "deny"}}, "autonomy"),
    "a limit": ({"limits": [limit("0", pot="narrowing")]}, "budget"),
}


@pytest.mark.parametrize("case", NARROWINGS)
def test_the_hosts_narrowing(case: str) -> None:
    said, reason = NARROWINGS[case]
    others = [tool("read"), tool("gh/mail")]
    resolver = Resolver(program([MAIL, *others], body("a", ALLOW)))
    execution = resolver.resolve("a", session=Session(interactive=True), narrowing=Narrowing(**said))
    assert execution.decide("mail", {"to": "me@x"}).reason == reason


ASKING: dict[str, tuple[bool, dict[str, Any], str]] = {
    "a person is there": (True, {}, "asked"),
    "nobody is there": (False, {}, "no-approver"),
    "nobody is there, a route is": (False, {"approval": {"routes": ["ops"]}}, "asked"),
    "nobody is there, another route is": (False, {"approval": {"fallback": ["ops"]}}, "asked"),
    "approval none beats a route": (False, {"approval": {"routes": ["ops"], "none": True}}, "no-approver"),
}


@pytest.mark.parametrize("case", ASKING)
def test_somebody_has_to_be_there(case: str) -> None:
    interactive, said, reason = ASKING[case]
    execution = run([MAIL], ALLOW, rule("ask", "0"), session=Session(interactive=interactive), **said)
    assert execution.decide("mail", {"to": "me@x"}).reason == reason


def test_a_person_who_leaves_is_not_there() -> None:
    execution = run([MAIL], ALLOW, rule("ask", "0"))
    assert execution.decide("mail", {"to": "x"}).reason == "asked"
    execution.session.interactive = False
    assert execution.decide("mail", {"to": "x"}).reason == "no-approver"


CONNECTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "connected": ({"servers": ["gh"], "tools": "0"}, "allowed"),
    "its server is connected, it is not in the bundle": ({"servers": ["gh"], "tools": ""}, "not-connected"),
    "none": ({"servers": [], "tools": ""}, "not-connected"),
}


@pytest.mark.parametrize("case", CONNECTIONS)
def test_connections(case: str) -> None:
    said, reason = CONNECTIONS[case]
    assert run([GET], ALLOW, connect=said).decide(("gh", "get"), {}).reason == reason
    assert run([MAIL], ALLOW, connect={"servers": [], "tools": ""}).decide("mail", {"to": ""}).reason == "allowed"


DRIFT: dict[str, tuple[str, dict[str, Any], str]] = {
    "a description, by default": ("description", {}, "asked"),
    "a schema, by default": ("schema", {}, "drift"),
    "a launch, by default": ("launch", {}, "drift"),
    "a schema, allowed": ("schema", {"drift": {"schema": "allow"}}, "allowed"),
    "a description, denied": ("description", {"drift": {"description": "deny"}}, "drift"),
}


@pytest.mark.parametrize("case", DRIFT)
def test_drift(case: str) -> None:
    kind, said, reason = DRIFT[case]
    facts: Any = {"mail": kind}
    execution = run([MAIL], ALLOW, session=Session(interactive=True, drift=facts), **said)
    assert execution.decide("mail", {"to": ""}).reason == reason


def test_names_that_are_no_tools() -> None:
    execution = run([MAIL, GET], ALLOW)
    said = {
        name: execution.decide(name, {}).reason
        for name in ("Mail", "mail ", "mail\n", "m\u0430il", "mai\u0301l", "\u043f", "", "gh/get")
    }
    assert said == {
        "Mail": "unknown-tool", "mail ": "not-canonical", "mail\n": "not-canonical", "m\u0430il": "not-canonical",
        "mai\u0301l": "not-canonical", "\u043f": "unknown-tool", "": "not-canonical", "gh/get": "unknown-tool",
    }  # fmt: skip
    odd_names: list[Any] = [None, 7, [], ("gh",), ("gh", "get", "x"), ("gh", 7), {"a": 1}, b"mail"]
    for odd in odd_names:
        assert execution.decide(odd, {}).reason == "unknown-tool"
    assert execution.decide(("gh", "g\u0435t"), {}).reason == "not-canonical"


def test_an_agent_that_is_not_there() -> None:
    decision = Resolver(program([MAIL], body("a", ALLOW))).decide("b", "mail", {})
    assert (decision.effect, decision.reason, decision.arguments) == ("deny", "unknown-agent", {})
    assert decision.to_json(trace=True)["reason"] == "unknown-agent"


def test_malformed_comes_before_every_rule() -> None:
    assert run([MAIL], rule("deny", "0")).decide("mail", {}).reason == "malformed"


def test_order_and_duplication_decide_nothing() -> None:
    rules = [rule("deny", "0", TO_X), ALLOW, rule("ask", "0"), ALLOW]
    for turned in (rules, rules[::-1]):
        assert run([MAIL], *turned).decide("mail", {"to": "me@x"}).reason == "denied"
        assert run([MAIL], *turned).decide("mail", {"to": "me@y"}).reason == "asked"


def test_the_rules_that_decided() -> None:
    execution = run([MAIL], ALLOW, rule("deny", "0", TO_X, because="not there"), rule("deny", "0", FALSE, because="no"))
    decision = execution.decide("mail", {"to": "me@x"})
    assert [one.because for one in decision.rules] == ["not there"]
    assert [one.index for one in execution.decide("mail", {"to": "me@y"}).rules] == [0]


STATEMENTS: dict[str, tuple[list[Any], dict[str, Any], list[str]]] = {
    "autonomy that denies": ([ALLOW], {"autonomy": READONLY}, ["autonomy"]),
    "autonomy that asks": ([ALLOW], {"autonomy": SUPERVISED}, ["autonomy"]),
    "a waiver": ([ALLOW, rule("auto_approve", "0")], {"autonomy": SUPERVISED}, ["rules", "rules"]),
    "a waiver of nothing": ([ALLOW, rule("auto_approve", "0")], {}, ["rules"]),
    "only": ([ALLOW], {"only": [{"tools": ""}]}, ["only"]),
    "only and deny": ([ALLOW, rule("deny", "0")], {"only": [{"tools": ""}]}, ["only", "rules"]),
    "require": ([ALLOW], {"require": [{"earlier": "0", "later": "0"}]}, ["require"]),
    "approval none": ([ALLOW, rule("ask", "0")], {"approval": {"none": True}}, ["rules", "approval"]),
    "with approval": ([rule("allow", "0", approval=True)], {}, ["rules"]),
    "unclear": ([ALLOW, rule("deny", "0", UNKNOWN, unclear="ask")], {}, ["rules"]),
    "a limit": ([ALLOW], {"limits": [limit("0")]}, ["limits"]),
    "nothing": ([], {}, []),
}


@pytest.mark.parametrize("what", STATEMENTS)
def test_the_statements_behind_an_answer(what: str) -> None:
    rules, parts, statements = STATEMENTS[what]
    decision = run([MAIL], *rules, **parts).decide("mail", {"to": "me@x"})
    assert [one.part for one in decision.rules] == statements
    facts: Any = {"mail": "schema"}
    drifted = run([MAIL], ALLOW, session=Session(interactive=True, drift=facts), drift={"schema": "ask"}).decide(
        "mail", {"to": ""}
    )
    assert [one.part for one in drifted.rules] == ["drift"]


SHOWN: dict[str, tuple[list[Any], dict[str, Any], Session, bool]] = {
    "allowed": ([ALLOW], {}, Session(), True),
    "allowed for some arguments": ([rule("allow", "0", TO_X)], {}, Session(), True),
    "denied for some arguments": ([ALLOW, rule("deny", "0", TO_X)], {}, Session(), True),
    "not allowed": ([], {}, Session(), False),
    "denied": ([ALLOW, rule("deny", "0")], {}, Session(), False),
    "outside": ([ALLOW], {"only": [{"tools": ""}]}, Session(), False),
    "capped": ([ALLOW], {"autonomy": READONLY}, Session(), False),
    "denied under a label that is there": ([ALLOW, rule("deny", "0", {"marked": "l"})], {}, Session(labels=["l"]), False),
    "denied under a label that is not there": ([ALLOW, rule("deny", "0", {"marked": "l"})], {}, Session(), True),
    "denied for its name": ([ALLOW, rule("deny", "0", leaf("tool.name", "like", "m*"))], {}, Session(), False),
    "denied for an argument that it does not have": ([ALLOW, rule("deny", "0", leaf("args.zz", "==", "a"))], {}, Session(), True),
    "denied if it names the agent": (
        [ALLOW, rule("deny", "0", {**leaf("agent.name", "=="), "right": {"operand": ["args", "to"]}})], {}, Session(), True,
    ),
    "allowed for an argument that it does not have": ([rule("allow", "0", leaf("args.zz", "==", "a"))], {}, Session(), False),
    "denied for secrets, and it has no paths": (
        [ALLOW, rule("deny", "0", leaf("paths", "glob", "**/.env", each="some", grants=False))], {}, Session(), True,
    ),
    "allowed inside a folder, and it has no paths": (
        [rule("allow", "0", leaf("paths", "under", "/w", each="every"))], {}, Session(), False,
    ),
    "asked, nobody is there": ([ALLOW, rule("ask", "0")], {}, Session(), False),
    "asked": ([ALLOW, rule("ask", "0")], {}, Session(interactive=True), True),
    "asked for some arguments": ([ALLOW, rule("ask", "0", TO_X)], {}, Session(), True),
    "a limit of nothing": ([ALLOW], {"limits": [limit("0")]}, Session(), False),
}  # fmt: skip


@pytest.mark.parametrize("case", SHOWN)
def test_tools_that_may_be_shown(case: str) -> None:
    rules, parts, session, shown = SHOWN[case]
    assert run([MAIL], *rules, session=session, **parts).tools() == (("mail",) if shown else ())


def test_protected_files() -> None:
    tools = [
        tool("put", schema("path", path="path")),
        tool("see", schema("path", path="path"), risk="read"),
        tool("sh", schema("command", command="command")),
    ]
    resolver = Resolver(program(tools, body("a", rule("allow", "0-2"))), protected=["/etc/p.zcpolicy"])
    execution = resolver.resolve("a", session=Session(interactive=True, cwd="/etc"))
    said = [
        execution.decide("put", {"path": path}).reason
        for path in ("/etc/p.zcpolicy", "p.zcpolicy", "/etc/x/../P.zcpolicy", "/etc/q")
    ]
    assert said == ["protected", "protected", "asked", "allowed"]  # another case may be the same file
    assert execution.decide("see", {"path": "/etc/p.zcpolicy"}).reason == "allowed"
    assert execution.decide("sh", {"command": "anything"}).reason == "asked"
    assert (
        Resolver(resolver.program, protected=["/etc/p"]).resolve("a").decide("sh", {"command": "x"}).reason
        == "no-approver"
    )
