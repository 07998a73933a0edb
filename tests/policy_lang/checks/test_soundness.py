"""What the checks claim holds for the evaluator: fixes change no decision, contradictions never grant, tautologies always do."""

import random
from collections.abc import Iterator
from itertools import product

import pytest

from policy_lang import codes
from policy_lang.checks import run_checks
from policy_lang.diagnostics import Diagnostic
from policy_lang.gather import Root, gather
from policy_lang.lower.program import lower
from policy_lang.names.bind import bind
from policy_lang.source import Source
from tests.policy_lang.checks.judging import PROJECT, mended
from zcpolicy import Program, Resolver, Session

TOOLS = """\
tool ping() risk read
tool note(n: integer) risk low
tool mail(to: string, cc?: string) risk medium
tool pay(amount: integer) risk high
tool git/get(n: integer) risk read
tool git/put(n: integer) risk high
bundle forge { server git }
bundle half { server git only get }
label seen
let names = ["a", "b"]
group small = ping, note
"""

SETS = ["ping", "note", "mail", "pay", "any", "@small", "git/*", "ping, mail", "note, pay", "any except pay", "*"]
CONDITIONS = [
    "args.amount > 5", "args.n == 1", 'args.to == "x"', "args.cc in names", "has args.cc", "not has args.cc",
    "args.n > 0 and args.n < 9", "args.n == 1 or args.amount == 1", 'tool.risk == "high"',
]  # fmt: skip
OTHERS = [
    "autonomy supervised", "autonomy readonly", "autonomy full", "limit 2 calls", "limit 1 calls per hour", "limit 2 calls per minute",
    "autonomy { read allow; low ask; medium allow; high ask }",
]  # fmt: skip
CALLS: list[tuple[str | tuple[str, str], dict[str, object]]] = [
    ("ping", {}), ("note", {"n": 1}), ("note", {"n": 7}), ("mail", {"to": "x"}), ("mail", {"to": "y", "cc": "a"}),
    ("pay", {"amount": 1}), ("pay", {"amount": 9}), (("git", "get"), {"n": 1}), (("git", "put"), {"n": 3}),
]  # fmt: skip
SILENT = {"ZC3101", "ZC3102", "ZC3106", "ZC3107", "ZC3108", "ZC3109", "ZC3110"}
"""Findings that say: without this, nothing changes."""


def _statement(rng: random.Random, *, grants: bool) -> str:
    tools = rng.choice(SETS)
    if rng.random() < 0.25:
        return rng.choice([*OTHERS, f"only {tools}", f"limit 1 calls to {tools}", f"mark seen on {tools}"])
    effect = rng.choice(["ask", "deny", *(["allow", "allow", "auto_approve"] if grants else [])])
    condition = rng.choice(["", "", f" when {rng.choice(CONDITIONS)}", f" unless {rng.choice(CONDITIONS)}"])
    approval = " with approval" if effect == "allow" and rng.random() < 0.2 else ""
    return f"{effect} {tools}{approval}{condition}"


def _policy(rng: random.Random) -> str:
    def body(*, grants: bool) -> str:
        return "".join(f"    {_statement(rng, grants=grants)}\n" for _ in range(rng.randint(1, 6)))

    agents = f"agent a {{\n    connect forge\n    allow any\n{body(grants=True)}}}\n"
    agents += f"agent b {{\n    connect half\n    allow @small, git/get\n{body(grants=True)}}}\n"
    agents += f"agent c narrows a {{\n{body(grants=False)}}}\n"
    return TOOLS + agents + (f"ceiling {{\n{body(grants=False)}}}\n" if rng.random() < 0.5 else "")


