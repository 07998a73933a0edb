"""SPEC 7: operands, three truths, polarity, `some` and `every`, and what a call mentions."""

from typing import Any

import pytest

from tests.engine.programs import STRING, leaf, rule, run, schema, tool
from zcpolicy import ResolveError, Session
from zcpolicy.condition import compile_condition, truth_of
from zcpolicy.operands import Call, Site

T, F, U = True, False, None
ALL_KINDS = schema(
    s=STRING, n="number", i="integer", b="boolean", p="path", u="url", sh="shell", cmd="command", any="any", o="object",
    l={"kind": "list", "item": STRING}, ps={"kind": "list", "item": {"kind": "path"}}, us={"kind": "list", "item": {"kind": "url"}},
    inner=schema(x=STRING), q={"kind": "string", "unreviewed": True},
)  # fmt: skip
CONTEXT: Any = {
    "role": STRING,
    "level": {"kind": "integer"},
    "home": {"kind": "path"},
    "team": {"kind": "list", "item": STRING},
}


def truth(
    condition: Any,
    arguments: Any,
    *,
    grants: bool = False,
    session: Session | None = None,
    what: Any = None,
    depth: int = 0,
) -> Any:
    """The truth of a condition in an allow rule (`grants`), or in one that withholds."""
    one: Any = what or tool("srv/t", ALL_KINDS, risk="low", hints={"read_only": True})
    facts = session or Session(
        cwd="/w", context={"role": "dev", "level": 3, "home": "/h", "team": ["x"]}, server_cwd={"srv": "/srv"}
    )
    node = compile_condition(condition, Site(one, "a", depth, CONTEXT, grants))
    return truth_of(node, Call(arguments, facts, facts.labels, one))


def operands(test: str, left: str, right: str, **more: Any) -> dict[str, Any]:
    return {**leaf(left, test, **more), "right": {"operand": right.split(".")}}


