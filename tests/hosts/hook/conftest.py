"""A hook as its host runs it, in this process or in one of its own; the events are those that hosts really sent."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any, NamedTuple

import pytest

from policy_lang.cli.main import main

PAYLOADS = Path(__file__).parent / "payloads"
POLICY = """\
zcpolicy 1

tool Bash(command: shell, description?: string) risk high
tool bash(command: shell, description?: string) risk high
tool run_shell_command(command: shell, description?: string) risk high
tool run_in_terminal(command: shell) risk high
tool Shell(command: shell) risk high
tool git/git_status(repo_path: path) risk read
label seen
bundle forge { server git }
group shells = Bash, bash, run_shell_command, run_in_terminal, Shell

agent coder {
    autonomy full
    connect forge
    allow git/git_status
    allow @shells when args.command runs only ["echo ..."]
    ask @shells when args.command runs any ["echo ask"]
    deny @shells when args.command runs any ["echo no"]
    deny @shells when marked seen and args.command runs any ["echo after"]
    mark seen on @shells when args.command runs any ["echo mark"]
}

agent counted {
    autonomy full
    allow Bash
    limit 3 calls to Bash per session
}
"""
HOSTS = ("claude-code", "codex", "gemini", "copilot", "cursor", "vscode")
SHELL_EVENTS = {
    "claude-code": "claude-code.bash",
    "codex": "codex.bash",
    "gemini": "gemini.bash",
    "copilot": "copilot.bash",
    "cursor": "cursor.shell",
    "vscode": "vscode.bash",
}
"""For each host, what it sends before a shell command."""

Event = dict[str, Any]


class Ran(NamedTuple):
    """What the hook's process left."""

    status: int
    out: str
    err: str

    @property
    def effect(self) -> str:
        """What a host makes of it, by what was observed: 2 blocks, any other failure runs the call."""
        if self.status == 2 and self.err.strip():
            return "deny"
        if self.status != 0:
            return "RUNS"
        if not self.out.strip():
            return "allow"
        said = json.loads(self.out)
        said = said.get("hookSpecificOutput", said)
        return str(said.get("permissionDecision") or said.get("decision") or said.get("permission"))


Hook = Callable[..., Ran]


def payload(name: str, **changed: object) -> Event:
    """A recorded event, with some of its fields as they are given here; None takes one away."""
    event: Event = json.loads((PAYLOADS / f"{name}.json").read_text())
    return {key: value for key, value in {**event, **changed}.items() if value is not None}


def shell(host: str, command: str, **changed: object) -> Event:
    """The host's event before a shell command."""
    event = payload(SHELL_EVENTS[host], **changed)
    if "command" in event:
        return {**event, "command": command}
    key = "toolArgs" if "toolArgs" in event else "tool_input"
    return {**event, key: {"command": command}}


def words(folder: Path, host: str, *more: str, agent: str = "coder") -> list[str]:
    policy = [] if "--policy" in more else ["--policy", str(folder / "team.zcpolicy")]
    return ["hook", host, *policy, "--agent", agent, "--state", str(folder / "state"), *more]


def text(event: object) -> bytes:
    return event if isinstance(event, bytes) else json.dumps(event).encode()


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Hook:
    """Runs `zcpolicy hook` in this process."""
    (tmp_path / "team.zcpolicy").write_text(POLICY)

    def run(host: str, event: object, *more: str, agent: str = "coder") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text(event))))
        status = main(words(tmp_path, host, *more, agent=agent))
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Ran(status, out, err)

    return run


def start(
    folder: Path, host: str, *more: str, agent: str = "coder", stdin: int = PIPE, stdout: int | IO[bytes] = PIPE
) -> subprocess.Popen[bytes]:
    """Starts it in a process of its own, as hosts do."""
    command = [sys.executable, "-m", "policy_lang.cli.main", *words(folder, host, *more, agent=agent)]
    return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)


def left(process: subprocess.Popen[bytes], event: object) -> Ran:
    """What it left, once it was given its event."""
    out, err = process.communicate(text(event), timeout=60)
    return Ran(process.returncode, (out or b"").decode(), (err or b"").decode())
