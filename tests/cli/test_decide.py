"""`decide`: statuses, the decision's shape, facts from JSON, and what a start may load."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from policy_lang.cli.errors import CommandError
from policy_lang.cli.facts import narrowing_from
from policy_lang.cli.tool_name import read_tool, written
from policy_lang.compile import compile_text
from zcpolicy.exact import thawed
from zcpolicy.narrowing import body_of
from zcpolicy.program import agent_of

from .conftest import Cli

ROOT = Path(__file__).parents[2]
READ = ("file_read", "--args", '{"path": "/w/a"}')
STATUS = ("shell", "--args", '{"command": "git status"}')


@pytest.mark.parametrize(
    ("words", "status", "answer"),
    [
        (READ, 0, "allow allowed"),
        (STATUS, 3, "ask asked"),
        (("file_read", "--args", '{"path": "/w/.env"}'), 4, "deny denied"),
        (("file_read",), 4, "deny malformed"),
        (("nothing",), 4, "deny unknown-tool"),
        (("github/get_me",), 0, "allow allowed"),
        (('github/"odd name"',), 0, "allow allowed"),
        (("file_read", "--args", "{"), 4, "deny malformed"),
        (("file_read", "--args", '{"path": "/w/a", "path": "/w/b"}'), 4, "deny malformed"),
        ((*STATUS, "--session", '{"interactive": false}'), 4, "deny no-approver"),
        ((*READ, "--session", '{"labels": ["untrusted"]}'), 3, "ask asked"),
        (("send", "--args", '{"to": "a", "body": "b"}'), 4, "deny not-granted"),
        (
            ("send", "--args", '{"to": "a", "body": "b"}', "--session", '{"context": {"channel": "mail"}}'),
            3,
            "ask asked",
        ),
        (("file_read", "--args", '{"path": "b/../.env"}', "--session", '{"cwd": "/w"}'), 4, "deny denied"),
        ((*READ, "--narrow", '{"only": []}'), 4, "deny outside-only"),
        ((*READ, "--narrow", '{"only": ["file_read", ["github", "get_me"]]}'), 0, "allow allowed"),
        ((*READ, "--narrow", '{"deny": ["file_read"]}'), 4, "deny denied"),
        ((*READ, "--narrow", '{"ask": ["file_read"]}'), 3, "ask asked"),
        ((*STATUS, "--narrow", '{"autonomy": "readonly"}'), 4, "deny autonomy"),
        ((*READ, "--narrow", '{"limits": ["0 calls to file_read per hour"]}'), 4, "deny budget"),
        ((*STATUS, "--skill", "reading"), 4, "deny outside-only"),
        ((*READ, "--skill", "nothing"), 4, "deny not-granted"),
    ],
)
def test_answer(cli: Cli, words: tuple[str, ...], status: int, answer: str) -> None:
    ran = cli("decide", "team.zcpolicy", "--agent", "coder", *words, "--format", "plain")
    assert (ran.status, ran.err) == (status, "")
    assert ran.out.startswith(answer)


@pytest.mark.parametrize(
    ("words", "status", "answer"),
    [
        (["--agent", "helper", "--child-of", "coder", *READ], 0, "allow allowed"),
        (["--agent", "coder", "--child-of", "helper", *READ], 4, "deny not-granted"),
        (["--agent", "nobody", *READ], 4, "deny unknown-agent"),
        (["--agent", "helper", "--child-of", "nobody", *READ], 4, "deny unknown-agent"),
        (["--agent", "helper", "--child-of", "coder", *READ, "--narrow", '{"only": []}'], 4, "deny outside-only"),
    ],
)
def test_delegates(cli: Cli, words: list[str], status: int, answer: str) -> None:
    ran = cli("decide", "team.zcpolicy", *words, "--format", "plain")
    assert (ran.status, ran.out.startswith(answer)) == (status, True), ran.out


def test_a_policy_that_does_not_compile(cli: Cli) -> None:
    Path("bad.zcpolicy").write_text("zcpolicy 1\nagent a { alow x }\n", encoding="utf-8")
    ran = cli("decide", "bad.zcpolicy", "--agent", "a", "x")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("error[ZC1")
    assert cli("decide", "bad.zcpolicy", "--agent", "a", "x", "--format", "json").status == 1


def test_arguments_from_stdin(cli: Cli) -> None:
    words = ("decide", "team.zcpolicy", "--agent", "coder", "file_read", "--args", "-")
    assert cli(*words, stdin='{"path": "/w/a"}').status == 0
    assert cli(*words, stdin='{"path": "/etc/a"}').status == 4
    assert cli(*words, stdin="\udcff").status == 4


KEYS = [
    *["effect", "reason", "rules", "bodies", "arguments", "charges", "approval", "facts", "digest", "generation"],
    *["for_model", "for_person", "for_log"],
]


def test_json_has_the_documented_keys(cli: Cli) -> None:
    words = ("decide", "team.zcpolicy", "--agent", "coder", *READ, "--format", "json")
    said = json.loads(cli(*words).out)
    assert list(said) == KEYS
    assert said["rules"] == [
        {"file": "team.zcpolicy", "line": 17, "text": "allow file_read, github/*", "because": None}
    ]
    assert list(json.loads(cli(*words, "--trace").out)) == [*KEYS, "trace"]


@pytest.mark.parametrize("words", [["--agent", "nobody"], ["--agent", "coder", "--skill", "nothing"]])
def test_json_of_an_execution_that_cannot_be(cli: Cli, words: list[str]) -> None:
    said = json.loads(cli("decide", "team.zcpolicy", *words, *READ, "--format", "json").out)
    assert list(said) == [*KEYS, "note"]
    assert (said["effect"], said["rules"]) == ("deny", [])


def test_trace_reads_like_a_proof(cli: Cli) -> None:
    words = ("file_read", "--args", '{"path": "/etc/x"}', "--session", '{"labels": ["untrusted"]}')
    assert (
        cli("decide", "team.zcpolicy", "--agent", "coder", *words, "--trace").out
        == """\
