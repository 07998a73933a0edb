"""What the daemon's agents have to work with: its own tools, and MCP servers as the settings name them.

In: `Settings`, what tools need of the host. Out: `ToolSources`. Secrets are read when a server is connected, and go to it alone.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from zcpolicy.daemon.settings import McpSettings, Secret, SettingsError, SkillSettings
from zcpolicy.exact import is_object
from zcpolicy.memory_stores.contract import MemoryStore
from zcpolicy.registry.host_tools import (
    delegate_tool,
    load_skill_tool,
    memory_tools,
    pipeline_tool,
    tool_search_tool,
)
from zcpolicy.registry.sources import HostTool, McpConnection, McpServer, SkillSource, ToolContext, ToolResult
from zcpolicy.tickets import Ticket

MAX_AFTER_SECONDS: Final = 366 * 86_400.0
"""Seconds from a call to the run that it starts, and between two such runs."""
MAX_SKILL_BYTES: Final = 1_048_576
"""Bytes of the instructions of a skill."""
MAX_STEPS: Final = 50
"""Steps of one workflow that a tool starts."""

Later = Callable[[Ticket, str, float, float | None], str]
"""Has a run start: a ticket, the text, seconds from now, seconds between runs. Its id. Raises ScheduleError, OSError."""
Steps = Callable[[Ticket, list[tuple[str, str]]], Awaitable[list[tuple[str, str, str]]]]
"""Runs a workflow: pairs of agent and prompt. How the steps went: agent, status, text."""


def builtin_tools(store: MemoryStore, later: Later, steps: Steps) -> tuple[HostTool, ...]:
    """All that the daemon has of its own; an agent has those that the policy declares and grants."""
    own = (
        delegate_tool(),
        load_skill_tool(),
        pipeline_tool(),
        tool_search_tool(),
        _later_tool(later),
        _workflow_tool(steps),
    )
    return (*own, *memory_tools(store))


def skill_sources(skills: Mapping[str, SkillSettings]) -> dict[str, SkillSource]:
    """By name. Raises SettingsError for instructions that cannot be read."""
    found: dict[str, SkillSource] = {}
    for name, skill in skills.items():
        try:
            with open(skill.file, "rb") as file:
                text = file.read(MAX_SKILL_BYTES + 1).decode()
        except (OSError, ValueError):
            raise SettingsError(f"the instructions of skill `{name}` cannot be read") from None
        if len(text) > MAX_SKILL_BYTES:
            raise SettingsError(f"the instructions of skill `{name}` have more than {MAX_SKILL_BYTES} bytes")
        found[name] = SkillSource(skill.description, text)
    return found


def mcp_servers(mcp: Mapping[str, McpSettings]) -> dict[str, McpServer]:
    """By name. Raises SettingsError for a secret that is not there, ImportError without the extra."""
    for name, server in mcp.items():
        try:
            _read({**server.env, **server.headers})
        except SettingsError as error:
            raise SettingsError(f"`[mcp.{name}]`: {error}") from None
    return {name: McpServer(_connector(server), server.pinned) for name, server in mcp.items()}


def _connector(server: McpSettings) -> Callable[[], Awaitable[McpConnection]]:
    from zcpolicy.registry.mcp_servers import HttpServer, StdioServer

    async def connect() -> McpConnection:
        if server.command:
            program, *words = server.command
            return await StdioServer(program, tuple(words), _read(server.env), server.cwd).connect()
        return await HttpServer(server.url, _read(server.headers)).connect()

    return connect


def _read(secrets: Mapping[str, Secret]) -> dict[str, str]:
    return {name: secret.read() for name, secret in secrets.items()}


# --- tools that start turns ------------------------------------------------------------------------------------------


def _later_tool(later: Later) -> HostTool:
    """`run_later(text: string, after: number, every?: number, agent?: string)`: seconds."""

    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        after, every = _seconds(arguments["after"]), arguments.get("every")
        between = None if every is None else _seconds(every)
        ticket = context.later(str(arguments.get("agent", "")))
        try:
            job = later(ticket, str(arguments["text"]), after, between)
        except (ValueError, OSError) as error:
            return ToolResult(f"that cannot be kept: {error}", ok=False)
        return ToolResult(f"it will be done: job {job}")

    return HostTool(
        "run_later", "Has something done later: after so many seconds, and then every so many.",
        _object({"text": "string", "after": "number"}, {"every": "number", "agent": "string"}), run,
    )  # fmt: skip


def _workflow_tool(steps: Steps) -> HostTool:
    """`workflow(steps: list<object>)`: each `{"prompt": …, "agent": …}`."""

    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        wanted = [_step(one) for one in arguments["steps"][: MAX_STEPS + 1]]
        if len(wanted) > MAX_STEPS or None in wanted:
            return ToolResult(f"a workflow has at most {MAX_STEPS} steps, each with a `prompt`", ok=False)
        went = await steps(context.later(), [one for one in wanted if one is not None])
        text = "\n".join(f"{agent}: {status}: {said}" for agent, status, said in went)
        return ToolResult(text, ok=all(status == "done" for _, status, _ in went))

    parameters = {
        "type": "object", "properties": {"steps": {"type": "array", "items": {"type": "object"}}},
        "required": ["steps"], "additionalProperties": False,
    }  # fmt: skip
    return HostTool("workflow", "Does steps one after the other, some by other agents.", parameters, run)


def _step(one: Any) -> tuple[str, str] | None:
    if not is_object(one) or not one.keys() <= {"agent", "prompt"}:
        return None
    agent, prompt = one.get("agent", ""), one.get("prompt")
    return (agent, prompt) if type(agent) is str and type(prompt) is str else None


def _seconds(value: Any) -> float:
    """A number of seconds; what is none, or beyond the bound, is the bound: nothing runs sooner than was meant."""
    found = float(value)
    return found if 0 <= found <= MAX_AFTER_SECONDS else MAX_AFTER_SECONDS


def _object(required: Mapping[str, str], optional: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in {**required, **optional}.items()},
        "required": [*required],
        "additionalProperties": False,
    }
