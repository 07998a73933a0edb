"""`test`, `fmt`, `compile`, `resolve`, `explain`, `init`."""

import json
from pathlib import Path

import pytest

from policy_lang.codes import ALL
from zcpolicy.program import load_compiled

from .conftest import TEAM, Cli

FAILING = TEAM.replace('"/w/a") => allow', '"/w/.env") => allow')


def write(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


# --- test -----------------------------------------------------------------------------------------------


def test_all_hold(cli: Cli) -> None:
    ran = cli("test", "team.zcpolicy")
    assert (ran.status, ran.out) == (0, "1 test, 2 calls in 1 file: all hold\n")


def test_a_file_without_tests_is_no_file_whose_tests_hold(cli: Cli) -> None:
    write("bare.zcpolicy", "zcpolicy 1\n")
    assert cli("test", "bare.zcpolicy") == (0, "no `test` block in 1 file: nothing was tested\n", "")
    assert cli("test", "bare.zcpolicy", "team.zcpolicy").out == "1 test, 2 calls in 2 files: all hold\n"


def test_a_failure_shows_why(cli: Cli) -> None:
    write("team.zcpolicy", FAILING)
    ran = cli("test", "team.zcpolicy")
    assert ran.status == 1
    assert (
        ran.out
        == """\
failed: reading is free, secrets stay
  team.zcpolicy:34: call file_read(path: "/w/.env") => allow
    expected allow, and it is deny (denied)
      team.zcpolicy:21: deny any when some paths glob "**/.env" because "secrets are never touched"

1 test, 2 calls in 1 file: 1 failed
"""
    )


def test_plain_and_json_of_a_failure(cli: Cli) -> None:
    write("team.zcpolicy", FAILING)
    line = "team.zcpolicy:34: failed: reading is free, secrets stay: expected allow, and it is deny (denied)\n"
    assert cli("test", "team.zcpolicy", "--format", "plain").out == line
    said = json.loads(cli("test", "team.zcpolicy", "--format", "json").out)
    assert said["summary"] == {"tests": 1, "failed": 1, "calls": 2, "files": 1}
    assert [(call["line"], call["expected"], call["effect"], call["passed"]) for call in said["tests"][0]["calls"]] == [
        (34, "allow", "deny", False),
        (35, "deny", "deny", True),
    ]


def test_a_file_that_does_not_compile_fails(cli: Cli) -> None:
    write("bad.zcpolicy", "zcpolicy 1\nagent a { alow x }\n")
    ran = cli("test", ".")
    assert ran.status == 1
    assert ran.out == "1 test, 2 calls in 2 files: 1 file did not compile\n"
    assert ran.err.startswith("error[ZC1")
    assert len(json.loads(cli("test", ".", "--format", "json").out)["diagnostics"]) == 1


def test_coverage(cli: Cli) -> None:
    ran = cli("test", "team.zcpolicy", "--coverage")
    assert ran.status == 0
    assert (
        ran.out
        == """\
team.zcpolicy: 2 of 7 rules held in some call
  team.zcpolicy:18: allow shell when args.command runs only ["git status ..."]
    no call reached it
  team.zcpolicy:19: allow send when session.channel == "mail"
    no call reached it
  team.zcpolicy:20: ask file_read when marked untrusted
    `marked untrusted` was never true
  team.zcpolicy:27: allow file_read
    no call reached it
  team.zcpolicy:30: deny file_read when args.path under "/etc"
    `args.path under "/etc"` was never true

1 test, 2 calls in 1 file: all hold
"""
    )
    said = json.loads(cli("test", "team.zcpolicy", "--coverage", "--format", "json").out)
    assert [rule["line"] for rule in said["coverage"]] == [17, 18, 19, 20, 21, 27, 30]


# --- fmt ------------------------------------------------------------------------------------------------

UGLY = "zcpolicy 1\n\n\n\ntool read()   risk read   # reads\nagent a {\n  autonomy supervised\n      allow   read\n}\n"


def test_fmt_rewrites_in_place_and_once(cli: Cli) -> None:
    write("a.zcpolicy", UGLY)
    assert cli("fmt", "--check", "a.zcpolicy") == (1, "a.zcpolicy: would change\n", "")
    assert Path("a.zcpolicy").read_text(encoding="utf-8") == UGLY
    assert cli("fmt", "a.zcpolicy") == (0, "a.zcpolicy: rewritten\n", "")
    text = Path("a.zcpolicy").read_text(encoding="utf-8")
    assert "# reads" in text
    assert cli("fmt", "a.zcpolicy") == (0, "", "")
    assert cli("fmt", "--check", "a.zcpolicy").status == 0


def test_fmt_leaves_what_does_not_parse(cli: Cli) -> None:
    write("a.zcpolicy", "zcpolicy 1\nagent a {")
    ran = cli("fmt", "a.zcpolicy")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("error[ZC1005]")
    assert Path("a.zcpolicy").read_text(encoding="utf-8") == "zcpolicy 1\nagent a {"
    assert json.loads(cli("fmt", "a.zcpolicy", "--format", "json").out)["changed"] == []


# --- compile --------------------------------------------------------------------------------------------


def test_compile_writes_beside_the_policy(cli: Cli) -> None:
    ran = cli("compile", "team.zcpolicy")
    digest = load_compiled("team.zcpc").digest
    assert (ran.status, ran.out) == (0, f"team.zcpc {digest}\n")
    said = json.loads(cli("compile", "team.zcpolicy", "-o", "other.zcpc", "--format", "json").out)
    assert (said["file"], said["digest"]) == ("other.zcpc", digest)


def test_compile_writes_nothing_for_an_error(cli: Cli) -> None:
    cli("compile", "team.zcpolicy")
    before = Path("team.zcpc").read_bytes()
    write("team.zcpolicy", "zcpolicy 1\nagent a { alow x }\n")
    ran = cli("compile", "team.zcpolicy")
    assert (ran.status, ran.out) == (1, "")
    assert Path("team.zcpc").read_bytes() == before
    said = json.loads(cli("compile", "team.zcpolicy", "--format", "json").out)
    assert (said["file"], said["digest"], len(said["diagnostics"])) == (None, None, 1)


# --- resolve --------------------------------------------------------------------------------------------


def test_resolve_shows_every_surface_with_origins(cli: Cli) -> None:
    said = json.loads(cli("resolve", "team.zcpolicy", "--agent", "coder", "--format", "json").out)
    assert [tool["tool"] for tool in said["tools"]] == [
        "file_read",
        "shell",
        ["github", "get_me"],
        ["github", "odd name"],
    ]
    assert said["autonomy"]["classes"] == {"read": "allow", "low": "ask", "medium": "ask", "high": "ask"}
    assert said["autonomy"]["from"] == [
        {"body": "coder", "file": "team.zcpolicy", "line": 14, "text": "autonomy supervised"}
    ]
    assert said["skills"]["names"] == ["reading"]
    assert said["connects"]["names"] == ["github"]
    assert said["delegation"]["to"] == {"helper": {"independent": False}}


def test_resolve_for_people(cli: Cli) -> None:
    ran = cli("resolve", "team.zcpolicy", "--agent", "helper")
    assert ran.status == 0
    assert "tools (1)\n  file_read (read)\n      allow file_read  team.zcpolicy:27\n" in ran.out
    for title in ("autonomy", "approvals", "limits", "runtime", "memory", "skills", "delegation", "servers"):
        assert f"\n{title}\n" in ran.out


def test_resolve_of_an_unknown_agent(cli: Cli) -> None:
    assert cli("resolve", "team.zcpolicy", "--agent", "nobody") == (4, "", "zcpolicy: there is no agent `nobody`\n")
    assert cli("resolve", "team.zcpolicy", "--agent", "helpr").err.endswith("; did you mean `helper`?\n")


# --- explain --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["ZC2101", "zc2101", "2101"])
def test_explain(cli: Cli, code: str) -> None:
    ran = cli("explain", code)
    assert ran.status == 0
    assert ran.out.startswith("# ZC2101: unknown tool\n")


@pytest.mark.parametrize("code", sorted(ALL))
def test_every_code_is_explained_with_more_than_its_title(cli: Cli, code: str) -> None:
    said = cli("explain", code).out
    assert said.startswith(f"# {code}: {ALL[code].title}\n")
    assert "\n## Why\n" in said


def test_explain_in_json(cli: Cli) -> None:
    said = json.loads(cli("explain", "ZC2101", "--format", "json").out)
    assert (said["id"], said["title"], said["severity"]) == (*ALL["ZC2101"],)
    assert said["page"].startswith("# ZC2101")


# --- init -----------------------------------------------------------------------------------------------

TOOLS = '{"tools": [{"name": "look", "annotations": {"readOnlyHint": true}}, {"name": "write-it"}]}'


def test_init_prints_a_policy_that_compiles(cli: Cli) -> None:
    write("tools.json", TOOLS)
    ran = cli("init", "tools.json", "--as", "notes")
    assert ran.status == 0
    write("notes.zcpolicy", ran.out)
    assert cli("check", "--deny-warnings", "notes.zcpolicy").status == 0
    assert cli("test", "notes.zcpolicy") == (0, "1 test, 2 calls in 1 file: all hold\n", "")


def test_init_writes_a_file_that_finds_the_list_and_never_overwrites(cli: Cli) -> None:
    write("tools.json", TOOLS)
    Path("policies").mkdir()
    assert cli("init", "tools.json", "--as", "notes", "-o", "policies/notes.zcpolicy").status == 0
    assert cli("check", "policies/notes.zcpolicy").status == 0
    again = cli("init", "tools.json", "--as", "notes", "-o", "policies/notes.zcpolicy")
    assert (again.status, again.err) == (2, "zcpolicy: `policies/notes.zcpolicy` exists already\n")
