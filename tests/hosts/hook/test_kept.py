"""What outlives the process of one call: labels, what was spent, the compiled policy; also where many calls come at once."""

import json
from pathlib import Path

import pytest

from policy_lang.cli import hook_policy

from .conftest import POLICY, Hook, left, payload, shell, start


def test_a_label_holds_for_the_rest_of_its_session(hook: Hook) -> None:
    assert hook("codex", shell("codex", "echo after")).effect == "allow"
    assert hook("codex", shell("codex", "echo mark")).effect == "allow"
    assert hook("codex", shell("codex", "echo after")).effect == "deny"
    assert hook("codex", shell("codex", "echo after", session_id="another")).effect == "allow"


def test_no_call_is_known_to_have_succeeded(hook: Hook, tmp_path: Path) -> None:
    """So that what a `require` guards is denied, and no arguments are kept."""
    needs = "    require run_shell_command before bash\n    mark seen"
    (tmp_path / "team.zcpolicy").write_text(POLICY.replace("    mark seen", needs))
    assert hook("gemini", shell("gemini", "echo mark")).effect == "allow"
    same = shell("copilot", "echo ok", sessionId="b88c40aa-94c4-4489-a132-e03c08d0efa2")
    assert hook("copilot", same).effect == "deny"
    [kept] = (tmp_path / "state/sessions").glob("*.json")
    assert json.loads(kept.read_text())["history"] == []


def test_a_subagent_has_the_labels_of_its_session(hook: Hook) -> None:
    child = payload("claude-code.subagent", tool_input={"command": "echo mark"})
    assert hook("claude-code", child).effect == "allow"
    above = shell("claude-code", "echo after", session_id=child["session_id"])
    assert hook("claude-code", above).effect == "deny"


def test_sessions_of_two_hosts_are_two(hook: Hook) -> None:
    assert hook("codex", shell("codex", "echo mark", session_id="one")).effect == "allow"
    assert hook("claude-code", shell("claude-code", "echo after", session_id="one")).effect == "allow"


def test_a_limit_is_spent_over_many_processes(hook: Hook) -> None:
    effects = [hook("claude-code", shell("claude-code", "ls"), agent="counted").effect for _ in range(5)]
    assert effects == ["allow", "allow", "allow", "deny", "deny"]
    other = shell("claude-code", "ls", session_id="another")
    assert hook("claude-code", other, agent="counted").effect == "allow"


def test_a_call_that_asks_is_counted_as_if_the_answer_was_yes(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "team.zcpolicy").write_text(POLICY.replace("allow Bash\n", "allow Bash with approval\n"))
    effects = [hook("claude-code", shell("claude-code", "ls"), agent="counted").effect for _ in range(4)]
    assert effects == ["ask", "ask", "ask", "deny"]


def test_a_call_that_somebody_else_must_approve_is_denied(hook: Hook, tmp_path: Path) -> None:
    """The person at the host is not the operators that the policy names."""
    routed = POLICY.replace("allow Bash\n", 'allow Bash with approval\n    approval { route "ops" }\n')
    (tmp_path / "team.zcpolicy").write_text(routed)
    assert hook("claude-code", shell("claude-code", "ls"), agent="counted").effect == "deny"


def test_calls_at_once_share_no_last_place(hook: Hook, tmp_path: Path) -> None:
    """Six processes at once, on first use: each compiles, one ledger is made, three calls run."""
    del hook  # it wrote the policy
    event = shell("claude-code", "ls")
    running = [start(tmp_path, "claude-code", agent="counted") for _ in range(6)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(json.dumps(event).encode())
        process.stdin.close()
        process.stdin = None
    effects = sorted(left(process, b"").effect for process in running)
    assert effects == ["allow"] * 3 + ["deny"] * 3


def test_labels_of_calls_at_once_are_all_kept(hook: Hook, tmp_path: Path) -> None:
    two = POLICY.replace("label seen", "label seen, other").replace(
        "    mark seen", '    mark other on @shells when args.command runs any ["echo two"]\n    mark seen'
    )
    (tmp_path / "team.zcpolicy").write_text(two)
    hook("codex", shell("codex", "echo ok"))  # compiles
    running = [(start(tmp_path, "codex"), f"echo {word}") for word in ("mark", "two")]
    assert [left(process, shell("codex", said)).effect for process, said in running] == ["allow", "allow"]
    [kept] = (tmp_path / "state/sessions").glob("*.json")
    assert json.loads(kept.read_text())["labels"] == ["other", "seen"]


def test_the_policy_is_compiled_once(hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook("codex", shell("codex", "echo ok"))
    monkeypatch.setattr(hook_policy, "_made", None)
    assert hook("codex", shell("codex", "echo ok")).effect == "allow"
    assert sorted(one.suffix for one in (tmp_path / "state/compiled").iterdir()) == [".json", ".zcpc"]


def test_an_edit_holds_from_the_next_call_on(hook: Hook, tmp_path: Path) -> None:
    (tmp_path / "more.zcpolicy").write_text("zcpolicy 1\nceiling { deny git/git_reset }\n")
    (tmp_path / "team.zcpolicy").write_text(POLICY.replace("label seen", 'import "more.zcpolicy"\nlabel seen'))
    assert hook("codex", shell("codex", "echo ok")).effect == "allow"
    (tmp_path / "more.zcpolicy").write_text("zcpolicy 1\nceiling { deny Bash }\n")  # an import
    assert hook("codex", shell("codex", "echo ok")).effect == "deny"
    (tmp_path / "team.zcpolicy").write_text(POLICY)
    assert hook("codex", shell("codex", "echo ok")).effect == "allow"


@pytest.mark.parametrize("file", ["team.zcpolicy", "state/ledger.sqlite", "state/sessions/x.json", "host.json"])
def test_what_the_hook_stands_on_is_protected(hook: Hook, tmp_path: Path, file: str) -> None:
    """Else an agent would edit its own policy, or the setting that holds the hook."""
    command = f"echo x {tmp_path / file}"
    assert hook("claude-code", shell("claude-code", command), "--protect", str(tmp_path / "host.json")).effect == "deny"
