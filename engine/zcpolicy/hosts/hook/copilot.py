"""Copilot CLI (run with 1.0.102): the event `preToolUse`, or `PreToolUse`, whose fields are spelled as Claude Code's.

In: its event. Out: `permissionDecision`, at the top or in `hookSpecificOutput`. Without a person it denies what we ask.
"""

from __future__ import annotations

from zcpolicy.hosts.hook.event import Asked, NoEvent, arguments_of, directory_of, must_be, plain, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from zcpolicy.hosts.hook.event import Effect

MCP_PREFIX: str = ""
EVENT: Final = "PreToolUse"
SHELLS: Final = ("bash", "Bash", "powershell", "PowerShell")
"""Shells that go on from call to call: where a command starts is what the one before left, and the event does not tell."""


def read(event: Mapping[str, Any], *, attended: bool) -> Asked:
    """The call, in either spelling. Raises NoEvent, also for both at once."""
    del attended
    camel = "toolName" in event or "sessionId" in event
    if camel and ("tool_name" in event or "session_id" in event):
        raise NoEvent("the event is spelled in two ways at once")
    if not camel:
        must_be(event, "hook_event_name", EVENT)
    wire = text_of(event, "toolName" if camel else "tool_name")
    return Asked(
        wire=wire,
        arguments=arguments_of(event, "toolArgs" if camel else "tool_input"),
        session=text_of(event, "sessionId" if camel else "session_id"),
        cwd=None if wire in SHELLS else directory_of(event),
        asks=True,
        form="" if camel else EVENT,
    )


def spelled(server: str, name: str) -> str:
    """`server-name`."""
    return f"{plain(server)}-{plain(name)}"


def said(asked: Asked, effect: Effect, text: str) -> str:
    """The decision, in the shape that belongs to the event's spelling."""
    from json import dumps

    decided: dict[str, str] = {"permissionDecision": effect}
    if effect != "allow":
        decided["permissionDecisionReason"] = text
    return dumps({"hookSpecificOutput": {"hookEventName": asked.form, **decided}} if asked.form else decided)
