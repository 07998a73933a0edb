"""Tools that come along: a host offers those that its policies declare.

In: nothing, or a store. Out: `HostTool`s. They decide nothing: what they do is what the execution may. The gate decides every
step of a pipeline before the first runs; a step that names no tool of the registry refuses all.
"""

from typing import Any, Final

from zcpolicy.exact import is_list, is_object
from zcpolicy.memory import MemoryRefused
from zcpolicy.memory_stores.contract import MemoryStore
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.sources import USUAL_FOUND, HostTool, InnerCall, Json, ToolContext, ToolResult
from zcpolicy.registry.view import SEARCH
from zcpolicy.texts import escaped

MAX_STEPS: Final = 100
"""Steps of one pipeline."""

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


def load_skill_tool(name: str = "load_skill") -> HostTool:
    """`load_skill(skill: string)`."""

    async def load(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            return ToolResult(context.load_skill(arguments["skill"]))
        except ResolveError as error:
            return ToolResult(f"The skill was not loaded: {error}.", ok=False)

    return HostTool(name, "Loads a skill: gives its instructions, under its rules.", _object(("skill",)), load)


def tool_search_tool() -> HostTool:
    """`tool_search(query: string, limit?: integer)`: what it lists is shown from then on."""

    async def search(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        limit = arguments.get("limit")
        found = context.registry.search(str(arguments["query"]), USUAL_FOUND if limit is None else int(limit))
        if not found:
            return ToolResult("no tool has these words")
        return ToolResult("\n".join(f"{spec.wire}: {spec.description}" for spec in found))

    most = {"type": "integer", "description": f"At most so many tools; {USUAL_FOUND} unless it is given."}
    return HostTool(
        SEARCH,
        "Finds tools by words of their names and descriptions. Tools that it lists can be called from then on.",
        _object((), {"query": {**_TEXT, "description": "Words to look for."}}, limit=most),
        search,
    )


def pipeline_tool() -> HostTool:
    """`pipeline(steps: list<object>) runs tools`, one after the other; a step is `{tool, arguments}`."""
    step = {
        "type": "object",
        "properties": {"tool": _TEXT, "arguments": {"type": "object"}},
        "required": ["tool"],
    }
    return HostTool(
        "pipeline",
        "Runs tools one after the other. If one of the steps is refused, none runs.",
        _object((), {"steps": {"type": "array", "items": step}}),
        _run_steps,
    )


async def _run_steps(arguments: dict[str, Json], context: ToolContext) -> ToolResult:
    steps = arguments.get("steps")
    if not is_list(steps) or not 0 < len(steps) <= MAX_STEPS:
        return _refused(f"a pipeline has 1 to {MAX_STEPS} steps")
    calls: list[InnerCall] = []
    for number, step in enumerate(steps, 1):
        call = _call(step, context)
        if isinstance(call, str):
            return _refused(f"step {number} {call}")
        calls.append(call)
    results = await context.run(calls)
    told = [f"{number}. {'' if one.ok else 'failed: '}{one.text}" for number, one in enumerate(results, 1)]
    return ToolResult("\n".join(told), ok=all(one.ok for one in results))


def _call(step: Json, context: ToolContext) -> InnerCall | str:
    """The call of a step, or what is wrong with it."""
    if not is_object(step) or not step.keys() <= {"tool", "arguments"} or type(step.get("tool")) is not str:
        return "is not `{tool, arguments}`"
    given = step.get("arguments", {})
    if not is_object(given):
        return "has arguments that are no object"
    wire = str(step["tool"])
    name = context.registry.find(wire)
    return InnerCall(name, given) if name is not None else f"names no tool that can be called: `{escaped(wire[:60])}`"


def _refused(why: str) -> ToolResult:
    return ToolResult(f"no step ran: {why}", ok=False)


def _object(texts: tuple[str, ...], required: dict[str, Json] | None = None, **optional: Json) -> dict[str, Json]:
    """A schema: texts that have to be there, what else has to, and what may."""
    properties = {**dict.fromkeys(texts, _TEXT), **(required or {})}
    return {
        "type": "object",
        "properties": {**properties, **optional},
        "required": [*properties],
        "additionalProperties": False,
    }
