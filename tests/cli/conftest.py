"""Commands run in this process, in a folder of their own."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from policy_lang.cli.main import main


class Ran(NamedTuple):
    """What a command left."""

    status: int
    out: str
    err: str


Cli = Callable[..., Ran]

TEAM = """\
zcpolicy 1

tool shell(command: shell, timeout?: integer) risk high
tool file_read(path: path) risk read
tool send(to: string, body: string) risk medium
tool github/get_me() risk read
tool github/"odd name"() risk read
label untrusted
bundle forge { server github }
context { channel: string }
skill reading { only file_read }

agent coder {
    autonomy supervised
    connect forge
    skills reading
    allow file_read, github/*
    allow shell when args.command runs only ["git status ..."]
    allow send when session.channel == "mail"
    ask file_read when marked untrusted
    deny any when some paths glob "**/.env" because "secrets are never touched"
    delegate to helper
}

agent helper {
    autonomy supervised
    allow file_read
}

ceiling { deny file_read when args.path under "/etc" }

test "reading is free, secrets stay" {
    agent coder
    call file_read(path: "/w/a") => allow
    call file_read(path: "/w/.env") => deny because "secrets are never touched"
}
"""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs `zcpolicy` in an empty folder that holds `team.zcpolicy`; `stdin` is what the command can read."""
    (tmp_path / "team.zcpolicy").write_text(TEAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape"))))
        status = main(words)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Ran(status, out, err)

    return run
