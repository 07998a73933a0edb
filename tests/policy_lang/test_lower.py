"""SPEC 14: what a statement is in the compiled form, what several come to, and what leaves no trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from policy_lang.compile import compile_policy, compile_text
from policy_lang.lower.program import lower
from tests.policy_lang.bound_case import bound_of
from zcpolicy.program import pack

# read 0, say 1, shell 2, gh/get_a 3, gh/get_b 4, gh/push 5, lin/get 6
HEAD = """zcpolicy 1
tool read(path: path) risk read
tool shell(command: shell, tries?: integer = 3) risk high
tool say(text: string, to?: list<string>, n?: number, o?: object) risk low
tool gh/get_a() risk read
tool gh/get_b() risk low
tool gh/push() risk high
tool lin/get() risk read
label untrusted, private
scope team, org
context { role: string, level: integer }
let names = ["b", "a"]
group talkers = say
bundle forge { server gh }
bundle readers { server gh only get_*; server lin }
bundle rest { server gh except push }
bundle one { server gh only get_a }
skill s1 { deny shell }
skill s2 { deny shell }
agent other { allow read }
"""
SAME = ("kind", "name")


def lowered(tmp_path: Path, text: str) -> tuple[Any, Any]:
    """Program data and origins."""
    bound, found = bound_of(tmp_path, {"main.zcpolicy": HEAD + text})
    assert [one.message for one in found if one.severity == "error"] == []
    return lower(bound)


def part(tmp_path: Path, statements: str, key: str) -> Any:
    """One part of the body of an agent, or of all ceilings, that says this."""
    ceiling = statements.startswith("ceiling")
    data, _ = lowered(tmp_path, statements if ceiling else f"agent a {{ {statements} }}")
    return (data["ceiling"] if ceiling else data["agents"]["a"]["body"]).get(key)


def limit(amount: str, unit: str, **more: Any) -> dict[str, Any]:
    return {"amount": amount, "unit": unit, "window": {"kind": "session"}, "pot": "agent:a", **more}


def rolling(seconds: int) -> dict[str, Any]:
    return {"kind": "rolling", "seconds": str(seconds)}


CAPS = ("read", "low", "medium", "high")
STATEMENTS: dict[str, tuple[str, Any]] = {
    # rules
    "allow read": ("rules", {"effect": "allow", "tools": "0"}),
    "allow any": ("rules", {"effect": "allow", "tools": "0-6"}),
    "allow gh/get_*, say": ("rules", {"effect": "allow", "tools": "1,3-4"}),
    "allow any except gh/*": ("rules", {"effect": "allow", "tools": "0-2,6"}),
    "allow @talkers with approval": ("rules", {"effect": "allow", "tools": "1", "approval": True}),
    'ask shell because "x"': ("rules", {"effect": "ask", "tools": "2", "because": "x"}),
    "deny say when has args.to unclear ask": (
        "rules", {"effect": "deny", "tools": "1", "if": {"has": ["to"]}, "unclear": "ask"},
    ),
    "deny say": ("rules", {"effect": "deny", "tools": "1"}),
    "auto_approve say": ("rules", {"effect": "auto_approve", "tools": "1"}),
    "mark private on read": ("rules", {"effect": "mark", "tools": "0", "label": "private"}),
    'only read because "x"': ("only", {"tools": "0", "because": "x"}),
    "only read": ("only", {"tools": "0"}),
    "only none": ("only", {"tools": ""}),
    # units
    "limit 3 calls": ("limits", limit("3", "calls")),
    "limit 3 calls to gh/*": ("limits", limit("3", "calls", tools="3-5")),
    "limit 2 concurrent calls": ("limits", limit("2", "concurrent calls")),
    "limit 10 iterations": ("limits", limit("10", "iterations")),
    "limit 4 delegations": ("limits", limit("4", "delegations")),
    "limit 5_000 tokens": ("limits", limit("5000", "tokens")),
    "limit 5.50 usd": ("limits", limit("5.5", "money", currency="usd")),
    "limit 10m time": ("limits", limit("600", "time")),
    "limit 1.5 sum args.n to say": ("limits", limit("1.5", "sum", argument=["n"], tools="1")),
    "limit 1 sum args.o.x to say": ("limits", limit("1", "sum", argument=["o", "x"], tools="1")),
    # windows
    "limit 1 calls per session": ("limits", limit("1", "calls")),
    "limit 1 calls per turn": ("limits", limit("1", "calls", window={"kind": "turn"})),
    "limit 1 calls per minute": ("limits", limit("1", "calls", window=rolling(60))),
    "limit 1 calls per hour": ("limits", limit("1", "calls", window=rolling(3600))),
    "limit 1 calls per day": ("limits", limit("1", "calls", window=rolling(86400))),
    "limit 1 calls per 90s": ("limits", limit("1", "calls", window=rolling(90))),
    "limit 1 calls per 2h": ("limits", limit("1", "calls", window=rolling(7200))),
    'limit 1 calls per calendar day in "Europe/Berlin"': (
        "limits", limit("1", "calls", window={"kind": "calendar", "calendar": "day", "zone": "Europe/Berlin"}),
    ),
    'limit 1 calls per calendar month in "UTC"': (
        "limits", limit("1", "calls", window={"kind": "calendar", "calendar": "month", "zone": "UTC"}),
    ),
    # pots
    "limit 1 calls for each client": ("limits", limit("1", "calls", each=["client"])),
    "limit 1 calls for each session": ("limits", limit("1", "calls", each=["session"])),
    "limit 1 calls for each agent": ("limits", limit("1", "calls", each=["agent"])),
    "limit 1 calls to say for each args.o.x": ("limits", limit("1", "calls", tools="1", each=["args", "o", "x"])),
    # preconditions
    "require read before shell": ("require", {"earlier": "0", "later": "2"}),
    "require gh/get_a before gh/push within 5m": ("require", {"earlier": "3", "later": "5", "within": "300"}),
    "require say before say same args.text, args.o.x": (
        "require", {"earlier": "1", "later": "1", "same": [["o", "x"], ["text"]]},
    ),
    'require read before shell by any agent because "x"': (
        "require", {"earlier": "0", "later": "2", "by_any_agent": True, "because": "x"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_of_a_list(statement: str, tmp_path: Path) -> None:
    key, expected = STATEMENTS[statement]
    assert part(tmp_path, statement, key) == [expected]


SETTINGS: dict[str, tuple[str, Any]] = {
    # autonomy: of several the strictest, class by class
    "autonomy readonly": ("autonomy", dict(zip(CAPS, ("allow", "deny", "deny", "deny"), strict=True))),
    "autonomy supervised": ("autonomy", dict(zip(CAPS, ("allow", "ask", "ask", "ask"), strict=True))),
    "autonomy full": ("autonomy", None),
    "autonomy { read ask; low allow; medium ask; high deny }": (
        "autonomy", dict(zip(CAPS, ("ask", "allow", "ask", "deny"), strict=True)),
    ),
    "autonomy { read allow; low allow; medium allow; high allow }": ("autonomy", None),
    "autonomy supervised; autonomy { read deny; low deny; medium allow; high ask }": (
        "autonomy", dict(zip(CAPS, ("deny", "deny", "ask", "ask"), strict=True)),
    ),
    "autonomy full; autonomy readonly": ("autonomy", dict(zip(CAPS, ("allow", "deny", "deny", "deny"), strict=True))),
    # what an agent that says nothing may
    "allow read": ("connect", {"servers": [], "tools": ""}),
    "allow say": ("skills", []),
    "allow shell": ("memory", {"read": [], "write": []}),
    "ceiling { deny read }": ("connect", None),
    "ceiling { deny say }": ("skills", None),
    "ceiling { deny shell }": ("memory", None),
    # connect, skills, memory
    "connect forge": ("connect", {"servers": ["gh"], "tools": "3-5"}),
    "connect readers, one": ("connect", {"servers": ["gh", "lin"], "tools": "3-4,6"}),
    "connect rest": ("connect", {"servers": ["gh"], "tools": "3-4"}),
    "connect none": ("connect", {"servers": [], "tools": ""}),
    "ceiling { connect forge } ceiling { connect readers }": ("connect", {"servers": ["gh"], "tools": "3-4"}),
    "ceiling { connect none } ceiling { connect readers }": ("connect", {"servers": [], "tools": ""}),
    "skills s2, s1": ("skills", ["s1", "s2"]),
    "skills none": ("skills", []),
    "ceiling { skills s1, s2 } ceiling { skills s2 }": ("skills", ["s2"]),
    "memory read own, other, team write own": ("memory", {"read": ["other", "own", "team"], "write": ["own"]}),
    "memory read own": ("memory", {"read": ["own"], "write": []}),
    "memory write org": ("memory", {"read": [], "write": ["org"]}),
    "memory none": ("memory", {"read": [], "write": []}),
    "ceiling { memory read own, team write own } ceiling { memory read team, org write org, own }": (
        "memory", {"read": ["team"], "write": ["own"]},
    ),
    # delegation
    "delegate to other": ("delegate", {"to": {"other": {}}}),
    'delegate to other independent because "x"': ("delegate", {"to": {"other": {"independent": True, "because": "x"}}}),
    "delegate depth 3; delegate depth 2; delegate depth 4": ("delegate", {"to": {}, "depth": "2"}),
    "delegate none": ("delegate", {"to": {}, "none": True}),
    'deny say when args.text == "x"': ("delegate", None),
    'delegate to other because "b"; delegate to other because "a"': ("delegate", {"to": {"other": {"because": "a"}}}),
    'delegate to other because "a"; delegate to other independent because "b"': (
        "delegate", {"to": {"other": {"independent": True, "because": "b"}}},
    ),
    # approval
    'approval { route "ops" }': ("approval", {"routes": ["ops"]}),
    'approval { route "ops" }; approval { route "law" }': ("approval", {"routes": ["law", "ops"]}),
    "approval none": ("approval", {"none": True}),
    'approval none; approval { route "ops" }': ("approval", {"none": True, "routes": ["ops"]}),
    "approval { timeout 120s }; approval { timeout 1m }; approval { timeout 2h }": ("approval", {"timeout": "60"}),
    "approval { remember tool for 1h }; approval { remember tool for 10m }": (
        "approval", {"remember": "tool", "remember_for": "600"},
    ),
    "approval { remember tool }; approval { remember exact }": ("approval", {"remember": "exact"}),
    "approval { remember exact }; approval { remember never }; approval { remember tool }": (
        "approval", {"remember": "never"},
    ),
    'approval { on_no_approver route "night" }': ("approval", {"fallback": ["night"]}),
    'approval { on_no_approver route "night" }; approval { on_no_approver deny }': ("approval", {}),
    "approval { on_no_approver deny }": ("approval", {}),
    # runtime
    "runtime { parallel_tools on }": ("runtime", {"parallel_tools": "on"}),
    "runtime { parallel_tools off }; runtime { parallel_tools on }": ("runtime", {"parallel_tools": "off"}),
    "runtime { parallel_tools on }; runtime { parallel_tools off }": ("runtime", {"parallel_tools": "off"}),
    "runtime { history 50, context 32_000, tool_result 50_000, recall 5, call_timeout 90s, turn_timeout 10m }": (
        "runtime",
        {"history": "50", "context": "32000", "tool_result": "50000", "recall": "5", "call_timeout": "90", "turn_timeout": "600"},
    ),
    "runtime { history 50 }; runtime { history 20 }; runtime { history 30 }": ("runtime", {"history": "20"}),
    "runtime { call_timeout 2m }; runtime { call_timeout 90s }": ("runtime", {"call_timeout": "90"}),
    # drift
    "on drift schema ask": ("drift", {"schema": "ask"}),
    "on drift ask": ("drift", {"description": "ask", "schema": "ask", "launch": "ask"}),
    "on drift any allow; on drift launch deny; on drift schema ask": (
        "drift", {"description": "allow", "schema": "ask", "launch": "deny"},
    ),
    "on drift description ask; on drift description allow": ("drift", {"description": "ask"}),
}  # fmt: skip


@pytest.mark.parametrize("statements", SETTINGS)
def test_settings_come_to_the_strictest(statements: str, tmp_path: Path) -> None:
    key, expected = SETTINGS[statements]
    assert part(tmp_path, statements, key) == expected


def leaf(left: str, test: str, *right: Any, grants: bool = True, **more: Any) -> dict[str, Any]:
    return {"test": test, "left": left.split("."), "right": list(right), "grants": grants, **more}


ROLE_A = leaf("session.role", "==", "a")
CONDITIONS: dict[str, Any] = {
    'allow say when session.role == "a"': ROLE_A,
    'deny say when session.role == "a"': {**ROLE_A, "grants": False},
    'ask say when session.role == "a"': {**ROLE_A, "grants": False},
    'mark private on say when session.role == "a"': {**ROLE_A, "grants": False},
    'auto_approve say when session.role == "a"': ROLE_A,
    'allow say unless session.role == "a"': {"not": {**ROLE_A, "grants": False}},
    'deny say unless session.role == "a"': {"not": ROLE_A},
    'allow say when session.role == "a" unless session.role == "b"': {
        "all": [ROLE_A, {"not": leaf("session.role", "==", "b", grants=False)}],
    },
    'allow say when not session.role == "a"': {"not": {**ROLE_A, "grants": False}},
    'allow say when session.role != "a"': {"not": {**ROLE_A, "grants": False}},
    'allow say when session.role not in ["a", "b"]': {"not": leaf("session.role", "==", "a", "b", grants=False)},
    'allow say when session.role in ["b", "a", "b"]': leaf("session.role", "==", "a", "b"),
    "allow say when session.role in names": leaf("session.role", "==", "a", "b"),
    "allow say when session.role in args.to": {**ROLE_A, "test": "in", "right": {"operand": ["args", "to"]}},
    "deny say when session.role not in args.to": {
        "not": {**ROLE_A, "test": "in", "right": {"operand": ["args", "to"]}},
    },
    "allow say when args.text == session.role": {
        "test": "==", "left": ["args", "text"], "right": {"operand": ["session", "role"]}, "grants": True,
    },
    'allow say when session.role == "a" and session.level < 3 or has args.to': {
        "any": [{"all": [ROLE_A, leaf("session.level", "<", {"n": "3"})]}, {"has": ["to"]}],
    },
    "deny say when marked private": {"marked": "private"},
    'allow say when some args.to == "a"': leaf("args.to", "==", "a", each="some"),
    'allow say when every args.to != "a"': leaf("args.to", "==", "a", grants=False, each="every", negate=True),
    'deny say when some args.to not in ["a"]': leaf("args.to", "==", "a", each="some", negate=True),
    "deny say when args.n == 1.12345678901234567890123456789012345": leaf(
        "args.n", "==", {"n": "1.12345678901234567890123456789012345"}, grants=False
    ),
    "deny say when args.n == -0.00": leaf("args.n", "==", {"n": "0"}, grants=False),
    "deny say when args.n >= 1_000.50": leaf("args.n", ">=", {"n": "1000.5"}, grants=False),
    "deny say when tool.read_only": leaf("tool.read_only", "==", True, grants=False),
    "deny say when tool.read_only == false": leaf("tool.read_only", "==", False, grants=False),
    'deny shell when args.command runs any ["git push", "ls"]': leaf(
        "args.command", "runs any", "git push", "ls", grants=False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", CONDITIONS)
def test_a_condition(rule: str, tmp_path: Path) -> None:
    assert part(tmp_path, rule, "rules")[0]["if"] == CONDITIONS[rule]


def test_one_pot_for_each_kind_of_body(tmp_path: Path) -> None:
    once = "limit 1 calls"
    data, _ = lowered(
        tmp_path,
        f"profile p {{ {once} }} agent a {{ use p; allow read }} agent b {{ use p; allow read }} agent n narrows a {{ {once} }}\n"
        f"ceiling {{ {once} }} skill s {{ {once} }}",
    )
    bodies = [data["agents"][name]["body"] for name in ("a", "b", "n")]
    pots = [body["limits"][0]["pot"] for body in (*bodies, data["ceiling"], data["skills"]["s"])]
    assert pots == ["agent:a", "agent:b", "agent:n", "ceiling", "skill:s"]
    assert [body["kind"] for body in bodies] == ["agent", "agent", "narrows"]
    assert [data["agents"][name]["narrows"] for name in ("a", "n")] == [None, "a"]


PACKED = {"": (), "0": (0,), "0-1": (1, 0), "0,2": (0, 2), "3-5,7,9-10": (9, 5, 4, 3, 7, 10)}


@pytest.mark.parametrize("text", PACKED)
def test_sets_are_packed_as_ranges(text: str) -> None:
    assert pack(set(PACKED[text])) == text


def test_the_head(tmp_path: Path) -> None:
    data, _ = lowered(tmp_path, "server gh { trust hints } tool run() runs tools risk high")
    assert [(one["server"], one["name"]) for one in data["tools"]] == [
        (None, "read"), (None, "run"), (None, "say"), (None, "shell"),
        ("gh", "get_a"), ("gh", "get_b"), ("gh", "push"), ("lin", "get"),
    ]  # fmt: skip
    assert [one["class"] for one in data["tools"]] == ["read", "high", "low", "high", "read", "low", "high", "read"]
    assert [one["name"] for one in data["tools"] if one.get("runs_tools")] == ["run"]
    assert [one["name"] for one in data["tools"] if "hints" in one] == ["get_a", "get_b", "push"]
    assert data["tools"][3]["schema"] == {
        "kind": "object",
        "fields": {"command": {"kind": "shell"}, "tries": {"kind": "integer", "default": {"n": "3"}}},
        "required": ["command"],
        "extra": "deny",
    }
    assert (data["semantics"], data["servers"]) == ("1", ["gh", "lin"])
    assert (data["labels"], data["scopes"]) == (["private", "untrusted"], ["org", "team"])
    assert data["context"] == {"role": {"kind": "string"}, "level": {"kind": "integer"}}
    assert data["ceiling"] == {"kind": "ceiling", "name": "ceiling"}


def test_hints_of_trusted_servers_only(tmp_path: Path) -> None:
    annotations = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False, "title": "T"}
    listing = [{"name": "t", "inputSchema": {"type": "object"}, "annotations": annotations}]
    (tmp_path / "list.json").write_text(json.dumps({"tools": listing}), "utf-8")
    data, _ = lowered(
        tmp_path, 'catalog "list.json" as x\ncatalog "list.json" as y\nserver x { trust hints }\nserver y {}'
    )
    x, y = data["tools"][-2:]
    assert x["hints"] == {"read_only": True, "destructive": False, "open_world": False}
    assert "hints" not in y


def test_every_place_of_a_statement_is_kept(tmp_path: Path) -> None:
    text = "agent a {\n  deny say\n  allow read\n  deny   say\n  autonomy full\n  autonomy supervised\n}"
    start = HEAD.count("\n") + 1
    _, origins = lowered(tmp_path, text)
    origin = origins["agents"]["a"]

    def at(line: int, text: str) -> list[str]:
        return ["main.zcpolicy", str(start + line), text]

    assert origin["place"] == at(0, "a")
    assert origin["rules"] == [[at(2, "allow read")], [at(1, "deny say"), at(3, "deny say")]]
    assert origin["other"]["autonomy"] == [at(4, "autonomy full"), at(5, "autonomy supervised")]
    assert origin["other"]["autonomy read"] == origin["other"]["autonomy"]
    assert origin["other"]["autonomy high"] == [at(5, "autonomy supervised")]


def test_a_long_statement_is_cut(tmp_path: Path) -> None:
    _, origins = lowered(
        tmp_path, f'agent a {{ deny say because "{"x" * 300}" }} agent b {{ deny say because "{"x" * 141}" }}'
    )
    long, fitting = (origins["agents"][name]["rules"][0][0][2] for name in "ab")
    assert len(long) == 160
    assert long.endswith("x…")
    assert len(fitting) == 160
    assert fitting.endswith('x"')


# --- one digest ------------------------------------------------------------------------------------------------------

POLICY = """agent a {
    allow say when session.role in ["a", "b"]
    deny say when args.n > 1.5
    limit 60 calls per 1h
    connect forge
    delegate to other
}"""
NO_TRACE: dict[str, tuple[str, str]] = {
    "order of statements": (
        POLICY,
        'agent a { delegate to other; connect forge; limit 60 calls per 1h; deny say when args.n > 1.5\nallow say when session.role in ["a", "b"] }',
    ),
    "order and repetition in a list": (POLICY, POLICY.replace('["a", "b"]', '["b", "a", "b"]')),
    "repetition": (POLICY, POLICY.replace("{\n", "{\n deny say when args.n > 1.5\n", 1)),
    "lets": (POLICY, POLICY.replace('["a", "b"]', "names")),
    "names of lets": (POLICY, 'let other_names = ["b", "a"]\n' + POLICY.replace('["a", "b"]', "other_names")),
    "groups": (POLICY, POLICY.replace("allow say", "allow @talkers")),
    "profiles": (POLICY, POLICY.replace("agent a {", "agent a { use p\n").replace("limit 60 calls per 1h\n", "") + "profile p { limit 60 calls per 1h }"),
    "how a number is written": (POLICY, POLICY.replace("1.5", "1.50")),
    "how a whole number is written": (POLICY.replace("1.5", "1"), POLICY.replace("1.5", "1.0")),
    "how a duration is written": (POLICY, POLICY.replace("1h", "60m")),
    "a named window": (POLICY, POLICY.replace("1h", "hour")),
    "comments and blanks": (POLICY, POLICY.replace("\n", "  # note\n\n")),
    "tests": (POLICY, POLICY + '\ntest "t" { agent a; call say(text: "x") => deny }'),
    "how a set is spelt": (POLICY + "agent b { allow gh/* ; connect forge }", POLICY + "agent b { allow gh/get_a, gh/get_*, gh/push; connect forge }"),
    "an unused group": (POLICY, POLICY + "\ngroup g = read"),
    "order of declarations": (POLICY + "\nceiling { deny shell }", "ceiling { deny shell }\n" + POLICY),
    "one ceiling or two": (POLICY + "\nceiling { deny shell; deny read }", POLICY + "\nceiling { deny shell }\nceiling { deny read }"),
    "order of reasons": (
        'agent a { delegate to other because "b"; delegate to other because "a" }',
        'agent a { delegate to other because "a"; delegate to other because "b" }',
    ),
    "order of arguments that are the same": (
        "agent a { require say before say same args.n, args.text }", "agent a { require say before say same args.text, args.n }",
    ),
}  # fmt: skip


def digest(text: str) -> str:
    made = compile_text(HEAD + text)
    assert made.program is not None, [one.message for one in made.diagnostics if one.severity == "error"]
    return made.program.digest


@pytest.mark.parametrize("what", NO_TRACE)
def test_what_leaves_no_trace(what: str) -> None:
    one, other = NO_TRACE[what]
    assert digest(one) == digest(other)


A_TRACE = {
    "a tool of a set": POLICY.replace("allow say", "allow say, read"),
    "a reason": POLICY.replace("1.5\n", '1.5 because "x"\n'),
    "a value": POLICY.replace("1.5", "1.6"),
    "an operator": POLICY.replace(">", ">="),
    "an amount": POLICY.replace("60", "61"),
    "a window": POLICY.replace("1h", "2h"),
    "a statement": POLICY.replace("    delegate to other\n", ""),
    "a schema": POLICY + "\ntool more()\nceiling { deny more }",
    "a class": POLICY + "\nrisk high = say",
    "a label": POLICY + "\nlabel more",
    "a context fact": POLICY + "\ncontext { more: string }",
    "an agent's name": POLICY.replace("agent a", "agent aa"),
}


@pytest.mark.parametrize("what", A_TRACE)
def test_what_leaves_a_trace(what: str) -> None:
    assert digest(A_TRACE[what]) != digest(POLICY)


def test_files_leave_no_trace(tmp_path: Path) -> None:
    (tmp_path / "part.zcpolicy").write_text(
        "zcpolicy 1\ngroup spoken = say\nprofile p { limit 60 calls per 1h }", "utf-8"
    )
    moved = POLICY.replace("limit 60 calls per 1h", "use org.p").replace("allow say", "allow @org.spoken")
    head = HEAD.replace("tool read", 'import "part.zcpolicy" as org\ntool read', 1)
    (tmp_path / "main.zcpolicy").write_text(head + moved, "utf-8")
    made = compile_policy(tmp_path / "main.zcpolicy")
    assert made.program is not None, [one.message for one in made.diagnostics]
    assert made.program.digest == digest(POLICY)
