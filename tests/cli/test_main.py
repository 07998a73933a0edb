"""The entry: help, versions, misspelt commands, and that nothing leaves as a traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from policy_lang.cli import app
from policy_lang.cli.main import main

from .conftest import TEAM, Cli

ROOT = Path(__file__).parents[2]
PYTHONPATH = os.pathsep.join([str(ROOT), str(ROOT / "engine")])


def zcpolicy(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH, **more}
    command = [sys.executable, "-m", "policy_lang.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)


def test_a_complaint_is_the_same_line_when_python_runs_the_module() -> None:
    for command in ("check", "test", "compile"):
        ran = zcpolicy(command, "nowhere")
        assert (ran.returncode, ran.stderr) == (2, "zcpolicy: `nowhere` does not exist\n")


def test_help_lists_the_commands(cli: Cli) -> None:
    ran = cli("--help")
    assert ran.status == 0
    assert all(f"  {name} " in ran.out for name in app.COMMANDS)


@pytest.mark.parametrize("command", sorted(app.COMMANDS))
def test_help_of_a_command_shows_an_example(cli: Cli, command: str) -> None:
    ran = cli(command, "--help")
    assert (ran.status, ran.err) == (0, "")
    assert f"zcpolicy {command}" in ran.out.partition("Example:")[2]


def test_version(cli: Cli) -> None:
    assert cli("--version").out.startswith("zcpolicy, version ")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["chek"], "there is no command `chek`; did you mean `check`?"),
        (["qqqq"], "there is no command `qqqq`; see --help"),
        (["check"], "missing argument 'PATH...'; see zcpolicy check --help"),
        (["check", "--fx", "a"], "no such option '--fx'. Did you mean '--fix'?; see zcpolicy check --help"),
        (["check", "nowhere.zcpolicy"], "`nowhere.zcpolicy` does not exist"),
        (["test", "nowhere"], "`nowhere` does not exist"),
        (["fmt", "nowhere"], "`nowhere` does not exist"),
        (["compile", "nowhere"], "`nowhere` does not exist"),
        (
            ["compile", "team.zcpolicy", "-o", "x.zcpolicy"],
            "`x.zcpolicy` is named like a policy, not like a compiled one (`.zcpc`)",
        ),
        (["compile", "team.zcpolicy", "-o", "no/x.zcpc"], "`no/x.zcpc` cannot be written: No such file or directory"),
        (["resolve", "nowhere", "--agent", "a"], "`nowhere` does not exist"),
        (["explain", "ZC9999"], "there is no code `ZC9999`"),
        (["explain", "ZC11001"], "there is no code `ZC11001`; did you mean `ZC1001`?"),
        (["init", "nowhere.json", "--as", "s"], "`nowhere.json` does not exist"),
        (
            ["init", "team.zcpolicy", "--as", "s"],
            "`team.zcpolicy` cannot be used: not JSON: expecting value at line 1, column 1",
        ),
        (["init", "team.zcpolicy"], "missing option '--as'; see zcpolicy init --help"),
    ],
)
def test_wrong_usage_is_one_line_and_status_two(cli: Cli, words: list[str], complaint: str) -> None:
    ran = cli(*words)
    assert (ran.status, ran.out, ran.err) == (2, "", f"zcpolicy: {complaint}\n")


def test_a_folder_without_policies(cli: Cli) -> None:
    Path("empty").mkdir()
    assert cli("check", "empty").err == "zcpolicy: there is no `*.zcpolicy` file in `empty`\n"


def test_a_fault_of_ours_is_one_line_that_says_how_to_report_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(words: object) -> int:
        raise RuntimeError("boom\nboom")

    monkeypatch.setattr(app, "run_app", fails)
    ran = cli("check", "team.zcpolicy")
    assert ran.status == 2
    assert ran.err.startswith(
        "zcpolicy: a fault in zcpolicy itself, not in your policy: RuntimeError: boom boom at test_main.py:"
    )
    assert ran.err.endswith("please report this line with the command and the policy that led to it\n")
    assert ran.err.count("\n") == 1


def test_complaints_do_not_steer_the_terminal(cli: Cli) -> None:
    assert cli("check", "a\x1b[31m\u202eb").err == "zcpolicy: `a\\u{1b}[31m\\u{202e}b` does not exist\n"


def test_interrupted_is_quiet(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(words: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "run_app", interrupted)
    assert cli("check", "team.zcpolicy") == (128 + signal.SIGINT, "", "")


@pytest.mark.parametrize(
    "words", [["decide", "team.zcpolicy", "--agent", "coder", "file_read"], ["check", "team.zcpolicy"]]
)
def test_a_reader_that_went_away_is_no_success(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "team.zcpolicy").write_text(TEAM, encoding="utf-8")
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    command = [sys.executable, "-m", "policy_lang.cli.main", *words]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path, env=environment) as process:
        os.close(writing)
        _, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (128 + signal.SIGPIPE, b"")


def test_an_environment_variable_never_decides(tmp_path: Path) -> None:
    (tmp_path / "team.zcpolicy").write_text(TEAM, encoding="utf-8")
    policy = str(tmp_path / "team.zcpolicy")
    ran = zcpolicy(
        "decide", policy, "--agent", "coder", "shell", _ZCPOLICY_COMPLETE="bash_complete", COMP_WORDS="", COMP_CWORD="0"
    )
    assert ran.returncode == 4


def test_a_terminal_that_cannot_show_a_character(tmp_path: Path) -> None:
    policy = tmp_path / "a.zcpolicy"
    policy.write_text('zcpolicy 1\nagent ü { allow "日本" }\n', encoding="utf-8")
    ran = zcpolicy("check", str(policy), PYTHONIOENCODING="ascii")
    assert (ran.returncode, "Traceback" in ran.stderr) == (1, False)
    assert "\\u65e5" in ran.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(cli: Cli, shell: str) -> None:
    ran = cli("completion", shell)
    assert (ran.status, ran.err) == (0, "")
    assert "_ZCPOLICY_COMPLETE" in ran.out


@pytest.mark.parametrize(
    ("words", "position", "offers"),
    [("zcpolicy ch", 1, "check"), ("zcpolicy decide --nar", 2, "--narrow"), ("zcpolicy check --format sa", 3, "sarif")],
)
def test_completion(words: str, position: int, offers: str) -> None:
    ran = zcpolicy(_ZCPOLICY_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(position))
    assert ran.stdout.split() == [f"plain,{offers}"]


def test_main_takes_words() -> None:
    assert main(["explain", "ZC0000"]) == 2
