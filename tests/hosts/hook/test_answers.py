"""What each host is told, as a whole text on stdout: an allow, a deny, and what asks."""

import json
from typing import Any

import pytest

from .conftest import HOSTS, Hook, payload, shell

ALLOWED: dict[str, Any] = {
    "claude-code": {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}},
    "codex": None,
    "gemini": {"decision": "allow"},
    "copilot": {"permissionDecision": "allow"},
    "cursor": {"permission": "allow"},
    "vscode": {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}},
}
NO = "This call is not permitted. Do not try to reach the same end in another way; use other means or tell the user."
DENIED: dict[str, Any] = {
    "claude-code": {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": NO,
        }
    },
    "gemini": {"decision": "deny", "reason": NO},
    "copilot": {"permissionDecision": "deny", "permissionDecisionReason": NO},
    "cursor": {"permission": "deny", "user_message": NO, "agent_message": NO},
}
DENIED["vscode"] = DENIED["claude-code"]


@pytest.mark.parametrize("host", HOSTS)
def test_an_allow(hook: Hook, host: str) -> None:
    ran = hook(host, shell(host, "echo ok"))
    assert (ran.status, ran.err) == (0, "")
    assert (json.loads(ran.out) if ran.out else None) == ALLOWED[host]


@pytest.mark.parametrize("host", DENIED)
def test_a_deny(hook: Hook, host: str) -> None:
    ran = hook(host, shell(host, "echo no"))
    assert (ran.status, ran.err, json.loads(ran.out)) == (0, "", DENIED[host])


def test_codex_is_told_no_by_the_status(hook: Hook) -> None:
    """A login shell may print on stdout before the hook does."""
    assert hook("codex", shell("codex", "echo no")) == (2, "", f"zcpolicy: {NO}\n")


@pytest.mark.parametrize(
    ("host", "more", "changed", "effect"),
    [
        ("claude-code", (), {}, "ask"),
        ("claude-code", (), {"permission_mode": "bypassPermissions"}, "deny"),
        ("claude-code", (), {"permission_mode": "auto"}, "deny"),
        ("codex", (), {}, "deny"),  # an `ask` runs the call
        ("codex", ("--attended",), {"permission_mode": "default"}, "deny"),
        ("gemini", (), {}, "deny"),  # without a person an `ask` never returns
        ("gemini", ("--attended",), {}, "ask"),
        ("copilot", (), {}, "ask"),
        ("cursor", (), {}, "ask"),
        ("vscode", (), {}, "ask"),
    ],
)
def test_what_asks(hook: Hook, host: str, more: tuple[str, ...], changed: dict[str, object], effect: str) -> None:
    ran = hook(host, shell(host, "echo ask", **changed), *more)
    assert ran.effect == effect
    assert ("Allow" in ran.out) == (effect == "ask")  # the question, for the person
    assert ("nobody can be asked" in ran.out + ran.err) == (effect == "deny")


def test_copilot_is_answered_as_it_spells(hook: Hook) -> None:
    said = json.loads(hook("copilot", payload("copilot-pascal.bash")).out)
    assert said == {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}


@pytest.mark.parametrize(
    ("host", "name", "key"),
    [
        ("claude-code", "claude-code.bash", "tool_name"),
        ("codex", "codex.bash", "tool_name"),
        ("gemini", "gemini.bash", "tool_name"),
        ("copilot", "copilot.bash", "toolName"),
        ("cursor", "cursor.mcp", "tool_name"),
        ("vscode", "vscode.bash", "tool_name"),
    ],
)
def test_a_tool_that_the_policy_does_not_know_is_denied(hook: Hook, host: str, name: str, key: str) -> None:
    ran = hook(host, payload(name, **{key: "new_tool"}))
    assert ran.effect == "deny"
    assert "no such tool" in ran.out + ran.err


def test_an_argument_that_the_policy_does_not_know_is_denied(hook: Hook) -> None:
    event = payload("claude-code.bash", tool_input={"command": "echo ok", "dangerouslyDisableSandbox": True})
    assert hook("claude-code", event).effect == "deny"


def test_cursors_first_event_of_a_shell_command_lets_the_second_one_ask(hook: Hook) -> None:
    for command, effect in {"echo ok": "allow", "echo ask": "ask", "echo no": "deny"}.items():
        assert hook("cursor", payload("cursor.tool", tool_input={"command": command})).effect == effect