TRUTHS: dict[str, tuple[Any, Any, Any]] = {
    "equal": (leaf("args.s", "==", "a"), {"s": "a"}, T),
    "equal to one of them": (leaf("args.s", "==", "a", "b"), {"s": "b"}, T),
    "not equal": (leaf("args.s", "==", "a"), {"s": "A"}, F),
    "not sent": (leaf("args.s", "==", "a"), {}, U),
    "another kind": (leaf("args.s", "==", 1), {"s": "1"}, U),
    "a boolean is no number": (leaf("args.b", "==", 1), {"b": True}, U),
    "negated": (leaf("args.s", "==", "a", negate=True), {"s": "b"}, T),
    "negated and not sent": (leaf("args.s", "==", "a", negate=True), {}, U),
    "numbers are exact": (leaf("args.n", "==", {"n": "0.1"}), {"n": 0.1}, T),
    "at most": (leaf("args.n", "<=", {"n": "100"}), {"n": 100.000001}, F),
    "more than": (leaf("args.i", ">", 5), {"i": 6}, T),
    "at least": (leaf("args.i", ">=", 5), {"i": 5}, T),
    "less than": (leaf("args.i", "<", 5), {"i": 5}, F),
    "two arguments": (operands("==", "args.s", "args.q"), {"s": "a", "q": "a"}, T),
    "two arguments, one not sent": (operands("==", "args.s", "args.q"), {"s": "a"}, U),
    "two arguments, one not of this tool": (operands("==", "args.s", "args.zz"), {"s": "a"}, F),
    "two paths": (operands("==", "args.p", "session.home"), {"p": "/x/../h"}, T),
    "a path and a string": (operands("==", "args.p", "session.role"), {"p": "dev"}, U),
    "member of an argument": (operands("in", "session.role", "args.l"), {"l": ["ops", "dev"]}, T),
    "no member": (operands("in", "args.s", "session.team"), {"s": "y"}, F),
    "member of what is no list": (operands("in", "args.s", "session.role"), {"s": "dev"}, U),
    "a path among paths": (operands("in", "args.p", "args.ps"), {"p": "/a/./b", "ps": ["/c", "/a/b"]}, T),
    "not of this tool": (leaf("args.zz", "==", "a"), {}, F),
    "not of this tool, negated": (leaf("args.zz", "==", "a", negate=True), {}, T),
    "below a string": (leaf("args.s.x", "==", "a"), {"s": "a"}, U),
    "below an object that names its members": (leaf("args.inner.x", "==", "a"), {"inner": {"x": "a"}}, T),
    "not among the members named": (leaf("args.inner.y", "==", "a"), {"inner": {"x": "a"}}, F),
    "below an open object": (leaf("args.o.x.y", "==", 1), {"o": {"x": {"y": 1}}}, T),
    "below an open object, not sent": (leaf("args.o.x", "==", 1), {"o": {}}, U),
    "below anything": (leaf("args.any.x", "==", 1), {"any": [1]}, U),
    "null is absent": (leaf("args.any", "==", 1), {"any": None}, U),
    "text on a path": (leaf("args.p", "like", "*"), {"p": "/a"}, U),
    "text on a list": (leaf("args.l", "like", "*"), {"l": ["a"]}, U),
    "path test on text": (leaf("args.s", "under", "/a"), {"s": "/a"}, U),
    "glob on text": (leaf("args.s", "glob", "**/a"), {"s": "/a"}, U),
    "a domain of a path": (leaf("args.p", "in_domain", "x.org"), {"p": "x.org"}, U),
    "a network of a url": (leaf("args.u", "in_net", "10.0.0.0/8"), {"u": "10.0.0.1"}, U),
    "matches on a shell": (leaf("args.sh", "matches", ".*"), {"sh": "ls"}, U),
    "contains on a path": (leaf("args.p", "contains", "a"), {"p": "/a"}, U),
    "contains on anything": (leaf("args.any", "contains", 1), {"any": [1.0]}, T),
    "less than on a path": (leaf("args.p", "<", "/b"), {"p": "/a"}, U),
    "less than on text": (leaf("args.s", "<", "b"), {"s": "a"}, T),
    "equal to a shell text": (leaf("args.sh", "==", "ls"), {"sh": "ls"}, T),
    "a path and a number": (leaf("args.p", "==", 1), {"p": "/a"}, U),
    "shell test on text": (leaf("args.s", "runs any", "rm"), {"s": "rm"}, U),
    "shell test on another shell": (leaf("args.cmd", "runs any", "rm"), {"cmd": "echo"}, U),
    "shell test": (leaf("args.sh", "runs any", "rm", grants=False), {"sh": "rm x"}, T),
    "shell test that grants": (leaf("args.sh", "runs only", "ls ..."), {"sh": "ls -l"}, T),
    "like": (leaf("args.s", "like", "a*"), {"s": "ab"}, T),
    "like in another case": (leaf("args.s", "like", "a*"), {"s": "AB"}, U),
    "matches": (leaf("args.s", "matches", "[ab]+"), {"s": "abc"}, F),
    "a pattern that is none": (leaf("args.s", "matches", "("), {"s": "("}, U),
    "contains": (leaf("args.s", "contains", "b"), {"s": "abc"}, T),
    "a list contains": (leaf("args.l", "contains", "b"), {"l": ["a", "b"]}, T),
    "a list does not contain": (leaf("args.l", "contains", "b"), {"l": ["ab"]}, F),
    "a domain of a string": (leaf("args.s", "in_domain", "x.org"), {"s": "a.x.org"}, T),
    "a network of a string": (leaf("args.s", "in_net", "10.0.0.0/8"), {"s": "10.1.2.3"}, T),
    "the host of a url": (leaf("args.u.host", "in_domain", "x.org"), {"u": "https://X.org./a"}, T),
    "the host of a url, as text": (leaf("args.u.host", "==", "X.ORG."), {"u": "https://x.org"}, T),
    "the scheme of a url": (leaf("args.u.scheme", "==", "https"), {"u": "HTTPS://x.org"}, T),
    "the port of a url": (leaf("args.u.port", "==", 443), {"u": "https://x.org"}, T),
    "what is no url": (leaf("args.u.host", "==", "x"), {"u": "nothing"}, U),
    "a url with a user": (leaf("args.u.host", "==", "x.org"), {"u": "https://a@x.org"}, U),
    "equal urls": (leaf("args.u", "==", "https://x.org/"), {"u": "HTTPS://X.org:443"}, T),
    "text on a url": (leaf("args.u", "like", "https*"), {"u": "https://x.org"}, U),
    "a host of a string": (leaf("args.s.host", "==", "x"), {"s": "https://x"}, U),
    "has": ({"has": ["s"]}, {"s": ""}, T),
    "has not": ({"has": ["s"]}, {}, F),
    "has null": ({"has": ["any"]}, {"any": None}, F),
    "has below": ({"has": ["inner", "x"]}, {"inner": {"x": "a"}}, T),
    "has below what is no object": ({"has": ["s", "x"]}, {"s": "a"}, F),
    "a fact of the context": (leaf("session.role", "==", "dev"), {}, T),
    "a number of the context": (leaf("session.level", ">", 2), {}, T),
    "a fact that nobody declared": (leaf("session.x", "==", "a"), {}, U),
    "the directory": (leaf("session.cwd", "under", "/"), {}, T),
    "nobody is there": (leaf("session.interactive", "==", True), {}, F),
    "the agent": (leaf("agent.name", "==", "a"), {}, T),
    "its depth": (leaf("agent.depth", "==", 0), {}, T),
    "the tool": (leaf("tool.name", "==", "t"), {}, T),
    "its server": (leaf("tool.server", "==", "srv"), {}, T),
    "its class": (leaf("tool.risk", "==", "low"), {}, T),
    "its class, by rank": (leaf("tool.risk", "<", "high"), {}, T),
    "a class that is none": (leaf("tool.risk", "==", "huge"), {}, U),
    "a trusted hint": (leaf("tool.read_only", "==", True), {}, T),
    "a hint that was not given": (leaf("tool.destructive", "==", False), {}, U),
    "not": ({"not": leaf("args.s", "==", "a")}, {"s": "a"}, F),
    "not unknown": ({"not": leaf("args.s", "==", "a")}, {}, U),
    "and: FALSE decides": ({"all": [leaf("args.s", "==", "a"), leaf("args.n", "==", 1)]}, {"n": 2}, F),
    "and: UNKNOWN stays": ({"all": [leaf("args.s", "==", "a"), leaf("args.n", "==", 1)]}, {"n": 1}, U),
    "or: TRUE decides": ({"any": [leaf("args.s", "==", "a"), leaf("args.n", "==", 1)]}, {"n": 1}, T),
    "or: UNKNOWN stays": ({"any": [leaf("args.s", "==", "a"), leaf("args.n", "==", 1)]}, {"n": 2}, U),
    "some": (leaf("args.l", "==", "a", each="some"), {"l": ["b", "a"]}, T),
    "some of none": (leaf("args.l", "==", "a", each="some"), {"l": []}, F),
    "some of what is missing": (leaf("args.l", "==", "a", each="some"), {}, U),
    "some not": (leaf("args.l", "==", "a", each="some", negate=True), {"l": ["a", "a"]}, F),
    "every": (leaf("args.l", "==", "a", each="every"), {"l": ["a", "b"]}, F),
    "every of none": (leaf("args.l", "==", "a", each="every"), {"l": []}, T),
    "every of what is missing": (leaf("args.l", "==", "a", each="every"), {}, U),
    "every not": (leaf("args.l", "==", "a", each="every", negate=True), {"l": ["b", "c"]}, T),
    "every, one in another case": (leaf("args.l", "like", "a*", each="every"), {"l": ["ab", "AB"]}, U),
    "some path": (leaf("args.ps", "under", "/a", each="some"), {"ps": ["/b", "/a/b"]}, T),
    "a host of some url of a list": (leaf("args.us.host", "in_domain", "x.org", each="some"), {"us": ["https://y.z", "https://x.org"]}, T),
    "a port of every url of a list": (leaf("args.us.port", "==", 443, each="every"), {"us": ["https://y.z", "http://x.org"]}, F),
    "a host of a url of a list that cannot be read": (leaf("args.us.host", "==", "x", each="some"), {"us": ["x"]}, U),
    "a host of a list that was not sent": (leaf("args.us.host", "==", "x", each="some"), {}, U),
    "a relative path of a server": (leaf("args.ps", "under", "/srv", each="every"), {"ps": ["x"]}, T),
}  # fmt: skip


