"""Conditions that never hold, always hold, or name a value that never occurs."""

import pytest

from policy_lang import codes
from tests.policy_lang.checks.judging import Case, judge, of_code

TOOLS = """\
tool pay(amount: integer, rate?: number, note: string, dry_run?: boolean) risk high
tool read(path: path) risk read
tool ping() risk read
tool copy(from: path, to: path) risk medium
tool fetch(url: url) risk low
tool shell(command: shell) risk high
tool tag(names: list<string>) risk low
label untrusted
let europe = ["de", "fr"]
"""
NEVER = "this `allow` never applies: keep one of the tests, or join them with `or`"


def both(first: str, second: str) -> str:
    return f"`{first}` and `{second}` never hold together"


CONTRADICTIONS = [
    Case("an empty interval",
         "agent a { allow pay when args.amount > 5 and ⟦args.amount < 3⟧ }",
         both("args.amount > 5", "args.amount < 3"), NEVER, (("the other test", "args.amount > 5"),)),
    Case("whole numbers between 5 and 6",
         "agent a { allow pay when args.amount > 5 and ⟦args.amount < 6⟧ }",
         both("args.amount > 5", "args.amount < 6"), NEVER, (("the other test", "args.amount > 5"),)),
    Case("equal to two values",
         'agent a { allow pay when args.note == "a" and ⟦args.note == "b"⟧ }',
         both('args.note == "a"', 'args.note == "b"'), NEVER, (("the other test", 'args.note == "a"'),)),
    Case("lists without a common value",
         'agent a { allow pay when args.note in ["a", "b"] and ⟦args.note in europe⟧ }',
         both('args.note in ["a", "b"]', "args.note in europe"), NEVER, (("the other test", 'args.note in ["a", "b"]'),)),
    Case("in and not in",
         'agent a { allow pay when args.note in europe and ⟦args.note not in ["de", "fr", "it"]⟧ }',
         both("args.note in europe", 'args.note not in ["de", "fr", "it"]'), NEVER, (("the other test", "args.note in europe"),)),
    Case("a test and its negation",
         'agent a { allow pay when args.note like "x*" and ⟦not args.note like "x*"⟧ }'.replace("⟦not ", "not ⟦"),
         both('args.note like "x*"', 'not args.note like "x*"'), NEVER, (("the other test", 'args.note like "x*"'),)),
    Case("when and unless",
         "agent a { allow pay when args.dry_run unless ⟦args.dry_run⟧ }",
         both("args.dry_run", "not args.dry_run"), NEVER, (("the other test", "args.dry_run"),)),
    Case("equal and not equal to another argument",
         "agent a { allow copy when args.from == args.to and ⟦args.from != args.to⟧ }",
         both("args.from == args.to", "args.from != args.to"), NEVER, (("the other test", "args.from == args.to"),)),
    Case("asked and not asked",
         "agent a { allow ping when session.interactive and ⟦session.interactive == false⟧ }",
         both("session.interactive", "session.interactive == false"), NEVER, (("the other test", "session.interactive"),)),
    Case("two facts of a session",
         'context { channel: string }\nagent a { allow ping when session.channel == "a" and ⟦session.channel == "b"⟧ }',
         both('session.channel == "a"', 'session.channel == "b"'), NEVER, (("the other test", 'session.channel == "a"'),)),
    Case("every and some other",
         'agent a { allow fetch when every urls.host in_domain "a.example" and ⟦some urls.host in_domain "b.example"⟧ }',
         both('every urls.host in_domain "a.example"', 'some urls.host in_domain "b.example"'), NEVER,
         (("the other test", 'every urls.host in_domain "a.example"'),)),
    Case("some and none",
         'agent a { allow tag when some args.names == "x" unless ⟦some args.names in ["x", "y"]⟧ }',
         both('some args.names == "x"', 'not some args.names in ["x", "y"]'), NEVER, (("the other test", 'some args.names == "x"'),)),
    Case("a doubly negated test",
         'agent a { allow pay when args.note == "a" unless ⟦args.note != "b"⟧ }',
         both('args.note == "a"', 'not args.note != "b"'), NEVER, (("the other test", 'args.note == "a"'),)),
    Case("true and false",
         "agent a { allow pay when args.dry_run and ⟦args.dry_run == false⟧ }",
         both("args.dry_run", "args.dry_run == false"), NEVER, (("the other test", "args.dry_run"),)),
    Case("folders apart",
         'agent a { allow read when args.path under "/a" and ⟦args.path under "/b"⟧ }',
         both('args.path under "/a"', 'args.path under "/b"'), NEVER, (("the other test", 'args.path under "/a"'),)),
    Case("a folder beside, not below",
         'agent a { allow read when args.path under "/w/app" and ⟦args.path under "/w/app2"⟧ }',
         both('args.path under "/w/app"', 'args.path under "/w/app2"'), NEVER, (("the other test", 'args.path under "/w/app"'),)),
    Case("a file outside the folder",
         'agent a { allow read when args.path == "/etc/hosts" and ⟦args.path under "/w"⟧ }',
         both('args.path == "/etc/hosts"', 'args.path under "/w"'), NEVER, (("the other test", 'args.path == "/etc/hosts"'),)),
    Case("inside and not inside",
         'agent a { allow read when args.path under "/w/a" unless ⟦args.path under "/w"⟧ }',
         both('args.path under "/w/a"', 'not args.path under "/w"'), NEVER, (("the other test", 'args.path under "/w/a"'),)),
    Case("two schemes",
         'agent a { allow fetch when args.url.scheme == "http" and ⟦args.url.scheme == "https"⟧ }',
         both('args.url.scheme == "http"', 'args.url.scheme == "https"'), NEVER, (("the other test", 'args.url.scheme == "http"'),)),
    Case("two domains",
         'agent a { allow fetch when args.url.host in_domain "a.example" and ⟦args.url.host in_domain "b.example"⟧ }',
         both('args.url.host in_domain "a.example"', 'args.url.host in_domain "b.example"'), NEVER,
         (("the other test", 'args.url.host in_domain "a.example"'),)),
    Case("two networks",
         'agent a { allow fetch when args.url.host in_net "10.0.0.0/8" and ⟦args.url.host in_net "192.168.0.0/16"⟧ }',
         both('args.url.host in_net "10.0.0.0/8"', 'args.url.host in_net "192.168.0.0/16"'), NEVER,
         (("the other test", 'args.url.host in_net "10.0.0.0/8"'),)),
    Case("two beginnings",
         'agent a { allow pay when args.note like "a*" and ⟦args.note like "b*"⟧ }',
         both('args.note like "a*"', 'args.note like "b*"'), NEVER, (("the other test", 'args.note like "a*"'),)),
    Case("commands apart",
         'agent a { allow shell when args.command runs only ["ls ..."] and ⟦args.command runs only ["cat ..."]⟧ }',
         both('args.command runs only ["ls ..."]', 'args.command runs only ["cat ..."]'), NEVER,
         (("the other test", 'args.command runs only ["ls ..."]'),)),
    Case("absent and tested",
         "agent a { allow pay when not has args.rate and ⟦args.rate > 1⟧ }",
         both("not has args.rate", "args.rate > 1"), NEVER, (("the other test: `not has args.rate`", "has args.rate"),)),
    Case("in a deny",
         "agent a { allow pay; deny pay when args.amount < 0 and ⟦args.amount > 100⟧ }",
         both("args.amount < 0", "args.amount > 100"), NEVER.replace("allow", "deny"), (("the other test", "args.amount < 0"),)),
    Case("in a deny, on an argument that may be absent",
         "agent a { allow pay; deny pay when args.rate < 0 and ⟦args.rate > 100⟧ }",
         both("args.rate < 0", "args.rate > 100"), "no value satisfies that: keep one of the tests, or join them with `or`",
         (("the other test", "args.rate < 0"),)),
    Case("in every branch",
         "agent a { allow pay when args.amount > 5 and (⟦args.amount < 3⟧ or args.amount == 4) }",
         both("args.amount > 5", "args.amount < 3"), NEVER, (("the other test", "args.amount > 5"),)),
    Case("three tests together",
         "agent a { allow pay when args.amount > 0 and args.amount < 3 and args.amount != 1 and ⟦args.amount != 2⟧ }",
         "no value of `args.amount` satisfies all tests of this condition", NEVER, (("the other test", "args.amount > 0"),)),
    Case("a required argument that is not sent",
         "agent a { allow pay when not ⟦has args.amount⟧ }",
         "`not has args.amount` never holds on `pay`", "this `allow` never applies: drop the test, or the rule"),
    Case("a text outside a pattern",
         'agent a { allow pay when args.note == "a@evil.test" and ⟦args.note like "*@corp.example"⟧ }',
         both('args.note == "a@evil.test"', 'args.note like "*@corp.example"'), NEVER, (("the other test", 'args.note == "a@evil.test"'),)),
    Case("a text outside an expression",
         'agent a { allow pay when args.note in europe and ⟦args.note matches r"x.*"⟧ }',
         both("args.note in europe", 'args.note matches r"x.*"'), NEVER, (("the other test", "args.note in europe"),)),
    Case("a text that an expression excludes",
         'agent a { allow pay when args.note == "de" unless ⟦args.note matches r"d."⟧ }',
         both('args.note == "de"', 'not args.note matches r"d."'), NEVER, (("the other test", 'args.note == "de"'),)),
    Case("a part that a text does not hold",
         'agent a { allow pay when args.note == "de" and ⟦args.note contains "x"⟧ }',
         both('args.note == "de"', 'args.note contains "x"'), NEVER, (("the other test", 'args.note == "de"'),)),
    Case("a class above the highest",
         'agent a { allow any when ⟦tool.risk > "high"⟧ }',
         '`tool.risk > "high"` never holds on `copy`, `fetch`, `pay` and 4 more', "this `allow` never applies: drop the test, or the rule"),
    Case("classes apart",
         'agent a { allow any when tool.risk <= "low" and ⟦tool.risk == "high"⟧ }',
         both('tool.risk <= "low"', 'tool.risk == "high"'), NEVER, (("the other test", 'tool.risk <= "low"'),)),
    Case("two addresses",
         'agent a { allow fetch when args.url == "https://a.example/" and ⟦args.url == "https://b.example/"⟧ }',
         both('args.url == "https://a.example/"', 'args.url == "https://b.example/"'), NEVER,
         (("the other test", 'args.url == "https://a.example/"'),)),
    Case("a negative depth",
         "agent a { allow read when ⟦agent.depth < 0⟧ }",
         "`agent.depth < 0` never holds on `read`", "this `allow` never applies: drop the test, or the rule"),
]  # fmt: skip


