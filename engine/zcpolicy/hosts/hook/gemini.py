"""Gemini CLI (run with 0.61.0): the event `BeforeTool`.

In: its event. Out: `decision`. An MCP tool comes with its server and its own name in `mcp_context`.
"""

from __future__ import annotations

from zcpolicy.hosts.hook.event import Asked, NoEvent, arguments_of, directory_of, must_be, plain, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from zcpolicy.facts import ToolName
    from zcpolicy.hosts.hook.event import Effect

MCP_PREFIX: str = "mcp_"
EVENT: Final = "BeforeTool"
ELSEWHERE: Final = ("dir_path", "directory")
"""Arguments of the shell that make it start in another directory."""


def read(event: Mapping[str, Any], *, attended: bool) -> Asked:
    """The call. Without a person an `ask` never returns, so that the operator has to say that one is there. Raises NoEvent."""
    must_be(event, "hook_event_name", EVENT)
    arguments: Any = arguments_of(event, "tool_input")
    moved = type(arguments) is str or any(name in arguments for name in ELSEWHERE)
    return Asked(
        wire=text_of(event, "tool_name"),
        arguments=arguments,
        session=text_of(event, "session_id"),
        tool=_tool(event),
        cwd=None if moved else directory_of(event),
        asks=attended,
    )


def _tool(event: Mapping[str, Any]) -> ToolName | None:
    context = event.get("mcp_context")
    if context is None:
        return None
    if not hasattr(context, "keys"):
        raise NoEvent("`mcp_context` of the event is no object")
    return text_of(context, "server_name"), text_of(context, "tool_name")


def spelled(server: str, name: str) -> str:
    """`mcp_server_name`, for versions that send no `mcp_context`."""
    return f"mcp_{plain(server, '_-.:')}_{plain(name, '_-.:')}"


def said(asked: Asked, effect: Effect, text: str) -> str:
    """The decision, with the reason where it is not an allow."""
    del asked
    from json import dumps

    return dumps({"decision": effect} if effect == "allow" else {"decision": effect, "reason": text})
