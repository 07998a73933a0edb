"""The pipeline: a tool that runs other tools, one after the other.

In: steps that a model names. Out: `pipeline_tool`, for a tool that the policy declares `runs tools`. The gate decides every
step before the first runs; a step that names no tool of the registry refuses all.
"""

from typing import Final

from zcpolicy.exact import is_list, is_object
from zcpolicy.registry.sources import HostTool, InnerCall, Json, ToolContext, ToolResult
from zcpolicy.texts import escaped

MAX_STEPS: Final = 100
"""Steps of one pipeline."""

PIPELINE: Final = "pipeline"


def pipeline_tool() -> HostTool:
    """The host tool `pipeline(steps: list<object>) runs tools`; a step is `{tool, arguments}`."""
    step = {
        "type": "object",
        "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["tool"],
    }
    return HostTool(
        PIPELINE,
        "Runs tools one after the other. If one of the steps is refused, none runs.",
        {
            "type": "object",
            "properties": {"steps": {"type": "array", "items": step}},
            "required": ["steps"],
            "additionalProperties": False,
        },
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