@pytest.mark.parametrize("case", CONTRADICTIONS, ids=str)
def test_a_condition_that_can_never_hold_is_an_error(case: Case) -> None:
    judge(Case(case.name, TOOLS + case.policy, case.says, case.help, case.labels), codes.CONTRADICTION)


POSSIBLE = {
    "an interval with one number": "allow pay when args.amount >= 5 and args.amount <= 5",
    "a number between, where fractions are allowed": "allow pay when args.rate > 5 and args.rate < 6",
    "nested folders": 'allow read when args.path under "/a" and args.path under "/a/b"',
    "one of several folders": 'allow read when args.path under ["/a", "/b"] and args.path under "/b"',
    "a folder without a part": 'allow read when args.path under "/a" unless args.path under "/a/b"',
    "two arguments that may be equal": 'allow copy when args.from == args.to and args.from under "/a"',
    "true or false": "allow pay when args.dry_run == true or args.dry_run == false",
    "two different arguments": 'allow copy when args.from under "/a" and args.to under "/b"',
    "a subdomain": 'allow fetch when args.url.host in_domain "x.example" and args.url.host in_domain "a.x.example"',
    "beginnings in other letters": 'allow pay when args.note like "a*" and args.note like "A*"',
    "a sender and a domain": 'allow pay when args.note like "a*" and args.note like "*b"',
    "an escape in a pattern": r'allow pay when args.note like "\\*a*" and args.note like "*"',
    "every of an empty list twice": 'allow tag when every args.names == "a" and every args.names == "b"',
    "some and not every": 'allow tag when some args.names == "a" and not every args.names == "a"',
    "every in a folder, some deeper": 'allow read when every paths under "/w" and some paths under "/w/a"',
    "some of a list twice": 'allow tag when some args.names == "a" and some args.names == "b"',
    "one branch can hold": "allow pay when args.amount > 5 and (args.amount < 3 or args.amount == 7)",
    "alternatives": "allow pay when args.amount > 5 or args.amount < 3",
    "an absent argument in a deny": "deny pay when not has args.rate and args.rate > 1",
    "two spellings of one path": 'allow read when args.path == "/a/b" and args.path == "/a//b"',
    "two spellings of one address": 'allow fetch when args.url == "https://a.example" and args.url == "https://A.example:443/"',
    "two spellings of one host": 'allow fetch when args.url.host == "a.example" and args.url.host == "A.EXAMPLE."',
    "a class by rank": 'allow any when tool.risk >= "low" and tool.risk < "high"',
    "a host tool": 'allow any when tool.server == ""',
    "a glob and a folder": 'allow read when args.path under "/w" and args.path glob "**/.env"',
    "a text in other letters": 'allow pay when args.note == "DE" and args.note like "de"',
    "a class that a pattern's tools may get": 'deny f* when tool.risk == "high"',
    "v4 and v6": 'allow fetch when args.url.host in_net "10.0.0.0/8" and args.url.host in_net "fc00::/7"',
}


