"""`zcpolicy approvals`: an operator at a terminal, or in a script, and a daemon that is a process of its own."""

import json
import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from select import select
from threading import Thread
from time import monotonic
from typing import Any

import httpx
import pytest

from tests.cli.conftest import Cli
from tests.daemon.desk import Process, token
from tests.daemon.test_approvals import TURN, lay_out

PROMPT = "n [why] = no, s = skip, q = quit: "


@dataclass
class Office:
    """A daemon, and one client whose turns ask."""

    process: Process
    asker: dict[str, str]
    token: str
    file: Path

    def turn(self, **more: Any) -> dict[str, Any]:
        with self.process.client() as client:
            found: dict[str, Any] = client.post("/turn", json={**TURN, **more}, headers=self.asker).json()
            return found

    def listed(self) -> list[dict[str, Any]]:
        """The questions that wait now."""
        headers = {"authorization": f"Bearer {self.token}"}
        found: list[dict[str, Any]] = httpx.get(f"{self.process.url}/approvals", headers=headers).json()["questions"]
        return [one for one in found if one["answered"] is not True]

    def waiting(self) -> dict[str, Any]:
        """The question that waits, as soon as one does."""
        headers = {"authorization": f"Bearer {self.token}"}
        answer = httpx.get(f"{self.process.url}/approvals?wait=10", headers=headers, timeout=20)
        question: dict[str, Any] = answer.json()["questions"][0]
        return question


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    file = lay_out(tmp_path / "desk", pause="0s")
    asker, operator = token(file, "ann"), token(file, "olga", "operator")
    mine = operator["authorization"].removeprefix("Bearer ")
    with Process(file) as process:
        monkeypatch.setenv("ZCPOLICY_TOKEN", mine)
        yield Office(process, asker, mine, file)


def test_a_script_lists_and_answers(office: Office, cli: Cli) -> None:
    at = ("--url", office.process.url)
    assert cli("approvals", *at) == (0, "", "nothing waits\n")
    session = office.turn()["session"]
    question = office.waiting()
    name = question["id"]
    listed = cli("approvals", "list", *at)
    assert listed.out.splitlines()[1] == (r'| Allow memory_store(text: "the sky\u001b[31m is blue") for agent helper?')
    assert f"  for client ann ({question['client']}), in session {session}, by gateway; route security" in listed.out
    assert "  a yes reaches: once, exact, beyond this call for 3600 s" in listed.out
    assert cli("approvals", *at, "--format", "plain").out.startswith(f"{name}: Allow memory_store(")
    assert json.loads(cli("approvals", *at, "--format", "json").out)["questions"][0]["id"] == name
    wider = cli("approvals", "answer", name, "yes", "--scope", "tool", *at)
    assert (wider.status, wider.err) == (1, "zcpolicy: not taken: a yes reaches `once` or `exact` here\n")
    taken = cli("approvals", "answer", name, "yes", "--scope", "exact", *at)
    assert taken == (0, "yes (exact), by olga\n", "")
    again = cli("approvals", "answer", name, "no", "--note", "late", *at, "--format", "json")
    assert (again.status, json.loads(again.out)["status"]) == (1, 409)
    assert office.turn(session=session, resume=True)["text"] == "kept"