@pytest.mark.parametrize("what", TRUTHS)
def test_truths(what: str) -> None:
    condition, arguments, expected = TRUTHS[what]
    assert truth(condition, arguments) is expected


def test_an_argument_that_the_tool_does_not_have_grants_nothing() -> None:
    assert truth(leaf("args.zz", "==", "a"), {}, grants=True) is U
    assert truth({"not": leaf("args.zz", "==", "a")}, {}, grants=True) is U
    assert truth(operands("==", "args.s", "args.zz"), {"s": "a"}, grants=True) is U


def test_a_tool_of_the_host_is_of_no_server() -> None:
    assert truth(leaf("tool.server", "==", "srv"), {}, what=tool("t", schema())) is F


def test_facts_of_another_kind_are_unknown() -> None:
    for role in (None, 7, ["dev"], object()):
        assert truth(leaf("session.role", "==", "dev"), {}, session=Session(context={"role": role})) is U


def test_labels() -> None:
    assert truth({"marked": "l"}, {}, session=Session(labels=["l"])) is T
    assert truth({"marked": "l"}, {}, session=Session()) is F


# --- paths and urls of a call ------------------------------------------------------------------------------------

SECRET = leaf("paths", "glob", "**/.env", each="some", grants=False)
INSIDE = leaf("paths", "under", "/w", each="every")
OUTSIDE = leaf("paths", "under", "/w", each="every", grants=False)
EVIL = leaf("urls.host", "in_domain", "evil.test", each="some", grants=False)
PATH = schema("p", p="path")
TWO = schema("p", p="path", more="path")
UNREVIEWED = schema(q={"kind": "string", "unreviewed": True})

