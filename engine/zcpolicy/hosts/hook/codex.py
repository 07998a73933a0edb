"""Codex (run with 0.171.0): the event `PreToolUse`.

In: its event. Out: nothing on stdout; a deny is its exit status, with the reason on stderr. It runs what is asked about, so nothing is.
"""

from __future__ import annotations

from zcpolicy.hosts.hook.event import Asked, arguments_of, directory_of, must_be, plain, text_of, text_or

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from zcpolicy.hosts.hook.event import Effect

MCP_PREFIX: str = "mcp__"
EVENT: Final = "PreToolUse"
SHELL: Final = "Bash"
"""What the event calls the shell, whose own `workdir` it leaves out: where a command starts is not known."""


def read(event: Mapping[str, Any], *, attended: bool) -> Asked:
    """The call. Raises NoEvent."""
    del attended  # an `ask` runs the call, whoever is there
    must_be(event, "hook_event_name", EVENT)
    wire = text_of(event, "tool_name")
    return Asked(
        wire=wire,
        arguments=arguments_of(event, "tool_input"),
        session=text_of(event, "session_id"),
        turn=text_or(event, "turn_id"),
        cwd=None if wire == SHELL else directory_of(event),
    )


def spelled(server: str, name: str) -> str:
    """`mcp__server__name`."""
    return f"mcp__{plain(server)}__{plain(name)}"


def said(asked: Asked, effect: Effect, text: str) -> str:
    """Silence: for an allow with status 0 (Codex's own tests call one that changes nothing a hook that failed), for a deny with the
    status that blocks. The hook runs in a login shell, whose profile may print before us: what is no JSON then runs the call.
    """
    del asked, effect, text
    return ""
