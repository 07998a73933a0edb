"""`zcpolicy resolve`: what an agent gets, as a person reads it."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

POLICY = """\
zcpolicy 1

tool note(text: string) risk low
label untrusted
scope team

agent clerk {
    autonomy full
    allow note
    memory read own, team write own
}
"""
MEMORY = """
memory
  read own, team
  write own
      memory read own, team write own  clerk.zcpolicy:10
"""


@pytest.fixture(autouse=True)
def _clerk(cli: Cli) -> None:
    Path("clerk.zcpolicy").write_text(POLICY, "utf-8")


@pytest.mark.parametrize("session", [(), ("--session", '{"client": "ada"}'), ("--session", '{"interactive": false}')])
def test_memory_is_shown_as_the_policy_says_it(cli: Cli, session: tuple[str, ...]) -> None:
    ran = cli("resolve", "clerk.zcpolicy", "--agent", "clerk", "--format", "plain", *session)
    assert ran.status == 0
    assert MEMORY in ran.out


def test_memory_in_json(cli: Cli) -> None:
    found = json.loads(cli("resolve", "clerk.zcpolicy", "--agent", "clerk", "--format", "json").out)["memory"]
    assert (found["read"], found["write"]) == (["own", "team"], ["own"])


def test_a_session_that_does_not_fit(cli: Cli) -> None:
    ran = cli("resolve", "clerk.zcpolicy", "--agent", "clerk", "--session", '{"labels": ["untrustd"]}')
    message = "zcpolicy: --session: label `untrustd` is not one of this policy: did it mean `untrusted`?\n"
    assert (ran.status, ran.out, ran.err) == (2, "", message)
