"""A decision that only hangs on a directory which the host did not give says so: in its trace, to a person, in the log."""

import json
from pathlib import Path
from typing import Any

import pytest

import policy_lang
from zcpolicy import Decision, Resolver, Session

POLICY = """zcpolicy 1
tool git/status(repo: path) risk read
tool file_read(path: path) risk read
bundle forge { server git }
agent a {
    autonomy full
    connect forge
    allow git/*
    allow file_read when args.path under "/w"
    deny any when some paths under "/etc" because "not yours"
    deny any when some paths glob "**/.ssh/**"
}
agent b { autonomy full; allow file_read; ask file_read unless args.path under "/w" }
"""
STATUS = ("git", "status")
OF_SESSION = "a path is relative, and the session's working directory is unknown: `cwd`"
OF_SERVER = "a path is relative, and this server's working directory is unknown: `server_cwd`"


def decided(agent: str, tool: Any, arguments: dict[str, str], **facts: Any) -> Decision:
    session = Session(interactive=True, **facts)
    return Resolver(policy_lang.loads(POLICY)).resolve(agent, session=session).decide(tool, arguments)


@pytest.mark.parametrize(
    ("case", "decision", "effect", "says"),
    [
        ("a server's directory", decided("a", STATUS, {"repo": "etc/x"}), "deny", OF_SERVER),
        ("a grant that cannot be told", decided("a", "file_read", {"path": "x"}), "deny", OF_SESSION),
        ("a question that could be spared", decided("b", "file_read", {"path": "x"}), "ask", OF_SESSION),
        ("allowed: nothing is missing", decided("a", STATUS, {"repo": "x"}), "allow", ""),
        ("denied wherever it starts", decided("a", STATUS, {"repo": ".ssh/x"}), "deny", ""),
        ("an absolute path", decided("a", STATUS, {"repo": "/etc"}), "deny", ""),
        ("the directory is told", decided("a", "file_read", {"path": "x"}, cwd="/v"), "deny", ""),
        ("the server's is told", decided("a", STATUS, {"repo": "x"}, server_cwd={"git": "/etc"}), "deny", ""),
        ("that of another process does not help", decided("a", STATUS, {"repo": "etc"}, cwd="/w"), "deny", OF_SERVER),
    ],
)
def test_what_is_missing_is_named(case: str, decision: Decision, effect: str, says: str) -> None:
    assert decision.effect == effect, case
    assert ("cannot be told: " in decision.for_person, says in decision.for_person) == (bool(says), True)
    named = says.partition(": `")[2].removesuffix("`")
    assert json.loads(decision.for_log).get("lacks", "") == named
    assert (f"'lacks': '{named}'" in str(decision.trace())) == bool(named)


def test_a_default_of_null_names_no_path(tmp_path: Path) -> None:
    listed = [
        {
            "name": "branch",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "has": {"type": ["string", "null"], "default": None}},
                "required": ["text"],
            },
        }
    ]
    (tmp_path / "tools.json").write_text(json.dumps(listed), "utf-8")
    program = policy_lang.loads(f'{POLICY}catalog "tools.json" as git\n', folder=tmp_path)
    for supplies in (True, False):
        run = Resolver(program).resolve("a", session=Session(interactive=True, supplies_defaults=supplies))
        assert run.decide(("git", "branch"), {"text": "local"}).effect == "allow"
        assert run.decide(("git", "branch"), {"text": ".ssh/id"}).effect == "deny"