@pytest.mark.parametrize("rule", POSSIBLE.values(), ids=POSSIBLE.keys())
def test_a_condition_that_can_hold_is_left_alone(rule: str) -> None:
    assert of_code(f"{TOOLS}agent a {{ allow any; {rule} }}", codes.CONTRADICTION) == []


def test_a_condition_with_too_many_branches_is_left_undecided() -> None:
    wide = " and ".join(f"(args.amount == {n} or args.amount == {n + 1})" for n in range(0, 60, 2))
    assert of_code(f"{TOOLS}agent a {{ allow pay when {wide} }}", codes.CONTRADICTION) == []


VALUES = [
    Case("a tool that the rule does not name",
         'agent a { allow read, pay; deny read, pay when tool.name == ⟦"raed"⟧ }',
         '`tool.name` is never `"raed"` on `pay` and `read`', 'did you mean `"read"`?'),
    Case("one of a list",
         'agent a { allow read, pay; deny read, pay when tool.name in ["read", ⟦"payy"⟧] }',
         '`tool.name` is never `"payy"` on `pay` and `read`', 'did you mean `"pay"`?'),
    Case("a class that none of the named tools has",
         'agent a { allow read when tool.risk == ⟦"high"⟧ }',
         '`tool.risk` is never `"high"` on `read`', 'it can be `"read"`'),
    Case("nothing near",
         'agent a { allow read, pay; deny read, pay when tool.name == ⟦"shell"⟧ }',
         '`tool.name` is never `"shell"` on `pay` and `read`', 'it can be `"pay"` or `"read"`'),
]  # fmt: skip