def _checked(policy: str) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The program, whatever the checks say, and what they say."""
    gathered, found = gather([Root(Source("policy", f"zcpolicy 1\n{policy}"), PROJECT)])
    bound, of_names = bind(gathered)
    assert [d.message for d in (*found, *of_names) if d.severity == "error"] == []
    return Program.build(*lower(bound)), run_checks(bound)


def _decisions(program: Program) -> Iterator[tuple[object, ...]]:
    """Every call, three times in a session, for every agent."""
    resolver = Resolver(program)
    for agent, (tool, arguments) in product("abc", CALLS):
        run = resolver.resolve(agent, session=Session(interactive=True))
        effects: list[str] = []
        for _ in range(3):
            decision = run.decide(tool, arguments)
            effects.append(decision.effect)
            if decision.effect != "allow":
                break
            run.permit(decision)
        yield agent, tool, tuple(effects)


@pytest.mark.parametrize("seed", range(12))
def test_a_fix_of_what_decides_nothing_changes_no_decision(seed: int) -> None:
    policy = _policy(random.Random(seed))
    program, found = _checked(policy)
    before = list(_decisions(program))
    for finding in found:
        if finding.code.id in SILENT and finding.fix is not None:
            after, _ = _checked(mended(policy, finding.fix))
            assert list(_decisions(after)) == before, finding.message


TESTS = [
    "args.n == {0}", "args.n != {0}", "args.n < {0}", "args.n <= {0}", "args.n > {0}", "args.n >= {0}", "args.n in [{0}, {1}]",
    "args.n not in [{0}, {1}]", 'args.s == "{2}"', 'args.s != "{2}"', 'args.s in ["{2}", "{3}"]', 'args.s like "{2}*"', "args.b",
    "args.b == false", "has args.o", 'args.o == "{2}"', "args.n == args.m",
]  # fmt: skip


def _condition(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        letters = rng.choice("xyz"), rng.choice("xyz")
        return rng.choice(TESTS).format(rng.randrange(4), rng.randrange(4), *letters)
    if rng.random() < 0.2:
        return f"not ({_condition(rng, depth - 1)})"
    return f"({_condition(rng, depth - 1)} {rng.choice(['and', 'or'])} {_condition(rng, depth - 1)})"


def _granted(program: Program) -> list[bool]:
    """Whether the one rule grants, for every call over a small world."""
    run = Resolver(program).resolve("a")
    answers: list[bool] = []
    for n, m, s, b, o in product(range(-1, 5), (0, 2), "wxyz", (True, False), (None, "x", "z")):
        sent = {"n": n, "m": m, "s": s, "b": b} | ({} if o is None else {"o": o})
        answers.append(run.decide("t", sent).effect == "allow")
    return answers


@pytest.mark.parametrize("seed", range(25))
def test_what_never_holds_never_grants_and_what_always_holds_always_does(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(8):
        when, unless = _condition(rng, 2), _condition(rng, 1)
        rule = f"allow t when {when}" + (f" unless {unless}" if rng.random() < 0.3 else "")
        program, found = _checked(
            f"tool t(n: integer, m: integer, s: string, b: boolean, o?: string) risk read\nagent a {{ {rule} }}"
        )
        said = {finding.code for finding in found}
        if codes.CONTRADICTION in said:
            assert not any(_granted(program)), rule
        elif (
            any(f.code == codes.ALWAYS_TRUE and "applies to every call" in (f.help or "") for f in found)
            and " unless " not in rule
        ):
            assert all(_granted(program)), rule


TYPED_TESTS = [
    'args.p under "{0}"', 'args.p == "{0}"', 'args.p glob "**/b"', 'args.u.host in_domain "{1}"', 'args.u.host == "{1}"',
    'args.u.scheme == "{2}"', "args.u.port {3} 443", 'args.u == "https://{1}/"', 'args.c runs only ["{4} ..."]',
    'some args.l == "{6}"', 'every args.l == "{6}"', 'every args.l in ["a", "{6}"]', 'some args.l != "{6}"', 'every args.l != "{6}"',
    'args.u.host in_net "10.0.0.0/{5}"', 'args.u.host in_net "192.168.0.0/16"',
]  # fmt: skip
TYPED_CALLS = [
    {"p": path, "u": url, "c": command, "l": names}
    for path in ("/a", "/a/b", "/A/b", "/b", "/a/../b", "/", "x", "~/a")
    for url in (
        "https://a.example/", "http://x.a.example:8080/p", "https://b.example:443", "ftp://A.example.", "http://10.0.0.1/",
        "http://[::ffff:192.168.0.1]/", "nonsense",
    )
    for command, names in (("ls -l", ["a"]), ("cat x; ls", ["a", "b"]), ("", []), ("ls", ["b"]))
]  # fmt: skip


def _typed_test(rng: random.Random) -> str:
    path, host, scheme = (
        rng.choice(["/", "/a", "/a/b", "/b"]),
        rng.choice(["a.example", "x.a.example", "b.example"]),
        rng.choice(["http", "https"]),
    )
    order, program, bits = rng.choice(["<", ">", "==", "!="]), rng.choice(["ls", "cat"]), rng.choice([8, 30])
    test = rng.choice(TYPED_TESTS).format(path, host, scheme, order, program, bits, rng.choice("abc"))
    return f"not {test}" if rng.random() < 0.25 and "runs" not in test else test


@pytest.mark.parametrize("seed", range(30))
def test_typed_tests_that_never_hold_together_never_grant(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        condition = " and ".join(_typed_test(rng) for _ in range(rng.randint(2, 4)))
        policy = f"tool t(p: path, u: url, c: shell, l: list<string>) risk read\nagent a {{ allow t when {condition} }}"
        program, found = _checked(policy)
        if codes.CONTRADICTION in {finding.code for finding in found}:
            run = Resolver(program).resolve("a", session=Session(cwd="/a"))
            assert [call for call in TYPED_CALLS if run.decide("t", call).effect == "allow"] == [], condition
