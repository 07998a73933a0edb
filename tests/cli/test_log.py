"""`zcpolicy log verify` and `log show`."""

import json
import re
from pathlib import Path

import pytest

from zcpolicy import events
from zcpolicy.daemon.log.chain import DecisionLog
from zcpolicy.daemon.log.line import KINDS
from zcpolicy.daemon.log.settings import Rotation
from zcpolicy.events import Event
from zcpolicy.identity import Identity
from zcpolicy.state.minting import Minting

from .conftest import Cli

NOON = 1_800_000_000.0  # 2027-01-15T08:00:00Z
FIRST = "decisions-000000000001.jsonl"


def told(kind: str, who: Identity, **data: object) -> Event:
    return Event(kind, NOON, who, data)  # type: ignore[arg-type]  # one of the kinds


def by(agent: str, client: str, session: str, surface: str) -> Identity:
    return Identity(agent, client, session, "t", surface, 0, ())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of three events, a minute apart."""
    folder, now = tmp_path / "log", [NOON]
    with DecisionLog(folder, clock=lambda: now[0]) as log:
        decision = {
            "effect": "deny", "reason": "denied", "agent": "coder", "tool": ["github", "push"],
            "client": "ann", "session": "s1", "arguments": {"text": "\x1b[2Jü"}, "rules": ["a.zcpolicy:3"], "digest": "ab",
        }  # fmt: skip
        for agent, client, session, surface in (("coder", "ann", "s1", "rpc"), ("helper", "bob", "s2", "gateway")):
            now[0] += 60
            log(told("call", by(agent, client, session, surface), phase="refused", decision=json.dumps(decision)))
        now[0] += 60
        log(told("turn", by("coder", "\x1b[2Jeve", "s3", "channel"), phase="done"))
        log.note("reloaded", generation=2)
    return folder


def test_a_sound_log(cli: Cli, log: Path) -> None:
    head = json.loads((log / FIRST).read_text("utf-8").splitlines()[-1])["sha256"]
    ran = cli("log", "verify", "log")
    assert (ran.status, ran.err) == (0, "")
    assert (
        ran.out
        == f"""\