@pytest.mark.parametrize("case", VALUES, ids=str)
def test_a_value_that_never_occurs_is_an_error(case: Case) -> None:
    judge(Case(case.name, TOOLS + case.policy, case.says, case.help, case.labels), codes.IMPOSSIBLE_VALUE)


GITHUB = """\
catalog "tests/catalogs/server-github.json" as github
server github {}
bundle forge { server github }
"""

ENUMS = [
    Case("outside the schema's enum",
         'agent a { connect forge; allow github/list_issues when args.state == ⟦"opne"⟧ }',
         '`args.state` is never `"opne"` on `github/list_issues`', 'did you mean `"open"`?'),
    Case("nothing near in the enum",
         'agent a { connect forge; allow github/list_issues when args.state in ["open", ⟦"pending"⟧] }',
         '`args.state` is never `"pending"` on `github/list_issues`', 'it can be `"all"`, `"closed"` or `"open"`'),
    Case("not in",
         'agent a { connect forge; allow github/list_issues when args.state != ⟦"shut"⟧ }',
         '`args.state` is never `"shut"` on `github/list_issues`', 'it can be `"all"`, `"closed"` or `"open"`'),
    Case("a let of which nothing fits",
         'let states = ["x", "y"]; agent a { connect forge; allow github/list_issues when args.state in ⟦states⟧ }',
         '`args.state` is never `"x"` on `github/list_issues`', 'it can be `"all"`, `"closed"` or `"open"`'),
]  # fmt: skip


