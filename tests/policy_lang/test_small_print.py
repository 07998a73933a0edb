"""Small print of SPEC 2, 3, 4 and 12: where leaving out one branch of names or kinds would change what is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from policy_lang.catalog.values import fits
from policy_lang.compile import compile_policy, compile_text
from policy_lang.diagnostics import Diagnostic
from policy_lang.kinds.declared import show_kind
from policy_lang.kinds.operands import argument
from policy_lang.kinds.refine import refined_kind
from policy_lang.testing import run_tests
from tests.policy_lang.bound_case import said
from zcpolicy import Decision, Resolver, Session

HEAD = """zcpolicy 1
tool read(path: path, to?: path) risk read
tool say(text: string, n?: number, i?: integer, many?: list<string>, any?: any, o?: object) risk read
tool fetch(url: url, urls?: list<url>) risk low
tool sh(command: shell) risk high
tool power(command: command) risk high
tool gh/get() risk read
server gh {}
bundle forge { server gh }
context { role: string, level: integer }
agent a { autonomy full; allow read, say, fetch }
"""


def findings(text: str) -> list[Diagnostic]:
    return [one for one in compile_text(HEAD + text).diagnostics if one.severity == "error"]


ERRORS: dict[str, tuple[str, str, str]] = {
    # names and bodies
    "a ceiling connects once": ("ceiling { connect forge; connect none }", "ZC2113", "connect none"),
    "a profile counts": ("profile p { memory none } agent b { use p; memory none; allow say }", "ZC2113", "memory none"),
    "a delegation cannot stand where one narrows": ("agent n narrows a { delegate to a }", "ZC2111", "delegate to a"),
    "a waiver cannot stand in a ceiling": ("ceiling { auto_approve say }", "ZC2111", "auto_approve say"),
    "a granting profile of a profile": (
        "profile p { allow say } profile q { use p } agent n narrows a { deny say; use q }", "ZC2112", "use q",
    ),
    "a pattern of a bundle that fits nothing": ("bundle b { server gh only push_* }", "ZC2101", "push_*"),
    "a tool of a bundle that is not there": ("bundle b { server gh except got }", "ZC2101", "got"),
    "a file name that is none": ('import "a\\u0000b"', "ZC2003", '"a\\u0000b"'),
    "groups in a circle of three": ("group x = @y\ngroup y = @z\ngroup z = @x", "ZC2108", "@y"),
    # kinds of defaults
    "a null default of a string": ("tool t(x?: string = null)", "ZC2201", "null"),
    "a list of other items": ('tool t(x?: list<integer> = [1, "a"])', "ZC2201", '[1, "a"]'),
    "a list for a string": ('tool t(x?: string = ["a"])', "ZC2201", '["a"]'),
    "a fraction for an integer": ("tool t(x?: integer = 1.5)", "ZC2201", "1.5"),
    "text for a boolean": ('tool t(x?: boolean = "true")', "ZC2201", '"true"'),
    "an object for a list": ("tool t(x?: list<string> = {})", "ZC2201", "{}"),
    # the right side
    "a relative path": ('agent b { allow read when args.path == "w/a" }', "ZC2201", '"w/a"'),
    "a url without a scheme": ('agent b { allow fetch when args.url == "x.org" }', "ZC2201", '"x.org"'),
    "a relative prefix": ('agent b { allow read when args.path under "w" }', "ZC2208", '"w"'),
    "a relative pattern": ('agent b { allow read when args.path glob "*.env" }', "ZC2208", '"*.env"'),
    "a domain that is none": ('agent b { allow fetch when args.url.host in_domain "x org" }', "ZC2208", '"x org"'),
    "a network that is none": ('agent b { allow fetch when args.url.host in_net "10.0.0.0/33" }', "ZC2208", '"10.0.0.0/33"'),
    "an expression that is none": ('agent b { allow say when args.text matches r"(" }', "ZC2208", 'r"("'),
    "a wildcard in a granted command": ('agent b { allow sh when args.command runs only ["* x"] }', "ZC2208", '"* x"'),
    "a number as a pattern": ("agent b { allow say when args.text like 7 }", "ZC2208", "7"),
    "a number in a string": ("agent b { allow say when args.text contains 7 }", "ZC2201", "7"),
    "a number in a list of strings": ("agent b { allow say when args.many contains 7 }", "ZC2201", "7"),
    "a fraction for an integer of a test": ("agent b { allow say when args.i == 1.5 }", "ZC2201", "1.5"),
    "an order of integers and text": ('agent b { allow say when args.i >= "3" }', "ZC2201", '"3"'),
    "at most, of integers and text": ('agent b { allow say when args.i <= "3" }', "ZC2201", '"3"'),
    "text as a class": ("agent b { deny say when session.level == session.role }", "ZC2201", "session.level == session.role"),
    "all paths on the right": ("agent b { deny read when args.path == paths }", "ZC2201", "paths"),
    "an operand of a pattern": ("agent b { deny say when args.text like session.role }", "ZC2201", "session.role"),
    "member of what is no list": ("agent b { deny say when args.text in session.role }", "ZC2201", "args.text in session.role"),
    "member of a list of another kind": ("agent b { deny say when args.n in args.many }", "ZC2201", "args.n in args.many"),
    "a fact on the right that nobody declared": ("agent b { deny say when args.text == session.rule }", "ZC2207", "session.rule"),
    "an argument on the right that is not there": ("agent b { deny say when args.text == args.txt }", "ZC2202", "args.txt"),
    "a list in a list": ('agent b { allow say when args.text in [["a"]] }', "ZC2201", '["a"]'),
    # the left side
    "a field of an agent": ('agent b { allow say when agent.nme == "b" }', "ZC2207", "agent.nme"),
    "below a field of an agent": ('agent b { allow say when agent.name.x == "b" }', "ZC2207", "agent.name.x"),
    "below a field of a tool": ('agent b { allow say when tool.name.x == "b" }', "ZC2207", "tool.name.x"),
    "a part of urls that is none": ('agent b { allow fetch when every urls.path == "/" }', "ZC2207", "urls.path"),
    "below a part of urls": ('agent b { allow fetch when every urls.host.x == "/" }', "ZC2207", "urls.host.x"),
    "a part of paths": ('agent b { allow read when every paths.host == "/" }', "ZC2207", "paths.host"),
    "a part of a list of strings": ('agent b { allow say when some args.many.host == "x" }', "ZC2201", 'some args.many.host == "x"'),
    "a part of a url that is none": ('agent b { allow fetch when args.url.path == "x" }', "ZC2202", "args.url.path"),
    "an order of paths": ('agent b { allow read when args.path < "/b" }', "ZC2201", 'args.path < "/b"'),
    "an order of paths, at most": ('agent b { allow read when args.path <= "/b" }', "ZC2201", 'args.path <= "/b"'),
    "an order of paths, more": ('agent b { allow read when args.path > "/b" }', "ZC2201", 'args.path > "/b"'),
    "an order of paths, at least": ('agent b { allow read when args.path >= "/b" }', "ZC2201", 'args.path >= "/b"'),
    # limits and preconditions
    "a sum without tools": ("agent b { allow say; limit 1 sum args.n }", "ZC2212", "args.n"),
    "pots without tools": ("agent b { allow say; limit 1 calls for each args.text }", "ZC2212", "args.text"),
    "tokens of a tool": ("agent b { allow say; limit 1 tokens to say }", "ZC2213", "say"),
    "iterations of tools": ("agent b { allow say; limit 1 iterations to any except read per turn }", "ZC2213", "any except read"),
    "delegations of a tool, by value": ("agent b { allow say; limit 1 delegations to say for each args.text }", "ZC2213", "say"),
    "tokens by value": ("agent b { allow say; limit 1 tokens per hour for each args.text }", "ZC2213", "args.text"),
    "a sum of text": ("agent b { allow say; limit 1 sum args.text to say }", "ZC2201", "args.text"),
    "a sum of what is not there": ("agent b { allow say; limit 1 sum args.m to say }", "ZC2202", "args.m"),
    "the same of what is not there": ("agent b { allow say, read; require read before say same args.text }", "ZC2202", "args.text"),
    # comments
    "silencing an error": ("agent b { allow say; deny any } # zcpolicy: allow ZC2101 because", "ZC1045", "# zcpolicy: allow ZC2101 because"),
    "silencing what does not exist": ("agent b { allow say } # zcpolicy: allow ZC9999 because", "ZC1045", "# zcpolicy: allow ZC9999 because"),
    "silencing without a reason": ("agent b { allow say } # zcpolicy: allow ZC3102", "ZC1045", "# zcpolicy: allow ZC3102"),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
def test_one_error(what: str) -> None:
    text, code, underlined = ERRORS[what]
    found = findings(text)
    assert [(one.code.id, one.source.text[one.span.start : one.span.end]) for one in found] == [(code, underlined)]


RIGHT = {
    "two ceilings connect": "ceiling { connect forge } ceiling { connect none }",
    "a null default of anything": "tool t(x?: any = null)",
    "a list default": 'tool t(x?: list<string> = ["a"])',
    "a whole number for a number": "tool t(x?: number = 1)",
    "an object default": 'tool t(x?: object = {"a": 1})',
    "text of another shell": 'ceiling { deny power when args.command runs any ["rm"] }',
    "a whole number with a point": "agent b { allow say when args.i == 1.0 }",
    "any value in a list of anything": 'agent b { allow say when args.any contains 7 or args.any contains "x" }',
    "a test of each element of anything": 'agent b { allow say when some args.any == "x" }',
    "a condition on nothing": "ceiling { deny quux when args.x == 1 }",
    "a sum that some tools have": "agent b { allow say, read; limit 1 sum args.n to say, read }",
    "money and time of a tool": "agent b { allow say; limit 5 usd to say; limit 10m time to say per day }",
    "what no tool spends, for each agent": "agent b { allow say; limit 3 tokens per hour for each agent }",
    "pots that some tools have": "agent b { allow say, read; limit 1 calls to say, read for each args.text }",
    **{
        f"numbers of either kind, {op}": f"agent b {{ deny say when args.n {op} args.i }}"
        for op in ("==", "!=", "<", "<=", ">", ">=")
    },
    "a member of a list in a fact": "context { team: list<string> } agent b { deny say when args.text in session.team }",
    "ports of a list of urls": "agent b { allow fetch when every args.urls.port == 443 }",
    "a value of one of several tools": "tool m(x: integer)\ntool k(x: string)\nagent b { allow m, k when args.x == 1 }",
    "an operand of one of several tools": "tool m(x: integer)\ntool k(x: string)\nagent b { deny m, k when args.x == session.level; allow m, k }",
    "a limit on nothing": "ceiling { limit 1 sum args.x to quux }",
    "a file read twice": "agent b { allow say when session.cwd == session.cwd }",
}


@pytest.mark.parametrize("what", RIGHT)
def test_no_error(what: str) -> None:
    assert [one.message for one in findings(RIGHT[what])] == []


def test_what_a_fix_keeps() -> None:
    """`allow` becomes `only` where nothing but the tools would be lost."""
    for text, fixed in {
        "allow say": True,
        'allow say when args.text == "a"': False,
        'allow say unless args.text == "a"': False,
        "allow say with approval": False,
        'allow say because "x"': False,
        "delegate to a": False,
    }.items():
        (found,) = findings(f"agent n narrows a {{ {text} }}")
        assert (found.fix is not None) is fixed, text
        if found.fix is not None:
            (edit,) = found.fix.edits
            assert (found.source.text[edit.span.start : edit.span.end], edit.text) == ("allow", "only")


@pytest.mark.parametrize(
    ("written", "mended", "instead"),
    [
        ("limit 3 tokens to say", "limit 3 tokens", "limit 3 calls to say …"),
        ("limit 3 iterations to say, read per turn", "limit 3 iterations per turn", "limit 3 calls to say, read …"),
        ("limit 1_000 tokens per 1h for each args.text", "limit 1_000 tokens per 1h", "limit 1_000 calls to TOOL …"),
        (
            "limit 3 delegations to say,\n  read for each args.text",
            "limit 3 delegations",
            "limit 3 calls to say, read …",
        ),
    ],
)
def test_a_limit_on_what_no_tool_spends_is_mended_by_leaving_out_the_tools(
    written: str, mended: str, instead: str
) -> None:
    text = f"agent b {{ allow say, read; {written} }}"
    (found,) = findings(text)
    assert found.fix is not None
    whole = found.source.text
    for edit in reversed(found.fix.edits):
        whole = whole[: edit.span.start] + edit.text + whole[edit.span.end :]
    assert whole == HEAD + text.replace(written, mended)
    assert compile_text(whole).program is not None
    assert instead in (found.help or "")


HELP = {
    "the family of a server": (
        "tool gh/fork_all()\nceiling { deny gh/fork }", "for its whole family write `gh/fork_*`",
    ),
    "a near tool of a server": ("ceiling { deny gh/gett }", "did you mean `gh/get`?"),
    "a near server": ("tool github/x()\nceiling { deny gihub/x }", "did you mean `github/x`?"),
    "a pattern on a near server": ("tool github/x()\nceiling { deny gihub/* }", "did you mean `github/*`?"),
    "a server that is not there": ("ceiling { deny jira/x }", "declare server `jira` with a `catalog` or `tool` statement"),
    "servers that are not there": ("ceiling { deny jira*/x }", "declare it with a `tool` statement, or add its catalogue"),
}  # fmt: skip


@pytest.mark.parametrize("what", HELP)
def test_help_for_a_name(what: str) -> None:
    text, advice = HELP[what]
    assert [one.help for one in compile_text(HEAD + text).diagnostics if one.code.id in ("ZC2101", "ZC2102")] == [
        advice
    ]


# --- catalogues ----------------------------------------------------------------------------------------------------------

STRING: Any = {"kind": "string", "unreviewed": True}
ANY: Any = {"kind": "any", "unreviewed": True}
REFINED: dict[str, tuple[Any, Any, Any]] = {
    "text to a path": (STRING, {"kind": "path"}, {"kind": "path"}),
    "text to text is reviewed": (STRING, {"kind": "string"}, {"kind": "string"}),
    "text to a number": (STRING, {"kind": "integer"}, None),
    "a number to an integer": ({"kind": "number"}, {"kind": "integer"}, {"kind": "integer"}),
    "an integer to a number": ({"kind": "integer"}, {"kind": "number"}, None),
    "a path to text": ({"kind": "path"}, {"kind": "string"}, None),
    "the values stay": ({**STRING, "enum": ["a"]}, {"kind": "path"}, {"kind": "path", "enum": ["a"]}),
    "a default is added": (STRING, {"kind": "string", "default": "a"}, {"kind": "string", "default": "a"}),
    "anything to a list": (ANY, {"kind": "list", "item": {"kind": "path"}}, {"kind": "list", "item": {"kind": "path"}}),
    "anything to an object": (ANY, {"kind": "object", "fields": {}, "extra": "allow"}, {"kind": "object", "fields": {}, "extra": "allow"}),
    "the items of a list": (
        {"kind": "list", "item": STRING}, {"kind": "list", "item": {"kind": "path"}}, {"kind": "list", "item": {"kind": "path"}},
    ),
    "items to another kind": ({"kind": "list", "item": {"kind": "path"}}, {"kind": "list", "item": {"kind": "string"}}, None),
    "items that were not named": ({"kind": "list"}, {"kind": "list", "item": {"kind": "path"}}, {"kind": "list", "item": {"kind": "path"}}),
    "items that are not named": ({"kind": "list", "item": STRING}, {"kind": "list"}, {"kind": "list", "item": STRING}),
    "a list to a string": ({"kind": "list", "item": STRING}, {"kind": "string"}, None),
    "text to a list": (STRING, {"kind": "list", "item": {"kind": "path"}}, None),
    "an object keeps its members": (
        {"kind": "object", "fields": {"x": STRING}, "extra": "deny"}, {"kind": "object", "fields": {}, "extra": "allow"},
        {"kind": "object", "fields": {"x": STRING}, "extra": "deny"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFINED)
def test_what_a_statement_refines(what: str) -> None:
    listed, declared, expected = REFINED[what]
    before = json.dumps(listed)
    assert refined_kind(listed, declared) == expected
    assert json.dumps(listed) == before


def listing(tmp_path: Path, properties: dict[str, Any], required: list[str], **annotations: Any) -> None:
    schema = {"type": "object", "properties": properties, "required": required}
    tools = [{"name": "t", "inputSchema": schema, "annotations": annotations}]
    (tmp_path / "list.json").write_text(json.dumps({"tools": tools}), "utf-8")


REQUIRED: dict[str, list[str]] = {
    "tool x/t(a: string)": ["a", "b"],
    "tool x/t(a?: string)": ["b"],
    'tool x/t(a: string = "d")': ["b"],
    "tool x/t(c: string)": ["b"],  # it has a default
    "tool x/t(a: string, b: string)": ["a", "b"],
}


@pytest.mark.parametrize("statement", REQUIRED)
def test_what_a_statement_requires(statement: str, tmp_path: Path) -> None:
    text = {"type": "string"}
    listing(tmp_path, {"a": text, "b": text, "c": {**text, "default": "d"}}, ["b"])
    made = compile_text(f'zcpolicy 1\ncatalog "list.json" as x\n{statement}\nceiling {{ deny x/t }}', folder=tmp_path)
    assert made.bound is not None
    (tool,) = made.bound.catalogue.tools
    assert tool.schema.get("required") == REQUIRED[statement]


CLASSES: dict[str, tuple[dict[str, bool], str, str]] = {
    "no hints": ({}, "server x { trust hints }", "high"),
    "destructive": ({"destructiveHint": True}, "server x { trust hints }", "high"),
    "not destructive": ({"destructiveHint": False}, "server x { trust hints }", "medium"),
    "read only": ({"readOnlyHint": True}, "server x { trust hints }", "read"),
    "not read only": ({"readOnlyHint": False}, "server x { trust hints }", "high"),
    "both": ({"readOnlyHint": True, "destructiveHint": True}, "server x { trust hints }", "high"),
    "read only, not destructive": (
        {"readOnlyHint": True, "destructiveHint": False},
        "server x { trust hints }",
        "read",
    ),
    "not trusted": ({"readOnlyHint": True}, "server x {}", "high"),
    "a tool statement": ({"readOnlyHint": True}, "server x { trust hints } tool x/t() risk medium", "medium"),
    "a risk statement": (
        {"readOnlyHint": True},
        "server x { trust hints } tool x/t() risk medium\nrisk low = x/*",
        "low",
    ),
    "the highest that fits": ({}, "server x {}\nrisk low = x/*\nrisk medium = x/t\nrisk read = any", "medium"),
}


@pytest.mark.parametrize("what", CLASSES)
def test_the_class_of_a_tool(what: str, tmp_path: Path) -> None:
    hints, text, risk = CLASSES[what]
    listing(tmp_path, {}, [], **hints)
    made = compile_text(f'zcpolicy 1\ncatalog "list.json" as x\n{text}', folder=tmp_path)
    assert made.bound is not None
    assert made.bound.classes == (risk,)
    assert [one.message for one in made.diagnostics if one.severity == "error"] == []


def test_a_class_of_a_lower_layer(tmp_path: Path) -> None:
    above = "zcpolicy 1\ntool one() risk medium\ntool two() risk low\nrisk medium = one"
    for below, codes in {
        "risk medium = any": [],
        "risk high = one": [],
        "risk low = two": [],
        "risk low = any": ["ZC2115"],
        "risk read = two": ["ZC2115"],
    }.items():
        files = {"above.zcpolicy": above, "below.zcpolicy": f"zcpolicy 1\n{below}"}
        assert [one.code for one in said(tmp_path, files, ("above.zcpolicy", "below.zcpolicy"))] == codes, below


@pytest.mark.parametrize("above", ["tool gh/get()", 'catalog "list.json" as gh'])
def test_hints_are_trusted_where_a_server_is_declared(above: str, tmp_path: Path) -> None:
    listing(tmp_path, {}, [], readOnlyHint=True)
    files = {"above.zcpolicy": f"zcpolicy 1\n{above}", "below.zcpolicy": "zcpolicy 1\nserver gh { trust hints }"}
    assert [one.code for one in said(tmp_path, files, ("above.zcpolicy", "below.zcpolicy"))] == ["ZC2115"]
    files = {"above.zcpolicy": "zcpolicy 1", "below.zcpolicy": f"zcpolicy 1\n{above}\nserver gh {{ trust hints }}"}
    assert said(tmp_path, files, ("above.zcpolicy", "below.zcpolicy")) == []


@pytest.mark.parametrize(
    ("test", "advice"),
    [
        ("args.text == null", "write `not has args.text`"),
        ("args.text in [null]", "write `not has args.text`"),
        ("args.text != null", "write `has args.text`"),
        ("args.text not in [null]", "write `has args.text`"),
    ],
)
def test_help_for_null(test: str, advice: str) -> None:
    assert [one.help for one in findings(f"agent b {{ allow say when {test} }}")] == [advice]


def test_values_and_kinds() -> None:
    assert show_kind({"kind": "list", "item": {"kind": "list", "item": {"kind": "path"}}}) == "list<list<path>>"
    assert show_kind({"kind": "list"}) == "list"
    assert fits(None, {"kind": "string", "nullable": True})
    assert not fits(None, {"kind": "string"})
    assert fits({"list": [{"n": "1"}]}, {"kind": "list"})
    assert not fits({"list": []}, {"kind": "object"})
    assert fits({"object": {}}, {"kind": "object"})
    assert not fits({"n": "1"}, {"kind": "boolean"})
    assert not fits(True, {"kind": "integer"})


# --- comments that silence ---------------------------------------------------------------------------------------------

SILENCED: dict[str, tuple[str, bool]] = {
    "behind it": ("agent b {\nallow say\n} # zcpolicy: allow ZC4004 on purpose", True),
    "behind a statement inside": ("agent b { allow say } # zcpolicy: allow ZC4004 on purpose", False),
    "above it": ("# zcpolicy: allow ZC4004 on purpose\nagent b { allow say }", True),
    "above another": (
        "# zcpolicy: allow ZC4004 on purpose\nagent c { autonomy full; allow say }\nagent b { allow say }",
        False,
    ),
    "of another code": ("agent b { allow say } # zcpolicy: allow ZC4003 on purpose", False),
    "of just that statement": ("agent b { autonomy full\nallow any # zcpolicy: allow ZC4001 on purpose\n}", True),
    "on a statement inside": ("agent b {\nallow say # zcpolicy: allow ZC4004 on purpose\n}", False),
}


@pytest.mark.parametrize("what", SILENCED)
def test_a_warning_that_is_silenced(what: str) -> None:
    text, silent = SILENCED[what]
    found = [one.code.id for one in compile_text(HEAD + text).diagnostics]
    code = "ZC4001" if "any" in text else "ZC4004"
    assert (code not in found) is silent


def test_a_warning_that_nobody_silences() -> None:
    found = [one.code.id for one in compile_text(HEAD + "agent b {\nallow any\n}").diagnostics]
    assert {"ZC4001", "ZC4004"} <= set(found)


def test_a_step_of_a_test_is_a_statement() -> None:
    block = 'test "t" {{\nagent a\ncall quux() => deny unknown-tool {}\n}}'
    assert "ZC2103" in [one.code.id for one in compile_text(HEAD + block.format("")).diagnostics]
    silent = compile_text(HEAD + block.format("# zcpolicy: allow ZC2103 not there on purpose"))
    assert "ZC2103" not in [one.code.id for one in silent.diagnostics]
    assert [one.passed for one in run_tests(silent.program, silent.tests)] == [True] if silent.program else False


# --- where a deciding statement stands ---------------------------------------------------------------------------------

PLACES = """zcpolicy 1
tool say(text: string) risk read
tool gh/get() risk medium
server gh {}
skill s { deny say when args.text == "s" }
agent a {
    skills s
    autonomy full
    autonomy supervised
    allow any
    deny say when args.text == "a"
}
agent n narrows a {
    deny say when args.text == "n"
}
ceiling { deny say when args.text == "c" }
agent f {
    autonomy supervised
    connect none
    allow any
}
bundle forge { server gh }
agent g {
    connect forge
    autonomy full
    autonomy supervised
    allow gh/get
}
"""


@pytest.mark.parametrize(
    ("agent", "tool", "arguments", "lines"),
    [
        ("n", "say", {"text": "a"}, [11]),
        ("n", "say", {"text": "n"}, [14]),
        ("n", "say", {"text": "c"}, [16]),
        ("n", "say", {"text": "s"}, [5]),
        ("n", "say", {"text": "x"}, [10]),
        ("a", ("gh", "get"), {}, [6]),  # it connects nothing: no statement says so, the agent does
        ("f", ("gh", "get"), {}, [19]),
        ("g", ("gh", "get"), {}, [26]),
    ],
)
def test_the_line_of_what_decided(agent: str, tool: Any, arguments: dict[str, str], lines: list[int]) -> None:
    made = compile_text(PLACES)
    assert made.program is not None, [one.message for one in made.diagnostics]
    run = Resolver(made.program).resolve(agent, session=Session(interactive=True), skills=["s"] if agent == "n" else [])
    decision: Decision = run.decide(tool, arguments)
    assert [rule.to_json()["line"] for rule in decision.rules] == lines


def test_agents_of_an_import_as_scopes_of_memory(tmp_path: Path) -> None:
    (tmp_path / "part.zcpolicy").write_text(
        "zcpolicy 1\ntool say()\nagent b { allow say; memory read c }\nagent c { allow say }", "utf-8"
    )
    (tmp_path / "main.zcpolicy").write_text(
        'zcpolicy 1\nimport "part.zcpolicy" as org\nagent own_one { allow say; memory read own, org.b; delegate to org.b }',
        "utf-8",
    )
    made = compile_policy(tmp_path / "main.zcpolicy")
    assert made.program is not None, [one.message for one in made.diagnostics]
    body = json.loads(made.program.canonical())["agents"]["own_one"]["body"]
    assert body["memory"]["read"] == ["org.b", "own"]
    assert body["delegate"] == {"to": {"org.b": {}}}
    assert json.loads(made.program.canonical())["agents"]["org.b"]["body"]["memory"]["read"] == ["org.c"]


def test_what_stands_below_an_object() -> None:
    integer: Any = {"kind": "integer"}
    shapes: list[tuple[Any, Any]] = [("allow", ANY), ("deny", None), (integer, integer)]
    for extra, found in shapes:
        assert argument({"kind": "object", "fields": {"a": STRING}, "extra": extra}, ("k",)) == found
        assert argument({"kind": "object", "fields": {"a": STRING}, "extra": extra}, ("a",)) == STRING