NO_TOKEN = (
    "a token of an operator is needed: --token-file FILE, or the variable ZCPOLICY_TOKEN; "
    "`zcpolicy token add NAME --operator --output FILE` gives one out"
)
REFUSED = {
    "no token": ("", "https://127.0.0.1:1", NO_TOKEN),
    "a token that is none": ("a b", "https://127.0.0.1:1", "the variable ZCPOLICY_TOKEN holds no token"),
    "another machine in the clear": (
        "zcp_x", "http://agents.example.org",
        "a token goes over http to this machine only, and `agents.example.org` is another: use https",
    ),
    "a name in front of the host": (
        "zcp_x", "https://me@agents.example.org",
        "`https://me@agents.example.org` is no URL of a daemon: write http://127.0.0.1:8765 or https://HOST",
    ),
    "no URL": (
        "zcp_x", "127.0.0.1:8765", "`127.0.0.1:8765` is no URL of a daemon: write http://127.0.0.1:8765 or https://HOST",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_sends_no_token_anywhere(case: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    held, url, message = REFUSED[case]
    monkeypatch.setenv("ZCPOLICY_TOKEN", held)
    assert cli("approvals", "--url", url) == (2, "", f"zcpolicy: {message}\n")


def test_options_in_the_wrong_place_do_not_send_the_token_elsewhere(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZCPOLICY_TOKEN", "zcp_x")
    ran = cli("approvals", "--url", "https://127.0.0.1:1", "list")
    assert (ran.status, ran.err) == (2, "zcpolicy: options stand after `list`; see zcpolicy approvals --help\n")


def test_a_daemon_does_not_hand_its_operators_token_to_tools(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lay_out(tmp_path / "desk")
    monkeypatch.setenv("ZCPOLICY_TOKEN", "zcp_x")
    message = (
        "the variable ZCPOLICY_TOKEN is set: tools that the daemon starts would have an operator's token; unset it"
    )
    assert cli("serve", str(file)) == (2, "", f"zcpolicy: {message}\n")
    assert cli("serve", "--check", str(file)).status == 0


def test_a_file_with_a_token(office: Office, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZCPOLICY_TOKEN")
    file = tmp_path / "token"
    file.write_text(f"{office.token}\n")
    file.chmod(0o644)
    at = ("--url", office.process.url, "--token-file", str(file))
    assert cli("approvals", *at).err == f"zcpolicy: `{file}` is open to others: chmod 600 it, and change the token\n"
    file.chmod(0o600)
    assert cli("approvals", *at).status == 0
    file.write_text(office.asker["authorization"].removeprefix("Bearer "))
    assert cli("approvals", *at).err.endswith("does not let you in: this takes the token of an operator\n")
    file.write_text("zcp_unknown")
    assert cli("approvals", *at).err.endswith("does not let you in: a token of this host is needed\n")


def test_where_the_daemon_is_may_stand_in_its_settings(office: Office, cli: Cli) -> None:
    port = office.process.url.rpartition(":")[2]
    asked = cli("approvals", "--settings", str(office.file))
    assert asked.err.endswith("takes any free port: say where it is with --url\n")
    office.file.write_text(office.file.read_text().replace("port = 0", f"port = {port}"))
    assert cli("approvals", "--settings", str(office.file)) == (0, "", "nothing waits\n")
    assert cli("approvals", "list", "--settings", str(office.file)).status == 0
    office.file.write_text(office.file.read_text().replace(f"port = {port}", ""))
    assert cli("approvals", "--settings", str(office.file)).status == 2  # nobody listens on the usual port


def test_a_redirect_is_not_followed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZCPOLICY_TOKEN", "zcp_x")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        there = f"http://127.0.0.1:{other.getsockname()[1]}/"

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(f"HTTP/1.1 302 Found\r\nlocation: {there}\r\ncontent-length: 0\r\n\r\n".encode())

        answering = threading.Thread(target=answer)
        answering.start()
        ran = cli("approvals", "--url", f"http://127.0.0.1:{server.getsockname()[1]}")
        answering.join()
        assert ran.status == 2
        assert "answers with status 302, and not as a daemon does" in ran.err
        assert not select([other], [], [], 0.1)[0]


# --- at a terminal -----------------------------------------------------------------------------------------------------


class Terminal:
    """`zcpolicy approvals` on a terminal, and who sits at it."""

    def __init__(self, office: Office, *words: str) -> None:
        self.hands, device = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "policy_lang.cli.main", "approvals", "--url", office.process.url, *words],
            stdin=device, stdout=device, stderr=device, start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "dumb"},
        )  # fmt: skip
        os.close(device)
        self.seen = ""

    def until(self, words: str) -> str:
        """What was seen, up to words that appear."""
        ends = monotonic() + 20
        while words not in self.seen and monotonic() < ends:
            if select([self.hands], [], [], 0.05)[0]:
                self.seen += os.read(self.hands, 65_536).decode()
        assert words in self.seen, self.seen
        before, _, self.seen = self.seen.partition(words)
        return before

    def type(self, line: str) -> None:
        os.write(self.hands, f"{line}\n".encode())

    def end(self, *, wait: bool) -> int:
        if not wait:
            self.process.terminate()
        status = self.process.wait(20)
        os.close(self.hands)
        return status


def test_a_person_goes_through_what_waits(office: Office) -> None:
    first, second = office.turn()["session"], office.turn()["session"]
    terminal = Terminal(office)
    shown = terminal.until(PROMPT)
    assert r'| Allow memory_store(text: "the sky\u001b[31m is blue") for agent helper?' in shown
    assert "| because: memories stay" in shown
    assert "\x1b" not in shown
    terminal.type("exact")
    terminal.until("yes (exact), by olga")
    for slip in ("what?", "", "nope", "y y", "x" * 300):
        terminal.until(PROMPT)
        terminal.type(slip)
    terminal.until(PROMPT)
    terminal.type("n not on a fríday")
    terminal.until("no, by olga")
    assert terminal.end(wait=True) == 0
    assert office.turn(session=first, resume=True)["status"] == "done"
    assert office.turn(session=second, resume=True)["status"] == "done"
    log = "".join(one.read_text("utf-8") for one in sorted((office.file.parent / "var/log").glob("decisions-*.jsonl")))
    ended = [json.loads(line)["data"]["phase"] for line in log.splitlines() if json.loads(line)["kind"] == "call"]
    assert ended[-4:] == ["admitted", "started", "finished", "refused"]
    assert '"by":["olga"],"decision"' in log
    assert '"note":"not on a fríday"' in log


def test_a_person_skips_and_quits(office: Office) -> None:
    for _ in range(3):
        office.turn()
    terminal = Terminal(office)
    terminal.until(PROMPT)
    terminal.type("s")
    terminal.until(PROMPT)
    terminal.type("q")
    assert terminal.end(wait=True) == 0
    assert len(office.listed()) == 3  # nothing was answered


def test_a_person_waits_for_more(office: Office) -> None:
    terminal = Terminal(office, "--follow")
    found: list[dict[str, Any]] = []
    turn = Thread(target=lambda: found.append(office.turn()))
    turn.start()
    terminal.until(PROMPT)
    turn.join()
    terminal.type("y")
    terminal.until("yes (once), by olga")
    assert office.turn(session=found[0]["session"], resume=True)["text"] == "kept"
    terminal.end(wait=False)
