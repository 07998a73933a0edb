"""The hook in each host's settings: the diff comes first, what else stands there stays, and it can be taken out again."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from policy_lang.cli.hook_install import PLACES, entry
from policy_lang.cli.main import main

from .conftest import HOSTS, POLICY, SHELL_EVENTS, Ran, payload, shell

OTHERS: dict[str, Any] = {
    "model": "m",
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "said"}]}],
    },
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "team.zcpolicy").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def install(host: str, *more: str) -> int:
    return main(["hook", "install", host, "--policy", "team.zcpolicy", "--agent", "coder", *more])


def settings_of(folder: Path, host: str) -> Path:
    file = PLACES[host].file
    return folder / (f"home{file[1:]}" if file.startswith("~") else file)


def commands(host: str, settings: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for event in PLACES[host].events:
        for one in settings["hooks"][event]:
            found += [hook.get("command") or hook["bash"] for hook in one.get("hooks", [one])]
    return found


@pytest.mark.parametrize(
    ("host", "written"),
    [
        (
            "claude-code",
            {"matcher": "*", "hooks": [{"type": "command", "command": "C", "timeout": 30, "onFailure": "block"}]},
        ),
        ("codex", {"matcher": "*", "hooks": [{"type": "command", "command": "C", "timeout": 30}]}),
        (
            "gemini",
            {"matcher": "*", "hooks": [{"type": "command", "name": "zcpolicy", "command": "C", "timeout": 30000}]},
        ),
        ("copilot", {"type": "command", "bash": "C", "timeoutSec": 30}),
        ("cursor", {"command": "C", "timeout": 30, "failClosed": True}),
        ("vscode", {"type": "command", "command": "C", "timeout": 30}),
    ],
)
def test_each_host_is_told_to_block_where_it_can_be(host: str, written: dict[str, Any]) -> None:
    assert entry(host, "C") == written


@pytest.mark.parametrize("host", HOSTS)
def test_nothing_is_written_without_a_yes(folder: Path, host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert install(host) == 1
    shown = capsys.readouterr()
    assert "+++" in shown.out
    assert "zcpolicy: the hook could not run" in shown.out
    assert "--yes" in shown.err
    assert not settings_of(folder, host).exists()


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_installed_decides(folder: Path, host: str) -> None:
    """As hosts do: the command is given to a shell."""
    assert install(host, "--yes", "--state", "kept state") == 0
    settings = json.loads(settings_of(folder, host).read_text())
    for command in set(commands(host, settings)):
        for said, effect in {"echo ok": "allow", "echo no": "deny"}.items():
            event = json.dumps(shell(host, said))
            done = subprocess.run(command, shell=True, input=event, capture_output=True, text=True, check=False)
            assert Ran(done.returncode, done.stdout, done.stderr).effect == effect


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("instead", ["/nowhere/python", "false", "kill -9 $$; true", "exit 1"])
def test_what_cannot_even_start_denies(folder: Path, host: str, instead: str) -> None:
    """Python is gone, our package is broken, the process is killed: without the end of the command most hosts run the call."""
    install(host, "--yes")
    [command, *_] = commands(host, json.loads(settings_of(folder, host).read_text()))
    _, bar, end = command.partition(" || ")
    killed = f"sh -c {shlex.quote(instead)}"
    done = subprocess.run(killed + bar + end, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "zcpolicy: the hook could not run" in done.stderr


@pytest.mark.parametrize("host", HOSTS)
def test_an_agent_cannot_take_its_hook_away(folder: Path, host: str) -> None:
    install(host, "--yes")
    file = settings_of(folder, host)
    [command, *_] = commands(host, json.loads(file.read_text()))
    event = json.dumps(shell(host, f"echo x {file}"))
    done = subprocess.run(command, shell=True, input=event, capture_output=True, text=True, check=False)
    assert Ran(done.returncode, done.stdout, done.stderr).effect == "deny"


@pytest.mark.parametrize("host", HOSTS)
def test_it_is_installed_once_and_leaves_nothing_behind(folder: Path, host: str) -> None:
    file = settings_of(folder, host)
    install(host, "--yes")
    first = file.read_text()
    assert install(host, "--yes") == 0
    assert file.read_text() == first
    assert main(["hook", "uninstall", host, "--yes"]) == 0
    assert not file.exists()


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "cursor"])
def test_what_others_wrote_stays(folder: Path, host: str) -> None:
    file = settings_of(folder, host)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(OTHERS))
    install(host, "--yes")
    settings = json.loads(file.read_text())
    assert settings["model"] == "m"
    assert settings["hooks"]["Stop"] == OTHERS["hooks"]["Stop"]
    assert "mine" in json.dumps(settings)
    main(["hook", "uninstall", host, "--yes"])
    assert {**json.loads(file.read_text()), "version": 1} == {**OTHERS, "version": 1}


def test_two_hosts_share_a_folder_and_not_a_file_of_hooks(folder: Path) -> None:
    """Copilot CLI and VS Code read the same folder; each has its own events."""
    install("copilot", "--yes")
    install("vscode", "--yes")
    main(["hook", "uninstall", "copilot", "--yes"])
    assert list(json.loads(settings_of(folder, "vscode").read_text())["hooks"]) == ["PreToolUse"]


@pytest.mark.parametrize(
    "odd", ["{not json", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', "// a comment\n{}"]
)
def test_settings_of_another_shape_are_left_alone(folder: Path, odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = settings_of(folder, "claude-code")
    file.parent.mkdir(parents=True)
    file.write_text(odd)
    assert install("claude-code", "--yes") == 2
    assert "settings.json" in capsys.readouterr().err
    assert file.read_text() == odd


def test_a_policy_that_is_not_there_is_not_installed(folder: Path) -> None:
    del folder
    assert main(["hook", "install", "codex", "--policy", "gone.zcpolicy", "--agent", "coder", "--yes"]) == 2
    assert main(["hook", "install", "codex"]) == 2
    assert main(["hook", "install", "clod", "--policy", "team.zcpolicy", "--agent", "coder"]) == 2


def test_every_host_has_a_place_and_an_event() -> None:
    assert set(PLACES) == set(HOSTS) == set(SHELL_EVENTS)
    assert payload("codex.bash")["hook_event_name"] in PLACES["codex"].events
