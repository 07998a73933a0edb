"""What a `test` block means: one session, in order."""

import pytest

from policy_lang.compile import compile_text
from policy_lang.testing import TestResult, run_tests

POLICY = """\
zcpolicy 1
tool read(path: path, note?: string = "none") risk read
tool write(path: path, text: string) risk medium
tool mail(to: string) risk medium
tool pay(amount: number) risk medium
tool anything(value: any) risk read
tool notes/open(path: path) risk read
bundle kept { server notes }
label untrusted, private
context { channel: string, level: integer }
skill reading { only read }

agent a {
    autonomy full
    skills reading
    allow read, pay, anything
    allow write with approval
    allow mail when session.channel == "mail" and session.level > 1
    deny mail when marked untrusted because "what was read may not leave"
    mark untrusted on read
    mark private on write
    ask anything when marked private
    deny read when args.path under "/w/secret"
    limit 2 calls to pay per hour
    delegate to b, c
    delegate depth 2
}
agent b { autonomy full; allow read, pay; delegate to c }
agent c { autonomy full; allow read, mail }
agent d { autonomy full; connect kept; allow notes/open when args.path under "/w" }
"""


def run(*steps: str) -> TestResult:
    made = compile_text(POLICY + 'test "t" {\n' + "\n".join(steps) + "\n}\n")
    assert made.program is not None, made.diagnostics
    (result,) = run_tests(made.program, made.tests)
    return result


MAIL = 'given channel = "mail", level = 2'


@pytest.mark.parametrize(
    ("case", "steps"),
    [
        ("a call that is allowed marks", ["agent a", MAIL, 'call mail(to: "x") => allow', 'call read(path: "/w") => allow', 'call mail(to: "x") => deny because "what was read may not leave"']),
        ("a call that is denied does not mark", ["agent a", MAIL, 'call read(path: "/w/secret/x") => deny', 'call mail(to: "x") => allow']),
        ("a call that asks does not run", ["agent a", 'call write(path: "/w", text: "") => ask', "call anything(value: 1) => allow"]),
        ("a call that is allowed is charged, and time frees it", ["agent a", "call pay(amount: 1) => allow", "call pay(amount: 1) => allow", "call pay(amount: 1) => deny budget", "wait 59m", "call pay(amount: 1) => deny budget", "wait 2m", "call pay(amount: 1) => allow"]),
        ("labels that are given", ["agent a", MAIL, "given marked untrusted, private", 'call mail(to: "x") => deny', "call anything(value: 1) => ask"]),
        ("a home that is given", ["agent a", 'given home = "/w"', 'call read(path: "~/secret/x") => deny', 'call read(path: "~/x") => allow']),
        ("a directory that is given", ["agent a", 'given cwd = "/w/secret"', 'call read(path: "x") => deny', 'given cwd = "/w"', 'call read(path: "x") => allow']),
        ("the directory of every server", ["agent d", 'call notes/open(path: "x") => deny not-granted', 'given server_cwd = "/w"', 'call notes/open(path: "x") => allow', 'given server_cwd = "/v"', 'call notes/open(path: "x") => deny']),
        ("nobody to ask", ["agent a", "given interactive = false", 'call write(path: "/w", text: "") => deny no-approver']),
        ("facts of the context have kinds", ["agent a", 'given channel = "mail", level = "2"', 'call mail(to: "x") => deny not-granted']),
        ("a child is bounded by its delegator", ["agent c as child of b as child of a", 'call read(path: "/w") => allow', MAIL, 'call mail(to: "x") => deny']),
        ("an agent that may not be delegated to", ["agent a as child of b", 'call read(path: "/w") => deny not-granted']),
        ("a skill restricts", ["agent a with skill reading", 'call read(path: "/w") => allow', "call pay(amount: 1) => deny outside-only"]),
        ("a skill that the agent does not have", ["agent b with skill reading", 'call read(path: "/w") => deny']),
        ("the host writes defaults", ["agent a", 'call read(path: "/w", note: null) => deny malformed', 'call read(path: "/w") => allow']),
        ("an argument twice", ["agent a", "call pay(amount: 1, amount: 1) => deny malformed"]),
        ("numbers are exact", ["agent a", "call pay(amount: 0.1) => allow", "call pay(amount: true) => deny malformed"]),
        ("values of every kind", ["agent a", 'call anything(value: [1, "\\ud800", null]) => deny malformed', 'call anything(value: {"a": [true, null, 1.50]}) => allow']),
        ("another agent in the same session", ["agent a", "call pay(amount: 1) => allow", "agent b", "call pay(amount: 1) => allow", 'call read(path: "/w") => allow', "agent a", "call pay(amount: 1) => allow", "call pay(amount: 1) => deny budget"]),
        ("an unknown tool", ["agent a", "call nothing() => deny unknown-tool"]),
    ],
)  # fmt: skip
def test_holds(case: str, steps: list[str]) -> None:
    result = run(*steps)
    assert (result.problem, [call.complaint for call in result.calls if call.complaint]) == (None, []), case
    assert result.passed


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ('call read(path: "/w") => deny', "expected deny, and it is allow"),
        ("call pay(amount: true) => deny budget", "expected the reason `budget`, and it is `malformed`"),
        ('call read(path: "/w/secret") => deny because "no"', "expected another `because`; it is none"),
        ('call write(path: "/w", text: "") => allow', "expected allow, and it is ask"),
    ],
)
def test_does_not_hold(step: str, complaint: str) -> None:
    result = run("agent a", step)
    assert [call.complaint for call in result.calls] == [complaint]
    assert not result.passed


def test_every_test_starts_afresh() -> None:
    block = 'test "t" { agent a; call pay(amount: 1) => allow; call pay(amount: 1) => allow; call pay(amount: 1) => deny }\n'
    made = compile_text(POLICY + block + block.replace('"t"', '"u"'))
    assert made.program is not None
    assert [result.passed for result in run_tests(made.program, made.tests)] == [True, True]


def test_a_call_before_any_agent_is_a_problem() -> None:
    made = compile_text(POLICY + 'test "t" { call pay(amount: 1) => allow }\n')
    if made.program is not None:
        (result,) = run_tests(made.program, made.tests)
        assert result.problem == "no `agent` is named before the first call"


def test_a_relative_directory_is_a_problem() -> None:
    made = compile_text(POLICY + 'test "t" { agent a; given cwd = "repo"; call pay(amount: 1) => allow }\n')
    assert made.program is not None
    (result,) = run_tests(made.program, made.tests)
    assert (result.passed, result.problem) == (False, "`cwd` is an absolute path")


@pytest.mark.parametrize("value", ['"repo"', "1", "null"])
def test_a_servers_directory_that_is_none_is_a_problem(value: str) -> None:
    made = compile_text(f'{POLICY}test "t" {{ agent a; given server_cwd = {value}; call pay(amount: 1) => allow }}\n')
    assert made.program is not None
    (result,) = run_tests(made.program, made.tests)
    assert (result.passed, result.problem) == (False, "`server_cwd` is an absolute path")