MENTIONED: dict[str, tuple[Any, Any, Any, bool, Any]] = {
    "a path": (PATH, {"p": "/w/.env"}, SECRET, False, T),
    "no such path": (PATH, {"p": "/w/a"}, SECRET, False, F),
    "a path deep inside": (schema(o=schema(ps={"kind": "list", "item": {"kind": "path"}})), {"o": {"ps": ["/w/.env"]}}, SECRET, False, T),
    "text is no path": (schema(s=STRING), {"s": "/w/.env"}, SECRET, False, F),
    "an unreviewed string is one": (UNREVIEWED, {"q": "/w/.env"}, SECRET, False, T),
    "a string inside anything is one": (schema(x="any"), {"x": [{"a": "/w/.env"}]}, SECRET, False, T),
    "a name inside anything is one": (schema(x="any"), {"x": {"/w/.env": "content"}}, SECRET, False, T),
    "the path of a file url": (schema(u="url"), {"u": "file:///w/.env"}, SECRET, False, T),
    "the path of a file url in text": (UNREVIEWED, {"q": "file:///w/%2Eenv"}, SECRET, False, T),
    "a word of a shell": (schema(c="shell"), {"c": "cat /w/.env"}, SECRET, False, T),
    "another shell": (schema(c="command"), {"c": "dir"}, SECRET, False, U),
    "not some, standing for granting": (PATH, {"p": "/w/a"}, {"not": SECRET}, True, T),
    "not some, of a shell": (schema(c="shell"), {"c": "ls /w"}, {"not": SECRET}, True, U),
    "not some, of an unreviewed string": (UNREVIEWED, {"q": "/w/a"}, {"not": SECRET}, True, U),
    "not some, of no paths at all": (schema(s=STRING), {"s": "a"}, {"not": SECRET}, True, T),
    "every": (PATH, {"p": "/w/a"}, INSIDE, True, T),
    "every, not all": (TWO, {"p": "/w/a", "more": "/x"}, INSIDE, True, F),
    "every, one was not sent": (TWO, {"p": "/w/a"}, INSIDE, True, U),
    "every, of a shell": (schema(c="shell"), {"c": "ls /w"}, INSIDE, True, U),
    "every, of a shell, not all": (schema(c="shell"), {"c": "ls /x"}, INSIDE, True, F),
    "every, withholding, of a shell": (schema(c="shell"), {"c": "ls /w"}, OUTSIDE, False, T),
    "every, of a tool without paths": (schema(s=STRING), {"s": "a"}, INSIDE, True, U),
    "every, of a tool with a url": (schema(u="url"), {"u": "https://x.org"}, INSIDE, True, U),
    "every, of a file url": (schema(u="url"), {"u": "file:///w/a"}, INSIDE, True, T),
    "every, of a tool without paths, elsewhere": (schema(s=STRING), {"s": "a"}, OUTSIDE, False, T),
    "every, of an empty list": (schema("ps", ps={"kind": "list", "item": {"kind": "path"}}), {"ps": []}, INSIDE, True, T),
    "a url": (schema(u="url"), {"u": "https://a.evil.test"}, EVIL, False, T),
    "a url in an unreviewed string": (UNREVIEWED, {"q": "custom+x://evil.test/a"}, EVIL, False, T),
    "a url behind a blank": (UNREVIEWED, {"q": " https://evil.test/a"}, EVIL, False, U),
    "a url in a shell": (schema(c="shell"), {"c": "curl https://evil.test"}, EVIL, False, T),
    "a url that cannot be read": (schema(u="url"), {"u": "https://a@b@c"}, EVIL, False, U),
    "text is no url": (schema(s=STRING), {"s": "https://evil.test"}, EVIL, False, F),
}  # fmt: skip


@pytest.mark.parametrize("what", MENTIONED)
def test_what_a_call_mentions(what: str) -> None:
    arguments, call, condition, grants, expected = MENTIONED[what]
    assert truth(condition, call, grants=grants, what=tool("t", arguments)) is expected


def test_a_default_that_the_tool_writes_itself_may_be_any_path() -> None:
    arguments = schema(p={"kind": "path", "default": "/w/a"})
    session = Session(interactive=True, supplies_defaults=False)
    assert (
        run([tool("t", arguments)], rule("allow", "0"), rule("deny", "0", SECRET), session=session)
        .decide("t", {})
        .reason
        == "denied"
    )


def test_a_policy_that_needs_what_a_host_never_supplies() -> None:
    asking = rule("ask", "0", {"not": leaf("session.role", "==", "dev")})
    with pytest.raises(ResolveError, match="needs `role`, which this host never supplies"):
        run([tool("t")], asking, session=Session(never=["role"]))
    run([tool("t")], asking, session=Session(never=["team"]))
