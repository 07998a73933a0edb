"""One tool at work: it is cut off in time, and whatever it does is a result.

In: what a tool's function gave, seconds. Out: its result, or a failed one that tells the model nothing of the inside.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from zcpolicy.refusals import PermitError
from zcpolicy.registry.sources import ToolResult


class InnerRefused(PermitError):
    """A call that a tool wanted to make was refused, and with it all that were to be made along. Fit for a model."""


async def bounded(work: Callable[[], Awaitable[ToolResult | str]], seconds: float) -> tuple[ToolResult, str]:
    """The result, and of a failure the name of what was raised, for the host's record. Raises CancelledError."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return _sound(await work())
    except InnerRefused as refused:
        return ToolResult(str(refused), ok=False), type(refused).__name__
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        fault: BaseException = error  # something inside was cancelled, not this turn
    except Exception as error:  # noqa: BLE001 - the host's code: however it fails, it failed
        fault = error
    if limit.expired():
        return ToolResult(f"The tool did not answer within {seconds:g} seconds.", ok=False), "TimeoutError"
    return ToolResult("The tool failed.", ok=False), type(fault).__name__


def _sound(found: object) -> tuple[ToolResult, str]:
    """The result, if it is one."""
    if isinstance(found, str):
        return ToolResult(found), ""
    if isinstance(found, ToolResult) and _is_made_of_its_kinds(found):
        return found, ""
    return ToolResult("The tool failed.", ok=False), type(found).__name__


def _is_made_of_its_kinds(result: Any) -> bool:
    return isinstance(result.text, str) and type(result.ok) is bool and isinstance(result.cost, Mapping)
