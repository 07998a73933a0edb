"""No tool touches the log, however it spells it."""

import os
from pathlib import Path

import pytest

import policy_lang
from zcpolicy import Resolver, Session
from zcpolicy.daemon.log.place import files

from .scene import filled

POLICY = """zcpolicy 1

tool shell(command: shell)                risk high
tool write(path: path, text: string)      risk medium
tool read(path: path)                     risk read

agent coder { allow any }
"""


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("write", "log/decisions-000000000001.jsonl"),
        ("write", "log/head"),
        ("write", "log/key"),
        ("write", "log/decisions-000000000099.jsonl"),
        ("write", "./x/../log/head"),
        ("write", "link/head"),
        ("shell", "rm -r log"),
        ("shell", "cd log && truncate -s 0 head"),
        ("shell", "echo x >> link/decisions-000000000001.jsonl"),
    ],
)
def test_a_tool_that_would_touch_the_log(tool: str, argument: str, tmp_path: Path) -> None:
    filled(tmp_path / "log", 1)
    (tmp_path / "link").symlink_to("log")
    resolver = Resolver(policy_lang.loads(POLICY), protected=files(tmp_path / "log"))
    session = Session(client="ann", id="s1", cwd=str(tmp_path), resolve_link=os.path.realpath)
    run = resolver.resolve("coder", session=session)
    arguments = {"command": argument} if tool == "shell" else {"path": argument, "text": "x"}
    decision = run.decide(tool, arguments)
    assert (decision.effect, decision.reason) == ("deny", "protected")
    assert run.decide("read", {"path": "log/head"}).effect == "allow"
