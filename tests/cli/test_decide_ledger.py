"""`decide --ledger FILE`: what is allowed is charged, once, for all processes that name the file."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from zcpolicy.facts import ToolName
from zcpolicy.ledgers import sqlite_file
from zcpolicy.ledgers.sqlite import SqliteLedger

from .conftest import Cli
from .test_decide import KEYS

POLICY = """\
zcpolicy 1
tool t(path?: path) risk low
tool asked() risk low
agent hourly { autonomy full; allow t; limit 1 calls to t per hour; limit 9 calls to t per day for each client }
agent sessions { autonomy full; allow t; limit 1 calls to t; limit 1 calls per turn }
agent clients { autonomy full; allow t; limit 2 calls to t per hour for each client }
agent free { autonomy full; allow t, asked; ask asked }
agent parent { autonomy full; allow t; delegate to free; limit 1 calls to t per hour }
"""
START = "import sys; from policy_lang.cli.main import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(autouse=True)
def policy(cli: Cli) -> None:
    Path("p.zcpolicy").write_text(POLICY, encoding="utf-8")
    assert cli("compile", "p.zcpolicy").status == 0


def words(agent: str, *more: str, tool: str = "t", ledger: str = "spent.db") -> list[str]:
    return ["decide", "p.zcpc", "--agent", agent, tool, "--ledger", ledger, "--format", "json", *more]


def begin(agent: str) -> subprocess.Popen[str]:
    """Another process."""
    return subprocess.Popen([sys.executable, "-c", START, *words(agent)], stdout=subprocess.PIPE, text=True)


def charges() -> list[tuple[ToolName | None, str]]:
    """Calls on record: of which tool, and in which state."""
    ledger = SqliteLedger("spent.db")
    found = [(entry.spender.tool, entry.state) for entry in ledger.entries() if entry.charge.unit == "calls"]
    ledger.close()
    return found


def test_the_second_of_two_processes_is_denied_and_told_when_to_retry() -> None:
    first, second = ((process := begin("hourly")).communicate()[0] + f"\n{process.returncode}" for _ in range(2))
    said, status = first.rsplit("\n", 1)
    assert (status, json.loads(said)["effect"]) == ("0", "allow")
    said, status = second.rsplit("\n", 1)
    denied = json.loads(said)
    assert (status, denied["effect"], denied["reason"]) == ("4", "deny", "budget")
    assert 3_500 < denied["retry_after"] <= 3_600
    assert charges() == [("t", "settled")]


def test_of_processes_that_start_at_once_one_may() -> None:
    started = [begin("hourly") for _ in range(4)]
    answers = [json.loads(process.communicate()[0]) for process in started]
    assert sorted(process.returncode for process in started) == [0, 4, 4, 4]
    assert sorted(answer["reason"] for answer in answers) == ["allowed", "budget", "budget", "budget"]
    assert all("retry_after" in answer for answer in answers if answer["effect"] == "deny")
    assert charges() == [("t", "settled")]


def test_the_decision_tells_what_was_spent_before_it(cli: Cli) -> None:
    first = json.loads(cli(*words("hourly")).out)
    assert list(first) == KEYS
    assert [(one["of"], one["amount"], one["spent"]) for one in first["charges"]] == [("1", "1", "0"), ("9", "1", "0")]


def test_nothing_is_charged_for_a_question_or_a_deny_or_without_the_option(cli: Cli) -> None:
    assert cli(*words("free", tool="asked")).status == 3
    assert cli(*words("free", tool="nothing")).status == 4
    assert cli("decide", "p.zcpc", "--agent", "hourly", "t").status == 0
    assert charges() == []
    assert cli(*words("hourly")).status == 0
    assert charges() == [("t", "settled")]


def test_a_session_a_turn_and_a_narrowing_are_of_one_process(cli: Cli) -> None:
    assert [cli(*words("sessions")).status for _ in range(2)] == [0, 0]
    narrowing = ("--narrow", '{"limits": ["1 calls to t per hour"]}')
    assert [cli(*words("free", *narrowing)).status for _ in range(2)] == [0, 0]


def test_a_client_is_of_all_processes(cli: Cli) -> None:
    assert [cli(*words("clients")).status for _ in range(3)] == [0, 0, 4]


def test_a_delegate_spends_of_those_above_it(cli: Cli) -> None:
    child = words("free", "--child-of", "parent")
    assert [cli(*child).status for _ in range(2)] == [0, 4]
    assert cli(*words("parent")).status == 4
    assert cli(*words("free")).status == 0


def test_the_files_are_protected_by_every_name(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to("spent.db")
    for file in ("spent.db", "spent.db-wal", "spent.db-shm", "link.db"):
        for ledger in ("spent.db", "link.db") if file != "link.db" else ("link.db",):
            call = ("--args", json.dumps({"path": str(tmp_path / file)}))
            denied = json.loads(cli(*words("free", *call, ledger=ledger)).out)
            assert denied["reason"] == "protected", (file, ledger)
    other = ("--args", json.dumps({"path": str(tmp_path / "other.db")}))
    assert cli(*words("free", *other)).status == 0


# --- files that are no ledger ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ledger", "why"),
    [
        ("nowhere/spent.db", "the ledger's file `{}` cannot be opened: No such file or directory"),
        ("p.zcpolicy", "file is not a database"),
        ("other.db", "the file is no ledger of this edition"),
        (".", "unable to open database file"),
        ("", "unable to open database file"),
    ],
)
def test_a_file_that_cannot_be_a_ledger(cli: Cli, ledger: str, why: str) -> None:
    other = sqlite3.connect("other.db")
    other.execute("CREATE TABLE notes (text)")
    other.close()
    for agent in ("hourly", "free"):
        ran = cli(*words(agent, ledger=ledger))
        assert (ran.status, ran.out, ran.err) == (
            2,
            "",
            f"zcpolicy: `{ledger}` cannot be used as a ledger: {why.format(Path(ledger).absolute())}\n",
        )


def test_a_ledger_that_fails_later_denies_what_a_limit_bounds(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli(*words("free")).status == 0
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect("spent.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    denied = json.loads(cli(*words("hourly")).out)
    other.execute("ROLLBACK")
    other.close()
    assert (denied["effect"], denied["reason"]) == ("deny", "ledger-unavailable")
    assert cli(*words("hourly")).status == 0


def test_no_ledger_is_made_for_a_policy_that_does_not_compile(cli: Cli) -> None:
    Path("bad.zcpolicy").write_text("zcpolicy 1\nagent a { alow x }\n", encoding="utf-8")
    assert cli("decide", "bad.zcpolicy", "--agent", "a", "x", "--ledger", "spent.db").status == 1
    assert not Path("spent.db").exists()
