"""Tools that the reference host has of its own: memory, and handing a task to another agent.

In: a store. Out: `HostTool`s, for policies that declare them. What they may do is what the execution may: they decide nothing.
"""

from typing import Any, Final

from zcpolicy.memory import MemoryRefused
from zcpolicy.memory_stores.contract import MemoryStore
from zcpolicy.registry.sources import HostTool, ToolContext, ToolResult

_TEXT: Final = {"type": "string"}


def memory_tools(store: MemoryStore) -> tuple[HostTool, HostTool]:
    """`memory_recall(query: string)`, `memory_store(text: string, scope?: string)`, both of group `memory`."""

    async def recall(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            found = await context.memory.recall(store, arguments["query"])
        except MemoryRefused as refused:
            return ToolResult(str(refused), ok=False)
        return ToolResult("\n".join(entry.text for entry in found) or "nothing is remembered of it")

    async def remember(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            await context.memory.remember(store, arguments["text"], arguments.get("scope", "own"))
        except MemoryRefused as refused:
            return ToolResult(str(refused), ok=False)
        return ToolResult("it is remembered")

    return (
        HostTool("memory_recall", "Recalls what was remembered.", _object(("query",)), recall, "memory"),
        HostTool("memory_store", "Remembers a text.", _object(("text",), scope=_TEXT), remember, "memory"),
    )


def delegate_tool() -> HostTool:
    """`delegate(agent: string, task: string, independent?: boolean)`."""

    async def delegate(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        free = arguments.get("independent") is True
        return await context.delegate(arguments["agent"], arguments["task"], independent=free)

    parameters = _object(("agent", "task"), independent={"type": "boolean"})
    return HostTool("delegate", "Has another agent do a task, and gives its answer.", parameters, delegate)


def _object(required: tuple[str, ...], **optional: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**dict.fromkeys(required, _TEXT), **optional},
        "required": [*required],
        "additionalProperties": False,
    }