7 lines in 1 file: sound
head: line 7, {head}
whoever may write there could write it all anew: compare with a head that was kept elsewhere (--head)
"""
    )
    assert cli("log", "verify", "log", "--head", head).out == f"7 lines in 1 file: sound\nhead: line 7, {head}\n"
    assert cli("log", "verify", "log", "--format", "plain").out == ""
    assert cli("log", "verify", f"log/{FIRST}").out.startswith(
        f"log/{FIRST}:7: line 7: one file alone: what stands before and after it was not looked at\n7 lines in 1 file: sound\n"
    )


def test_an_altered_log(cli: Cli, log: Path) -> None:
    text = (log / FIRST).read_text("utf-8")
    (log / FIRST).write_text(text.replace('"effect":"deny"', '"effect":"allow"', 1), "utf-8")
    ran = cli("log", "verify", "log")
    assert ran.status == 1
    assert ran.out.splitlines()[:2] == [
        f"log/{FIRST}:3: line 3: its hash does not fit: it was altered",
        "6 lines in 1 file: 1 problem",
    ]
    assert (
        cli("log", "verify", "log", "--format", "plain").out
        == f"log/{FIRST}:3: line 3: its hash does not fit: it was altered\n"
    )
    found = json.loads(cli("log", "verify", "log", "--format", "json").out)
    assert found["problems"] == [
        {"file": f"log/{FIRST}", "line": 3, "seq": 3, "text": "its hash does not fit: it was altered"}
    ]
    assert (found["sound"], found["files"], found["lines"], found["first"]) == (False, 1, 6, 1)


def test_a_head_that_no_line_has(cli: Cli, log: Path) -> None:
    ran = cli("log", "verify", "log", "--head", "0" * 63 + "1")
    assert ran.status == 1
    assert "no line has the hash that was given: lines were cut off, or all was written anew" in ran.out
    ran = cli("log", "verify", "log", "--head", "abc")
    assert (ran.status, ran.err) == (2, "zcpolicy: --head takes the `sha256` of a line: 64 hexadecimal digits, small\n")


def test_what_rotation_removed_is_told(cli: Cli, tmp_path: Path) -> None:
    with DecisionLog(tmp_path / "log", rotation=Rotation(65_536, keep=2)) as log:
        for number in range(200):
            log(told("turn", by("coder", "ann", "s1", "rpc"), phase="done", text="x " * 600, number=number))
    ran = cli("log", "verify", "log")
    assert ran.status == 0
    first = json.loads(cli("log", "verify", "log", "--format", "json").out)["first"]
    assert f"in 2 files; the first {first - 1} were removed by rotation, in " in ran.out


@pytest.mark.parametrize("words", [("verify", "nowhere"), ("show", "nowhere")])
def test_no_log(cli: Cli, words: tuple[str, ...]) -> None:
    ran = cli("log", *words)
    assert (ran.status, ran.err) == (2, "zcpolicy: `nowhere` cannot be read: no such file or directory\n")


def test_a_folder_without_a_log(cli: Cli) -> None:
    assert cli("log", "verify", ".").err == "zcpolicy: `.` cannot be read: there is no log in it\n"


def test_what_a_log_says(cli: Cli, log: Path) -> None:
    ran = cli("log", "show", "log")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[1:] == [
        '2027-01-15 08:00:00.000 log        {"did": "started"}',
        '2027-01-15 08:01:00.000 call       coder ann s1 rpc: refused github/push {"text": "\\u001b[2Jü"} deny (denied) by a.zcpolicy:3',
        '2027-01-15 08:02:00.000 call       helper bob s2 gateway: refused github/push {"text": "\\u001b[2Jü"} deny (denied) by a.zcpolicy:3',
        '2027-01-15 08:03:00.000 turn       coder \\e[2Jeve s3 channel: {"phase": "done"}',
        '2027-01-15 08:03:00.000 host       {"did": "reloaded", "generation": 2}',
        '2027-01-15 08:03:00.000 log        {"did": "stopped"}',
    ]
    assert cli("log", "show", "log", "--format", "plain").out == ran.out


CALLS: dict[str, tuple[dict[str, object], dict[str, object], str]] = {
    "why, and under which policy": (
        {"effect": "deny", "reason": "denied", "rules": ["a:3"], "because": ["no pushes"], "generation": 7}, {"phase": "refused", "reason": "denied"},
        "refused look {} deny (denied) by a:3: no pushes, generation 7",
    ),
    "what was wrong": (
        {"effect": "deny", "reason": "malformed", "note": "`at` is missing", "generation": 1}, {"phase": "refused", "reason": "malformed"},
        "refused look {} deny (malformed): `at` is missing, generation 1",
    ),
    "a person's no": (
        {"effect": "deny", "reason": "denied", "rules": ["a:3"], "note": "somebody was asked, and said no", "generation": 1},
        {"phase": "refused", "reason": "rejected", "by": ["ann"], "note": "not\ntoday"},
        "refused look {} deny (rejected) by a:3, no of ann: not\\ntoday, generation 1",
    ),
    "a person's yes": (
        {"effect": "ask", "reason": "asked", "rules": ["a:3"], "generation": 1}, {"phase": "admitted", "by": ["ann", "bob"]},
        "admitted look {} ask (asked) by a:3, yes of ann, bob, generation 1",
    ),
    "what fits nothing": (
        {"effect": "deny", "reason": "denied", "rules": 3, "because": {"a": 1}}, {"phase": "refused", "by": 5, "note": None},
        "refused look {} deny (denied) by 3, no of 5: {'a': 1}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_what_a_line_says_of_a_call(cli: Cli, tmp_path: Path, case: str) -> None:
    decision, data, expected = CALLS[case]
    whole: dict[str, object] = {"tool": "look", "arguments": {}, **decision}
    with DecisionLog(tmp_path / "log", clock=lambda: NOON) as log:
        log(told("call", by("a", "c", "s", "rpc"), **data, decision=json.dumps(whole)))
    ran = cli("log", "show", "log", "--kind", "call")
    assert ran.out == f"2027-01-15 08:00:00.000 call       a c s rpc: {expected}\n"


FILTERS: dict[tuple[str, ...], list[int]] = {
    (): [1, 2, 3, 4, 5, 6, 7],
    ("--client", "bob"): [4],
    ("--agent", "coder"): [3, 5],
    ("--agent", "coder", "--kind", "turn"): [5],
    ("--channel", "gateway"): [4],
    ("--session", "s1"): [3],
    ("--session", "none"): [],
    ("--kind", "host"): [6],
    ("--since", "2027-01-15T08:02"): [4, 5, 6, 7],
    ("--until", "2027-01-15T08:02"): [1, 2, 3],
    ("--since", "2027-01-15T09:01+01:00", "--until", "2027-01-15T09:03+01:00"): [3, 4],
    ("--since", "2027-01-16"): [],
    ("--since", "10m"): [],
}


@pytest.mark.parametrize("words", FILTERS, ids=" ".join)
def test_filters(cli: Cli, log: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policy_lang.cli.log.time", lambda: NOON + 3_600)
    ran = cli("log", "show", "log", *words, "--format", "json")
    assert [json.loads(line)["seq"] for line in ran.out.splitlines()] == FILTERS[words]
    assert ran.out.isascii()


NOTHING: dict[tuple[str, ...], tuple[int, str]] = {
    ("--kind", "calls"): (2, "there are no lines of kind `calls`: did you mean `call`?"),
    ("--kind", "zzz"): (
        2, "there are no lines of kind `zzz`: there are turn, model, call, approval, delegation, skill, memory, stopped, failed, host, log",
    ),
    ("--channel", "http"): (0, "no such line; the log has lines of channel rpc, gateway, channel"),
    ("--agent", "nobody"): (0, "no such line; the log has lines of agent coder, helper"),
    ("--kind", "memory"): (0, "no such line; the log has lines of kind log, call, turn, host"),
    ("--client", "eve", "--agent", "coder"): (
        0, "no such line; the log has lines of client ann, bob, \\e[2Jeve; of agent coder, helper",
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", NOTHING, ids=" ".join)
def test_a_filter_that_nothing_fits_says_what_there_is(cli: Cli, log: Path, words: tuple[str, ...]) -> None:
    status, said = NOTHING[words]
    assert cli("log", "show", "log", *words) == (status, "", f"zcpolicy: {said}\n")


def test_a_client_is_found_by_the_name_of_its_token(cli: Cli, tmp_path: Path) -> None:
    Path("daemon.toml").write_text('[policy]\nlayers = ["team.zcpolicy"]\n[state]\nfolder = "var"\n')
    for name in ("ann", "ben"):
        cli("token", "add", name)
    assert {one["client"] for one in listed(cli)} == {None}, "before there is a key"
    minting = Minting.from_file(str(tmp_path / "var/identity.key"))
    ann, ben = (minting.client("gateway", f"token {name}") for name in ("ann", "ben"))
    assert [one["client"] for one in listed(cli)] == [ann, ben]
    assert [line.rpartition(", client ")[2] for line in cli("token", "list").out.splitlines()] == [ann, ben]
    with DecisionLog(tmp_path / "var/log", clock=lambda: NOON) as log:
        for number, client in enumerate((ann, ben)):
            log(told("turn", by("a", client, "s", "gateway"), number=number))
    for name in ("ben", ben):
        ran = cli("log", "show", "var/log", "--client", name, "--format", "json")
        assert [json.loads(line)["data"]["number"] for line in ran.out.splitlines()] == [1]
    file = "var/log/decisions-000000000001.jsonl"
    assert len(cli("log", "show", file, "--client", "ann").out.splitlines()) == 1


def listed(cli: Cli) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(cli("token", "list", "--format", "json").out)["tokens"]
    return found


def test_every_kind_of_event_can_be_asked_for() -> None:
    (kinds,) = re.findall(r"Kind = Literal\[(.*?)\]", Path(events.__file__).read_text("utf-8"))
    assert {*re.findall(r"\w+", kinds), "host", "log"} == {*KINDS}


def test_following_ends_with_an_interrupt(cli: Cli, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[float] = []

    def pause(seconds: float) -> None:
        turns.append(seconds)
        if len(turns) == 2:
            raise KeyboardInterrupt
        with DecisionLog(log) as more:
            more(told("turn", by("late", "ann", "s9", "run"), phase="done"))

    monkeypatch.setattr("policy_lang.cli.log.sleep", pause)
    ran = cli("log", "show", "log", "--kind", "turn", "--follow", "--format", "json")
    assert ran.status == 130
    assert [json.loads(line)["identity"]["agent"] for line in ran.out.splitlines()] == ["coder", "late"]


def test_json_is_the_line_itself(cli: Cli, log: Path) -> None:
    shown = [json.loads(line) for line in cli("log", "show", "log", "--format", "json").out.splitlines()]
    assert shown == [json.loads(line) for line in (log / FIRST).read_text("utf-8").splitlines()]


def test_lines_that_were_altered_are_not_shown(cli: Cli, log: Path) -> None:
    text = (log / FIRST).read_text("utf-8")
    (log / FIRST).write_text(text.replace('"effect":"deny"', '"effect":"allow"', 1), "utf-8")
    ran = cli("log", "show", "log", "--kind", "call")
    assert ran.status == 1
    assert ran.err == f"zcpolicy: log/{FIRST}:3 is no line of the log, or was altered\n"
    assert len(ran.out.splitlines()) == 1


@pytest.mark.parametrize(
    "text", ["1x", "yesterday", "2027-13-01", "", "m", "99999999999999999999d", "0001-01-01", "9999-12-31"]
)
def test_times(cli: Cli, log: Path, text: str) -> None:
    ran = cli("log", "show", "log", "--since", text)
    if text[0:1].isdigit() and not text.startswith(("1x", "2027-13")):
        assert ran.status == 0
    else:
        assert (ran.status, ran.err) == (
            2, f"zcpolicy: --since `{text}` is no time: write 2026-11-30, 2026-11-30T21:00 or 10m\n",
        )  # fmt: skip
