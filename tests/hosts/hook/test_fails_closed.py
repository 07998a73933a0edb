"""Whatever goes wrong, the call does not run: status 2 and a line on stderr, which each host takes for a deny. Crashes, status 1,
broken JSON on stdout with status 0, and silence run it in most of them.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import zcpolicy.hosts.hook.deciding
from policy_lang.cli.main import main

from .conftest import HOSTS, POLICY, Hook, Ran, left, payload, shell, start


def refused(ran: Ran, why: str) -> None:
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("zcpolicy: ")
    assert ran.err.endswith("\n")
    assert why in ran.err


BROKEN = {
    "nothing": b"",
    "no JSON": b"{not json",
    "not whole": b'{"tool_name": "Bash"',
    "not UTF-8": b'{"tool_name": "\xff"}',
    "a list": b"[]",
    "a text": b'"Bash"',
    "null": b"null",
    "no fields": b"{}",
    "deeper than anything": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a number that is none": b'{"a": NaN}',
    "too long": b'{"a": "' + b"x" * 5_000_000 + b'"}',
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("event", BROKEN.values(), ids=BROKEN.keys())
def test_an_event_that_is_none(hook: Hook, host: str, event: bytes) -> None:
    refused(hook(host, event), "zcpolicy: ")


@pytest.mark.parametrize("host", HOSTS)
def test_an_event_with_a_field_that_is_missing_or_of_another_kind(hook: Hook, host: str) -> None:
    whole = shell(host, "echo ok")
    ids = {"claude-code": "session_id", "codex": "session_id", "gemini": "session_id", "copilot": "sessionId"}
    named = ids.get(host, "conversation_id" if host == "cursor" else "sessionId")
    arguments = next(key for key in ("toolArgs", "tool_input", "command") if key in whole)
    for key in (named, arguments, *({"hook_event_name", "hookEventName", "toolName"} & whole.keys())):
        odd_values: list[object] = [None, 5, True, [], ""]
        for odd in odd_values:
            event: dict[str, object] = {**whole, key: odd}
            ran = hook(host, event)
            assert ran.effect == "deny", (key, odd)


@pytest.mark.parametrize("host", HOSTS)
def test_the_same_name_twice(hook: Hook, host: str) -> None:
    """Which of them the host reads is not known."""
    event = json.dumps(shell(host, "echo ok"))
    twice = event.replace('"command"', '"command": "echo no", "command"', 1).encode()
    refused(hook(host, twice), "twice")


@pytest.mark.parametrize("host", HOSTS)
def test_an_event_after_the_call(hook: Hook, host: str) -> None:
    key = next((key for key in ("hook_event_name", "hookEventName") if key in shell(host, "x")), "hook_event_name")
    if host == "copilot":
        refused(hook(host, payload("copilot-pascal.bash", **{key: "PostToolUse"})), "event")
    else:
        refused(hook(host, shell(host, "echo ok", **{key: "PostToolUse"})), "event")


@pytest.mark.parametrize("host", HOSTS)
def test_a_session_that_could_be_a_path(hook: Hook, host: str) -> None:
    event = shell(host, "echo ok")
    key = next(key for key in ("session_id", "sessionId", "conversation_id") if key in event)
    for odd in ("../../x", "a/b", "é", "x" * 500):
        refused(hook(host, {**event, key: odd}), "session")


@pytest.mark.parametrize("host", HOSTS)
def test_a_policy_that_is_missing_or_broken(hook: Hook, tmp_path: Path, host: str) -> None:
    event = shell(host, "echo ok")
    refused(hook(host, event, "--policy", str(tmp_path / "gone.zcpolicy")), "gone.zcpolicy")
    refused(hook(host, event, "--policy", str(tmp_path / "gone.zcpc")), "gone.zcpc")
    (tmp_path / "odd.zcpc").write_bytes(b"{}")
    refused(hook(host, event, "--policy", str(tmp_path / "odd.zcpc")), "odd.zcpc")
    (tmp_path / "team.zcpolicy").write_text(POLICY + "agent coder {}\n")
    refused(hook(host, event), "team.zcpolicy")
    refused(hook(host, event, "--layer", str(tmp_path / "gone.zcpolicy")), "gone.zcpolicy")


@pytest.mark.parametrize("host", HOSTS)
def test_an_agent_that_is_not_there(hook: Hook, host: str) -> None:
    assert hook(host, shell(host, "echo ok"), agent="nobody").effect == "deny"


@pytest.mark.parametrize("words", [[], ["claude-code"], ["clod", "--policy", "p", "--agent", "a"], ["codex", "--odd"]])
def test_words_that_are_no_hook(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", *words]) == 2
    assert capsys.readouterr().err.startswith("zcpolicy: ")


def test_a_state_that_others_may_write(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o777)
    refused(hook("codex", shell("codex", "echo ok")), "others may write")


def test_a_state_that_is_a_file(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    refused(hook("codex", shell("codex", "echo ok")), "cannot be decided")


def test_a_ledger_that_is_none(hook: Hook, tmp_path: Path) -> None:
    del hook  # it wrote the policy
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state/ledger.sqlite").write_bytes(b"x" * 4096)
    ran = left(start(tmp_path, "claude-code", agent="counted"), shell("claude-code", "echo ok"))
    assert ran.effect == "deny"
    assert "cannot be told now" in ran.out


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"{not json", b"\xff", b"[" * 100_000])
def test_a_kept_session_that_is_damaged(hook: Hook, tmp_path: Path, damage: bytes) -> None:
    assert hook("codex", shell("codex", "echo mark")).effect == "allow"
    [kept] = (tmp_path / "state/sessions").glob("*.json")
    kept.write_bytes(damage)
    assert hook("codex", shell("codex", "echo ok")).effect == "deny"


def test_a_kept_session_in_anothers_place(hook: Hook, tmp_path: Path) -> None:
    assert hook("codex", shell("codex", "echo mark")).effect == "allow"
    [kept] = (tmp_path / "state/sessions").glob("*.json")
    kept.rename(kept.with_name("codex-other.json"))
    refused(hook("codex", shell("codex", "echo ok", session_id="other")), "another session")


def test_a_kept_program_that_is_damaged_is_compiled_again(hook: Hook, tmp_path: Path) -> None:
    for host in HOSTS[:2]:
        assert hook(host, shell(host, "echo ok")).effect == "allow"
    for kept in (tmp_path / "state/compiled").iterdir():
        kept.write_bytes(b"{}")
    assert hook("codex", shell("codex", "echo no")).effect == "deny"
    assert hook("codex", shell("codex", "echo ok")).effect == "allow"


@pytest.mark.parametrize(
    "fault", [RuntimeError("x"), MemoryError(), KeyboardInterrupt(), SystemExit(0), RecursionError()]
)
def test_a_fault_inside(hook: Hook, monkeypatch: pytest.MonkeyPatch, fault: BaseException) -> None:
    def broken(*_: object) -> None:
        raise fault

    monkeypatch.setattr(zcpolicy.hosts.hook.deciding, "answered", broken)
    refused(hook("gemini", shell("gemini", "echo ok")), type(fault).__name__)


def test_a_host_that_never_ends_its_event() -> None:
    """No hook waits for ever: a host that loses patience with it may run the call."""
    code = (
        "from policy_lang.cli import hook; hook.MAX_SECONDS = 0.2; hook.run(['codex', '--policy', 'p', '--agent', 'a'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.wait(30) == 2  # with its stdin open still
    refused(left(process, b""), "more than")


def test_an_answer_that_nobody_can_be_given(hook: Hook, tmp_path: Path) -> None:
    del hook  # it wrote the policy
    with Path("/dev/full").open("wb") as full:
        ran = left(start(tmp_path, "codex", stdout=full), shell("codex", "echo no"))
    assert ran.status == 2
    process = start(tmp_path, "claude-code")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert left(process, shell("claude-code", "echo ok")).status == 2


def test_as_a_process_of_its_own(hook: Hook, tmp_path: Path) -> None:
    del hook  # it wrote the policy
    assert left(start(tmp_path, "gemini"), shell("gemini", "echo ok")).effect == "allow"
    assert left(start(tmp_path, "gemini"), shell("gemini", "echo no")).effect == "deny"
    refused(left(start(tmp_path, "gemini"), b"{not json"), "JSON")
    refused(left(start(tmp_path, "gemini", stdin=subprocess.DEVNULL), b""), "JSON")