@pytest.mark.parametrize("case", ENUMS, ids=str)
def test_a_value_outside_the_enum_is_an_error(case: Case) -> None:
    judge(Case(case.name, GITHUB + case.policy, case.says, case.help, case.labels), codes.IMPOSSIBLE_VALUE)


def test_a_let_that_serves_several_enums_may_hold_values_of_others() -> None:
    policy = (
        GITHUB
        + 'let states = ["open", "y"]; agent a { connect forge; allow github/list_issues when args.state in states }'
    )
    assert of_code(policy, codes.IMPOSSIBLE_VALUE) == []


def test_all_values_of_an_enum_excluded_is_a_contradiction() -> None:
    policy = (
        GITHUB
        + 'agent a { connect forge; allow github/list_issues when ⟦args.state not in ["open", "closed", "all"]⟧ }'
    )
    says = '`args.state not in ["open", "closed", "all"]` never holds on `github/list_issues`'
    judge(Case("", policy, says, "this `allow` never applies: drop the test, or the rule"), codes.CONTRADICTION)


BRANCHES = [
    Case("an arm of an or",
         "agent a { allow pay when args.amount == 1 or (args.amount > 5 and ⟦args.amount < 3⟧) }",
         both("args.amount > 5", "args.amount < 3"), "this part of the condition has no effect: correct it or drop it",
         (("the other test", "args.amount > 5"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", BRANCHES, ids=str)
def test_a_branch_that_can_never_hold_is_a_warning(case: Case) -> None:
    judge(Case(case.name, TOOLS + case.policy, case.says, case.help, case.labels), codes.DEAD_BRANCH)


ALWAYS = [
    Case("a tautology",
         "agent a { allow pay when ⟦args.amount < 5 or args.amount >= 3⟧ }",
         "`args.amount < 5 or args.amount >= 3` always holds on `pay`",
         "this `allow` applies to every call: drop `when`, or correct the test"),
    Case("the name of the only tool",
         'agent a { allow pay when ⟦tool.name == "pay"⟧ }',
         '`tool.name == "pay"` always holds on `pay`', "this `allow` applies to every call: drop `when`, or correct the test"),
    Case("a required argument that is sent",
         "agent a { allow pay when ⟦has args.amount⟧ and args.amount < 5 }",
         "`args.amount` is always sent to `pay`", "drop this test"),
    Case("unless what never holds",
         "agent a { allow pay unless ⟦args.amount > 5 and args.amount < 3⟧ }",
         "`args.amount > 5 and args.amount < 3` never holds on `pay`",
         "this `allow` applies to every call: drop `unless`, or correct the test"),
]  # fmt: skip


@pytest.mark.parametrize("case", ALWAYS, ids=str)
def test_a_condition_that_always_holds_is_a_warning(case: Case) -> None:
    judge(Case(case.name, TOOLS + case.policy, case.says, case.help, case.labels), codes.ALWAYS_TRUE)


SOMETIMES = {
    "an optional argument": "allow pay when args.rate < 5 or args.rate >= 3",
    "an optional argument that is sent": "allow pay when has args.rate and args.rate < 5",
    "one of two tools": 'allow pay, read when tool.name == "pay"',
    "an opaque test or its negation": 'allow read when args.path under "/a" or not args.path under "/a"',
}


@pytest.mark.parametrize("rule", SOMETIMES.values(), ids=SOMETIMES.keys())
def test_a_condition_that_may_fail_is_left_alone(rule: str) -> None:
    assert of_code(f"{TOOLS}agent a {{ {rule} }}", codes.ALWAYS_TRUE) == []
