"""Claude Code (run with 2.1.332): the event `PreToolUse`.

In: its event. Out: `hookSpecificOutput`. Since some version an MCP tool's server comes in a field of its own (`mcp_server`).
"""

from __future__ import annotations

from zcpolicy.hosts.hook.event import Asked, NoEvent, arguments_of, directory_of, must_be, plain, text_of, text_or

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from zcpolicy.hosts.hook.event import Effect

MCP_PREFIX: str = "mcp__"
EVENT: Final = "PreToolUse"
ASKS: Final = ("default", "acceptEdits", "plan")
"""Permission modes in which an `ask` reaches a person, or is denied where there is none. In the others it may run the call."""


def read(event: Mapping[str, Any], *, attended: bool) -> Asked:
    """The call. Nobody has to vouch for a person: without one, Claude Code denies what we ask. Raises NoEvent."""
    del attended
    must_be(event, "hook_event_name", EVENT)
    return Asked(
        wire=text_of(event, "tool_name"),
        arguments=arguments_of(event, "tool_input"),
        session=text_of(event, "session_id"),
        turn=text_or(event, "prompt_id"),
        server=_server(event),
        cwd=directory_of(event),
        asks=text_or(event, "permission_mode") in ASKS,
    )


def _server(event: Mapping[str, Any]) -> str:
    server = event.get("mcp_server")
    if server is None:
        return ""
    if not hasattr(server, "keys"):
        raise NoEvent("`mcp_server` of the event is no object")
    return text_of(server, "name")


def spelled(server: str, name: str) -> str:
    """`mcp__server__name`."""
    return f"mcp__{plain(server)}__{plain(name)}"


def said(asked: Asked, effect: Effect, text: str) -> str:
    """The decision in `hookSpecificOutput`."""
    del asked
    from json import dumps

    decided: dict[str, str] = {"hookEventName": EVENT, "permissionDecision": effect}
    if effect != "allow":
        decided["permissionDecisionReason"] = text
    return dumps({"hookSpecificOutput": decided})
