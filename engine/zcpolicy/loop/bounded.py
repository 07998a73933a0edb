"""One tool at work: it is cut off in time, and whatever it does is a result.

In: what a tool's function gave, seconds. Out: its result, or a failed one that tells the model nothing of the inside, and for
the host what went wrong: on its record, and with the traceback in the log `zcpolicy` of the standard library. A tool
runs in a task of its own, so that what it raises or cancels is its own affair, and a cancelled turn ends whatever its
tools do about it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from zcpolicy.faults import in_short, log_fault
from zcpolicy.refusals import PermitError
from zcpolicy.registry.sources import ToolResult

CUT_OFF_SECONDS: Final = 5.0
"""For which what is cut off may tidy up; what goes on after it is left alone, and what it says is not heard."""

FAILED: Final = "The tool failed."


class Fault(NamedTuple):
    """What went wrong in a tool. `kind`: the name of what was raised; `text`: what it says."""

    kind: str
    text: str = ""
    raised: BaseException | None = None


NONE: Final = Fault("")


def log_of(tool: str, fault: Fault) -> None:
    """For whoever wrote the tool: what it raised, and where."""
    if fault.kind:
        log_fault(f"tool `{tool}`", f"{fault.kind}: {in_short(fault.text)}", fault.raised)


class InnerRefused(PermitError):
    """A call that a tool wanted to make was refused, and with it all that were to be made along. Fit for a model."""


async def bounded(
    work: Callable[[], Awaitable[ToolResult | str]], seconds: float, over: Callable[[], None]
) -> tuple[ToolResult, Fault]:
    """The result, and of a failure what went wrong, for the host.

    `over` is called the moment the tool returns, and before it is cut off. Raises CancelledError where the caller is
    cancelled, and the KeyboardInterrupt of a person.
    """
    tool = asyncio.create_task(_caught(work, over))
    try:
        done, _ = await asyncio.wait([tool], timeout=seconds)
    except asyncio.CancelledError:
        over()
        await cut_off([tool])
        raise
    if not done:
        over()
        await cut_off([tool])
        text = f"did not answer within {seconds:g} seconds"
        return ToolResult(f"The tool {text}.", ok=False), Fault("TimeoutError", text)
    if tool.cancelled():  # before it began
        return ToolResult(FAILED, ok=False), Fault("CancelledError")
    result, fault = tool.result()
    if isinstance(fault.raised, KeyboardInterrupt):
        raise fault.raised
    return result, fault


async def cut_off(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancels what still runs, and waits for its end. Cancelled meanwhile, it raises that after all the others."""
    ends = asyncio.get_running_loop().time() + CUT_OFF_SECONDS
    running = {task for task in tasks if task.cancel()}
    cancelled: asyncio.CancelledError | None = None
    while running and (left := ends - asyncio.get_running_loop().time()) > 0:
        try:
            _, running = await asyncio.wait(running, timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def _caught(work: Callable[[], Awaitable[object]], over: Callable[[], None]) -> tuple[ToolResult, Fault]:
    """Never raises: what is no `Exception` would end the event loop, and with it all other turns."""
    try:
        return _sound(await work())
    except InnerRefused as refused:
        return ToolResult(str(refused), ok=False), _fault(refused)
    except BaseException as raised:  # noqa: BLE001 - the host's code: however it fails, it failed
        return ToolResult(FAILED, ok=False), _fault(raised)
    finally:
        over()


def _fault(raised: BaseException) -> Fault:
    try:
        text = str.__str__(str(raised))
    except Exception:  # noqa: BLE001 - the host's code, which may not even say what went wrong
        text = ""
    return Fault(type(raised).__name__, text, raised)


def _sound(found: object) -> tuple[ToolResult, Fault]:
    """The result, if it is one, made of plain values."""
    if isinstance(found, str):
        return ToolResult(str.__str__(found)), NONE
    if isinstance(found, ToolResult) and _is_made_of_its_kinds(found):
        return ToolResult(str.__str__(found.text), found.ok, dict(found.cost)), NONE
    return ToolResult(FAILED, ok=False), Fault(
        type(found).__name__, "the tool's answer is neither text nor a `ToolResult`"
    )


def _is_made_of_its_kinds(result: Any) -> bool:
    return isinstance(result.text, str) and type(result.ok) is bool and isinstance(result.cost, Mapping)
