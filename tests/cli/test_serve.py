"""`zcpolicy serve --check` and `zcpolicy token`, as a person meets them."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from zcpolicy.daemon.tokens import Tokens

POLICY = (
    "zcpolicy 1\n\ntool look(note: string) risk read\n\nagent helper {\n    autonomy supervised\n    allow look\n}\n"
)
SETTINGS = """\
[policy]
layers = ["team.zcpolicy"]
[state]
folder = "var"
[http]
[agents.helper]
model = "scripted:answers.json"
surfaces = ["gateway"]
"""


@pytest.fixture(autouse=True)
def _files(cli: Cli) -> None:
    Path("team.zcpolicy").write_text(POLICY, "utf-8")
    Path("answers.json").write_text('{"steps": ["hello"]}', "utf-8")
    Path("daemon.toml").write_text(SETTINGS, "utf-8")


def test_nothing_is_wrong(cli: Cli) -> None:
    assert cli("serve", "--check", "daemon.toml") == (0, "no findings in 2 files\n", "")


def test_a_mistake_is_drawn_where_it_stands(cli: Cli) -> None:
    Path("daemon.toml").write_text(SETTINGS.replace("[http]", "[htpp]"), "utf-8")
    ran = cli("serve", "--check", "daemon.toml")
    assert (ran.status, ran.err) == (1, "")
    assert (
        ran.out
        == """\
error[ZC6002]: there is no setting `htpp`
 --> daemon.toml:5:1
  |
5 | [htpp]
  | ^^^^^^
  |
  = help: did you mean `http`?

1 error in 1 file
"""
    )


def test_findings_as_json(cli: Cli) -> None:
    Path("daemon.toml").write_text(SETTINGS.replace("[http]", "[http]\nport = -1"), "utf-8")
    ran = cli("serve", "--check", "daemon.toml", "--format", "json")
    (found,) = json.loads(ran.out)["diagnostics"]
    assert (ran.status, found["code"], found["span"]["start"]) == (1, "ZC6003", {"line": 6, "column": 8})


def test_with_errors_nothing_is_served(cli: Cli) -> None:
    Path("daemon.toml").write_text(SETTINGS.replace("[http]", "[http]\nport = -1"), "utf-8")
    ran = cli("serve", "daemon.toml")
    assert (ran.status, ran.out) == (1, "")
    assert "ZC6003" in ran.err
    assert not Path("var").exists()


def test_there_is_no_such_file(cli: Cli) -> None:
    assert cli("serve", "nothing.toml") == (2, "", "zcpolicy: `nothing.toml` does not exist\n")


def test_a_token_is_shown_once_and_works(cli: Cli) -> None:
    ran = cli("token", "add", "ann")
    assert (ran.status, ran.err) == (0, "shown once: it is not kept, only its digest is\n")
    holder = Tokens(str(Path("var/tokens.json").absolute())).holder_of(ran.out.strip())
    assert holder is not None
    assert (holder.name, holder.role) == ("ann", "client")
    made = json.loads(cli("token", "add", "root", "--operator", "--format", "json").out)
    assert (made["name"], made["role"], made["token"][:4]) == ("root", "operator", "zcp_")


def test_who_has_one(cli: Cli) -> None:
    assert cli("token", "list") == (0, "", "nobody has a token\n")
    cli("token", "add", "ann")
    cli("token", "add", "root", "--operator")
    assert cli("token", "revoke", "ann") == (0, "", "")
    first, second = cli("token", "list").out.splitlines()
    assert first.startswith("ann: client, since ")
    assert ", revoked " in first
    assert second.startswith("root: operator, since ")
    assert ", revoked " not in second
    listed = json.loads(cli("token", "list", "--format", "json").out)["tokens"]
    assert [(one["name"], one["revoked"] is None) for one in listed] == [("ann", False), ("root", True)]
    assert "digest" not in listed[0]


REFUSED = {
    "no name of anybody": (("add", "a b"), "zcpolicy: a name is letters, digits and `_ . @ -`, at most 64, and begins with a letter, a digit or `_`\n"),
    "a second one": (("add", "ann"), "zcpolicy: `ann` has a token already: revoke it first\n"),
    "nobody's": (("revoke", "ben"), "zcpolicy: nobody has a token under the name `ben`\n"),
    "settings that are not there": (("list", "--settings", "no.toml"), "zcpolicy: `no.toml` does not exist\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(cli: Cli, what: str) -> None:
    cli("token", "add", "ann")
    words, said = REFUSED[what]
    assert cli("token", *words) == (2, "", said)


def test_a_token_in_a_file(cli: Cli) -> None:
    assert cli("token", "add", "root", "--operator", "--output", "root.token") == (0, "", "")
    file = Path("root.token")
    assert file.stat().st_mode & 0o777 == 0o600
    holder = Tokens(str(Path("var/tokens.json").absolute())).holder_of(file.read_text().strip())
    assert holder is not None
    assert holder.is_operator
    told = json.loads(cli("token", "add", "ben", "--output", "ben.token", "--format", "json").out)
    assert told == {"name": "ben", "role": "client", "file": "ben.token"}


def test_a_file_is_not_written_over(cli: Cli) -> None:
    Path("ann.token").write_text("something")
    Path("link.token").symlink_to("elsewhere")
    for name, why in {
        "ann.token": "is there already, and is not written over",
        "link.token": "is there already, and is not written over",
        "none/ann.token": "cannot be written: no such file or directory",
    }.items():
        assert cli("token", "add", "ann", "--output", name) == (2, "", f"zcpolicy: `{name}` {why}\n")
    assert cli("token", "list").err == "nobody has a token\n"
    assert Path("ann.token").read_text() == "something"
    cli("token", "add", "ann")
    assert cli("token", "add", "ann", "--output", "new.token").err.endswith("has a token already: revoke it first\n")
    assert not Path("new.token").exists()


def test_the_first_token_for_an_address_that_others_reach(cli: Cli) -> None:
    Path("daemon.toml").write_text(SETTINGS.replace("[http]", '[http]\naddress = "0.0.0.0"'), "utf-8")
    assert cli("serve", "--check", "daemon.toml").status == 1
    assert cli("token", "add", "ann").status == 0
    assert cli("serve", "--check", "daemon.toml").status == 0


def test_a_folder_that_others_can_write_is_given_no_tokens(cli: Cli) -> None:
    Path("var").mkdir()
    Path("var").chmod(0o777)
    ran = cli("token", "add", "ann")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.endswith("var` can be written by others\n")