deny (denied): file_read for agent coder
  team.zcpolicy:30: deny file_read when args.path under "/etc"

1. agent coder:
   deny any when some paths glob "**/.env" because "secrets are never touched"  [team.zcpolicy:21]
       does not hold: some paths glob "**/.env" — it is ["/etc/x"]
   allow file_read, github/*  [team.zcpolicy:17]
       holds: it has no condition
   ask file_read when marked untrusted  [team.zcpolicy:20]
       holds: marked untrusted — labels: untrusted
   → ask
2. ceiling:
   deny file_read when args.path under "/etc"  [team.zcpolicy:30]
       holds: args.path under "/etc" — it is "/etc/x"
   → deny (denied)
∴ the least of ask, deny is deny; the decision is deny (denied).
"""
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--sesion", "{}"], "there is no option `--sesion`; did you mean `--session`?"),
        (["--args"], "`--args` needs a value: `--args JSON`"),
        (["--agent", "coder"], "`--agent` stands twice"),
        (["--trace=1"], "`--trace` takes no value"),
        (["--format", "xml"], "`--format` is human, plain or json, not `xml`"),
        (["more"], "usage: zcpolicy decide POLICY --agent A TOOL [options]; see zcpolicy decide --help"),
        (["--session", "{"], "--session: the text is not well-formed JSON"),
        (["--session", "[]"], "--session: the text is not a JSON object"),
        (["--session", '{"a": 1, "a": 2}'], "--session: an object has the same name twice"),
        (["--session", '{"labls": []}'], "--session: there is no key `labls`; did you mean `labels`?"),
        (["--session", '{"cwd": 7}'], "--session: `cwd` is the text of a path"),
        (["--session", '{"cwd": "repo"}'], "--session: `cwd` is an absolute path"),
        (["--session", '{"client": 7}'], "--session: `client` must be text that is not empty"),
        (["--session", '{"client": ""}'], "--session: `client` must be text that is not empty"),
        (["--session", '{"labels": ["untrustd"]}'], "--session: label `untrustd` is not one of this policy: did it mean `untrusted`?"),
        (["--session", '{"context": {"chanel": "mail"}}'], "--session: `chanel` is no fact of this policy's context: did it mean `channel`?"),
        (["--session", '{"interactive": 1}'], "--session: `interactive` is true or false"),
        (["--session", '{"platform": "vms"}'], '--session: `platform` is "posix" or "windows"'),
        (["--session", '{"env": {"HOME": 1}}'], "--session: `env` holds what is no text"),
        (["--session", '{"env": []}'], "--session: `env` must be an object"),
        (["--session", '{"labels": "untrusted"}'], "--session: `labels` must be a list"),
        (["--session", '{"labels": [1]}'], "--session: `labels` must be a list of strings"),
        (["--session", '{"history": [{}]}'], "--session: an entry of `history` has no `tool`"),
        (["--session", '{"history": [{"tool": ["a"]}]}'], '--session: history: `tool` must be a tool: `"name"`, or `["server", "name"]`'),
        (["--session", '{"history": [{"tool": "a", "when": 1}]}'], "--session: history: there is no key `when`; there are `tool`, `args`, `ok`, `at`"),
        (["--session", '{"history": [{"tool": "a", "at": "now"}]}'], "--session: history: `at` must be a number of seconds"),
        (["--narrow", '{"onyl": []}'], "--narrow: there is no key `onyl`; did you mean `only`?"),
        (["--narrow", '{"only": "file_read"}'], "--narrow: `only` must be a list"),
        (["--narrow", '{"autonomy": "wild"}'], "--narrow: `autonomy` is `readonly`, `supervised`, `full` or an answer for each class"),
        (["--narrow", '{"autonomy": []}'], "--narrow: `autonomy` must be a level or an object"),
        (["--narrow", '{"limits": ["many"]}'], "--narrow: `many` is no limit: `many` is no amount; write `20 calls to shell per hour`"),
        (["--narrow", '{"exclude_memory": 1}'], "--narrow: `exclude_memory` is true or false"),
    ],
)  # fmt: skip
def test_wrong_usage(cli: Cli, words: list[str], complaint: str) -> None:
    ran = cli("decide", "team.zcpolicy", "--agent", "coder", *READ, *words)
    assert (ran.status, ran.out, ran.err) == (2, "", f"zcpolicy: {complaint}\n")


# --- tools as they are written -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("file_read", "file_read"),
        ("github/get_me", ("github", "get_me")),
        ("git-hub/get-me", ("git-hub", "get-me")),
        ('"odd name"', "odd name"),
        ('github/"a/b"', ("github", "a/b")),
        ('"ser ver"/"a*"', ("ser ver", "a*")),
        ('"a\\u0000b"', "a\x00b"),
        ("größe", "größe"),
    ],
)
def test_tool(text: str, tool: str | tuple[str, str]) -> None:
    assert read_tool(text) == tool
    assert read_tool(written(tool)) == tool


@pytest.mark.parametrize(
    "text", ["", "a b", "a/", "/a", "a/b/c", '"a', 'a"b"', "7", "a*", "*", "any", "@readers", "s/get_*"]
)
def test_no_tool(text: str) -> None:
    with pytest.raises(CommandError):
        read_tool(text)


# --- limits, read without the language -----------------------------------------------------------------

TOOLS = "tool shell(n: integer, to: string) risk high\ntool s/get() risk read\nbundle b { server s }\n"


@pytest.mark.parametrize(
    "limit",
    [
        "20 calls to shell per hour",
        "1_000 calls per day",
        "3 calls",
        "2 concurrent calls to shell, s/get",
        "10 iterations per turn",
        "2 delegations per session",
        "50_000 tokens per 90m",
        "5.00 usd per day",
        '5 eur per calendar month in "Europe/Berlin"',
        '1 usd per calendar day in "UTC"',
        "10m time per turn",
        "5.00 usd to shell per day",
        "10m time to shell, s/get",
        "1000.50 sum args.n to shell per minute",
        "3 calls to shell per day for each args.to",
        "3 calls to shell for each client",
        "0 calls to shell",
    ],
)  # fmt: skip
def test_a_limit_is_what_the_language_makes_of_it(limit: str) -> None:
    text = (
        f"zcpolicy 1\n{TOOLS}agent a {{ autonomy full; connect b; allow s/get, shell with approval; limit {limit} }}\n"
    )
    program = compile_text(text).program
    assert program is not None
    agent = agent_of(program, "a")
    assert agent is not None
    narrowing = narrowing_from(json.dumps({"limits": [limit]}), program)
    assert narrowing is not None
    body = body_of(narrowing, program, {name: number for number, name in enumerate(program.tools)})
    assert thawed(body.data.get("limits", [])[0]) == {**thawed(agent["body"].get("limits", [])[0]), "pot": "narrowing"}


@pytest.mark.parametrize(
    "limit",
    ["", "calls", "-1 calls", "1.5 calls", "1 call", "1 calls to", "1 calls to sh*", "1 calls to nothing", "1 calls per",
     "1 calls per year", "1 calls per hour for", "1 calls per hour for each", "1 calls per hour for each x", "1 usd in",
     '1 usd per calendar year in "UTC"', '1 usd per calendar day in "Mars"', "10m calls", "1 sum", "1 calls ; 2",
     "1 calls per hour extra", "1 tokens to shell", "1 iterations to shell per turn", "1 delegations to shell",
     "1 tokens per hour for each args.to", "9" * 2_000],
)  # fmt: skip
def test_no_limit(limit: str) -> None:
    program = compile_text(f"zcpolicy 1\n{TOOLS}agent a {{ autonomy full; connect b; allow s/get }}\n").program
    assert program is not None
    with pytest.raises(CommandError, match=r"^--narrow: "):
        narrowing_from(json.dumps({"limits": [limit]}), program)


@pytest.mark.parametrize(
    ("narrow", "said"),
    [
        ({"deny": ["git_status"]}, '`git_status`, which is no tool: write `("git", "git_status")`'),
        ({"ask": ["@reads"]}, "takes exact names, and `@reads` is a pattern"),
        ({"only": ["read_fil"]}, "did it mean `read_file`?"),
        ({"limits": ["3 calls to git_status per hour"]}, 'write `("git", "git_status")`'),
    ],
)
def test_a_narrowing_names_tools_of_the_policy(cli: Cli, narrow: dict[str, list[str]], said: str) -> None:
    Path("t.zcpolicy").write_text(
        "zcpolicy 1\ntool read_file() risk read\ntool git/git_status() risk read\nagent a { allow any }\n",
        encoding="utf-8",
    )
    ran = cli("decide", "t.zcpolicy", "--agent", "a", "read_file", "--narrow", json.dumps(narrow))
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


# --- compiled policies ---------------------------------------------------------------------------------


def test_a_compiled_policy_answers_as_its_source(cli: Cli) -> None:
    assert cli("compile", "team.zcpolicy").status == 0
    for words in (READ, STATUS, ("file_read", "--args", '{"path": "/w/.env"}'), ("nothing",)):
        answers = [
            cli("decide", policy, "--agent", "coder", *words, "--format", "json")
            for policy in ("team.zcpolicy", "team.zcpc")
        ]
        assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("data", "status"),
    [(b"", 1), (b"{}", 1), (b"\xff\xfe", 1), (b'{"digest":"', 1), (b"[" * 100_000, 1), (None, 2)],
)
def test_a_compiled_policy_that_is_none(cli: Cli, data: bytes | None, status: int) -> None:
    if data is not None:
        Path("x.zcpc").write_bytes(data)
    ran = cli("decide", "x.zcpc", "--agent", "coder", *READ)
    assert (ran.status, ran.out) == (status, "")


def test_a_compiled_policy_holds_its_layers(cli: Cli) -> None:
    cli("compile", "team.zcpolicy")
    ran = cli("decide", "team.zcpc", "--agent", "coder", *READ, "--layer", "team.zcpolicy")
    assert (ran.status, ran.err) == (2, "zcpolicy: `--layer` is for policies; a compiled one holds its layers\n")


def test_deciding_on_a_compiled_policy_loads_no_language(cli: Cli, tmp_path: Path) -> None:
    cli("compile", "team.zcpolicy")
    code = (
        "import sys; from policy_lang.cli.main import main; status = main(sys.argv[1:]); "
        "print(status, *sorted(sys.modules), file=sys.stderr)"
    )
    words = ["decide", "team.zcpc", "--agent", "helper", *READ]
    path = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
    ran = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    status, *modules = ran.stderr.split()
    assert status == "0"
    ours = {name for name in modules if name.startswith("policy_lang")}
    assert {name for name in ours if not name.startswith("policy_lang.cli")} == {"policy_lang"}
    assert (
        set(modules) & {"lark", "click", "rich", "pydantic", "dataclasses", "inspect", "pathlib", "argparse", "sqlite3"}
        == set()
    )


def test_an_agent_that_is_missing_or_misspelt(cli: Cli) -> None:
    ran = cli("decide", "team.zcpolicy", "file_read")
    assert (ran.status, ran.err) == (
        2,
        "zcpolicy: which agent calls? say it with `--agent A`; see zcpolicy decide --help\n",
    )
    assert "did you mean `coder`?" in cli("decide", "team.zcpolicy", "--agent", "codr", "file_read").out


SERVED = """zcpolicy 1
tool git/git_status(repo_path: path) risk read
tool refund(order: integer) risk low
bundle b { server git }
agent a { autonomy full; connect b; allow any }
"""


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        ("git/git_statu", "did you mean `git/git_status`?"),
        ("git_status", "did you mean `git/git_status`?"),
        ("gti/git_status", "did you mean `git/git_status`?"),
        ("refnd", "did you mean `refund`?"),
        ("quite_another", "a server's is written `server/name`"),
    ],
)
def test_a_misspelt_tool_is_answered_with_the_one_that_is_near(cli: Cli, tmp_path: Path, tool: str, says: str) -> None:
    policy = tmp_path / "served.zcpolicy"
    policy.write_text(SERVED, "utf-8")
    ran = cli("decide", str(policy), "--agent", "a", tool)
    assert ran.out.splitlines()[1] == f"  the policy knows no tool of this name; {says}"


def test_a_directory_that_is_not_known_is_named(cli: Cli, tmp_path: Path) -> None:
    policy = tmp_path / "served.zcpolicy"
    policy.write_text(SERVED.replace("allow any", 'allow any; deny any when some paths under "/etc"'), "utf-8")
    ran = cli("decide", str(policy), "--agent", "a", "git/git_status", "--args", '{"repo_path": "etc"}', "--trace")
    missing = "a path is relative, and this server's working directory is unknown: `server_cwd`"
    assert f"\n  {missing}\n" in ran.out
    assert f"""cannot be told: some paths under "/etc" — it is ["etc"]; {missing}\n""" in ran.out
