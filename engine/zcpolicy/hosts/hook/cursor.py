"""Cursor (from its documents; it was not run): `beforeShellExecution`, `beforeMCPExecution`, `preToolUse`.

In: its event. Out: `permission`. A shell command and an MCP call come twice: under `preToolUse`, which only denies, and under
their own event, which counts and asks. `beforeMCPExecution` names no server.
"""

from __future__ import annotations

from zcpolicy.hosts.hook.event import Asked, arguments_of, directory_of, must_be, text_of, text_or

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from zcpolicy.facts import ToolName
    from zcpolicy.hosts.hook.event import Effect

MCP_PREFIX: str = "MCP:"
SHELL_EVENT: Final = "beforeShellExecution"
MCP_EVENT: Final = "beforeMCPExecution"
ANY_EVENT: Final = "preToolUse"
SHELL: Final = "Shell"
"""What `preToolUse` calls the shell; under its own event it has no name."""


def read(event: Mapping[str, Any], *, attended: bool) -> Asked:
    """The call. Raises NoEvent."""
    del attended
    form = must_be(event, "hook_event_name", ANY_EVENT, SHELL_EVENT, MCP_EVENT)
    wire = SHELL if form == SHELL_EVENT else text_of(event, "tool_name")
    if form == MCP_EVENT and not wire.startswith(MCP_PREFIX):
        wire = MCP_PREFIX + wire
    own_event = wire == SHELL or wire.startswith(MCP_PREFIX)
    return Asked(
        wire=wire,
        tool=_tool(wire),
        arguments={"command": text_of(event, "command")} if form == SHELL_EVENT else arguments_of(event, "tool_input"),
        session=text_of(event, "conversation_id"),
        turn=text_or(event, "generation_id"),
        cwd=directory_of(event),
        asks=form != ANY_EVENT or own_event,
        counts=form != ANY_EVENT or not own_event,
        form=form,
    )


def _tool(wire: str) -> ToolName | None:
    """`MCP:server:name`, as it is said to be written in some places: then nothing has to be guessed."""
    parts = wire.split(":")
    return (parts[1], parts[2]) if len(parts) == 3 and wire.startswith(MCP_PREFIX) else None


def spelled(server: str, name: str) -> str:
    """`MCP:name`: of which server is not told, so that two servers with a tool of this name cannot be told apart."""
    del server
    return MCP_PREFIX + name


def said(asked: Asked, effect: Effect, text: str) -> str:
    """The permission, with the reason for the person and for the model."""
    del asked
    from json import dumps

    told = {} if effect == "allow" else {"user_message": text, "agent_message": text}
    return dumps({"permission": effect, **told})
