"""VS Code's agent (from its documents, a preview; it was not run): the event `PreToolUse`.

In: its event, whose fields are spelled in one of two ways. Out: as Claude Code's.
"""

from __future__ import annotations

from zcpolicy.hosts.hook.claude_code import said
from zcpolicy.hosts.hook.event import Asked, NoEvent, arguments_of, directory_of, plain, text_of

__all__ = ["MCP_PREFIX", "read", "said", "spelled"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

MCP_PREFIX: str = "mcp_"
EVENT: Final = "PreToolUse"
SHELL: Final = "run_in_terminal"
"""A terminal goes on from call to call: where a command starts is not told."""


def read(event: Mapping[str, Any], *, attended: bool) -> Asked:
    """The call. Raises NoEvent."""
    del attended
    if text_of(event, "hook_event_name", "hookEventName") != EVENT:
        raise NoEvent(f"this event is not one before a call: the hook belongs under `{EVENT}`")
    wire = text_of(event, "tool_name")
    return Asked(
        wire=wire,
        arguments=arguments_of(event, "tool_input"),
        session=text_of(event, "session_id", "sessionId"),
        cwd=None if wire == SHELL else directory_of(event),
        asks=True,
    )


def spelled(server: str, name: str) -> str:
    """`mcp_server_name`."""
    return f"mcp_{plain(server)}_{plain(name)}"
