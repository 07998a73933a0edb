"""The life of what one factory made: constructed, registering, executing, shutting down, over.

In: an object with `tools()`, and if it wants `async register(owned)` and `async shut_down()`. Out: `Toolset`, whose tools run while
it is executing and at no other time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, Protocol

from zcpolicy.awaited import is_async
from zcpolicy.refusals import PermitError
from zcpolicy.registry.sources import HostTool, Run, ToolContext, ToolResult
from zcpolicy.state.guard import constructed, executing
from zcpolicy.state.releasing import MAX_UNWILLING_SECONDS, Once, Owned, ended, fault, traced

Phase = Literal["constructed", "registering", "executing", "shutting down", "over"]


class Made(Protocol):
    """What a factory makes. It may have `async def register(self, owned: Owned)` and `async def shut_down(self)` as well."""

    def tools(self) -> Sequence[HostTool]:
        """Its tools, once it has registered."""
        ...


class Unfit(Exception):
    """A tool that cannot be constructed or registered. The message names it and says why."""


class Toolset:
    """What one factory made. `handles`: the names of those that it was lent. `why`: what went wrong with it, if something did."""

    def __init__(self, name: str, made: Made, handles: tuple[str, ...]) -> None:
        self.name: Final = name
        self.handles: Final = handles
        self.tools: tuple[HostTool, ...] = ()
        self.phase: Phase = "constructed"
        self.why = ""
        self._made = made
        self._owned = Owned()
        self._calls: set[asyncio.Task[Any]] = set()
        self._registering: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seconds = (0.0, MAX_UNWILLING_SECONDS)
        self.ending: Final = Once(self._ended)
        for optional in ("register", "shut_down"):
            found = _optional(made, optional)
            if found is not None and not is_async(found):
                raise Unfit(f"`{optional}` of `{name}` is a plain function: write `async def`")

    async def register(self, checked: Callable[[Made, Sequence[HostTool]], Awaitable[None]], seconds: float) -> None:
        """Lets it validate what it needs, within so many seconds, and lists its tools. `checked` raises Unfit: it is asked before
        anything of the tool runs, and again with its tools.

        Raises Unfit, and then it has been shut down; being cancelled it is shut down as well.
        """
        if self.phase != "constructed":
            raise Unfit(f"`{self.name}` is {self.phase}: a tool registers once")
        self.phase = "registering"
        self._loop = asyncio.get_running_loop()
        self._registering = asyncio.ensure_future(self._registered(checked))
        try:
            done, _ = await asyncio.wait({self._registering}, timeout=seconds)
        except BaseException:
            await self.shut_down(0, MAX_UNWILLING_SECONDS)
            raise
        self.why = self._outcome(self._registering) if done else f"did not register within {seconds:g} seconds"
        if self.why:
            await self.shut_down(0, seconds)
            raise Unfit(f"`{self.name}`: {self.why}")
        self._owned.shut()
        self.phase = "executing"

    def _outcome(self, task: "asyncio.Task[Any]") -> str:
        error = None if task.cancelled() else task.exception()
        if self.phase != "registering":
            return "was shut down while it registered"
        if task.cancelled():
            return "was cancelled while it registered"
        if error is None:
            return ""
        return str(error) if isinstance(error, Unfit) else traced(error)

    async def _registered(self, checked: Callable[[Made, Sequence[HostTool]], Awaitable[None]]) -> None:
        await checked(self._made, ())
        self._owned.open()
        register = _optional(self._made, "register")
        if register is not None:
            await register(self._owned)
        tools: tuple[Any, ...] = tuple(constructed(self._made.tools))
        if not all(isinstance(one, HostTool) for one in tools):
            raise Unfit("`tools()` gives a sequence of `HostTool`")
        await checked(self._made, tools)
        self.tools = tuple(replace(tool, run=self._run(tool.name, tool.run)) for tool in tools)

    # --- calls ---------------------------------------------------------------------------------------------------

    def _run(self, name: str, run: Run) -> Run:
        async def call(arguments: dict[str, Any], context: ToolContext) -> ToolResult | str:
            return await self._called(name, partial(run, arguments, context))

        return call

    async def _called(self, name: str, work: Callable[[], Awaitable[ToolResult | str]]) -> ToolResult | str:
        if not self._is_executing():
            raise PermitError(f"tool `{name}` cannot be called: `{self.name}` is {self.phase}")
        if asyncio.get_running_loop() is not self._loop:
            raise PermitError(f"tool `{name}` is called in the event loop that it registered in, and in no other")
        with executing():
            task = asyncio.ensure_future(_awaited(work))
        self._calls.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._is_executing() or (caller is not None and caller.cancelling()):
                raise
            raise PermitError(f"the call of `{name}` was cut off: `{self.name}` is shut down") from None
        finally:
            self._calls.discard(task)

    def _is_executing(self) -> bool:
        return self.phase == "executing"

    # --- the end -------------------------------------------------------------------------------------------------

    def stop(self, drain: float, seconds: float) -> None:
        """From now on nothing of it can be called; what is under way goes on until `ending`, which has so much time."""
        if self.phase != "over":
            self.phase = "shutting down"
        if not self.ending.begun:
            self._seconds = (drain, seconds)
        self._owned.shut()

    async def shut_down(self, drain: float, seconds: float) -> list[str]:
        """Calls under way end within `drain` seconds or are cut off; then what it holds is released, each thing within so many
        seconds: `shut_down`, if it had begun to register, and its resources. Once, to the end, whoever asks. What went wrong.
        """
        self.stop(drain, seconds)
        return await self.ending.asked()

    async def _ended(self) -> list[str]:
        drain, seconds = self._seconds
        wrong: list[str] = []
        begun: set[asyncio.Task[Any]] = set() if self._registering is None else {self._registering}
        if not await _cut_off(begun):
            wrong.append(f"`register` of `{self.name}` goes on, though it was cancelled")
        if not await ended(self._calls, drain) and not await _cut_off(self._calls):
            wrong.append(f"a call of `{self.name}` goes on, though it was cancelled")
        shut_down = _optional(self._made, "shut_down")
        if shut_down is not None and begun:
            why = await fault(shut_down, seconds)
            wrong += [f"`shut_down` of `{self.name}`: {why}"] if why else []
        wrong += [f"a resource of `{self.name}`: {why}" for why in await self._owned.release(seconds)]
        self.phase = "over"
        self.tools = ()
        return wrong


def _optional(made: Any, name: Literal["register", "shut_down"]) -> Callable[..., Awaitable[object]] | None:
    found: Callable[..., Awaitable[object]] | None = (
        getattr(made, "register", None) if name == "register" else getattr(made, "shut_down", None)
    )
    return found


async def _cut_off(tasks: "set[asyncio.Task[Any]]") -> bool:
    """Whether all have ended."""
    left = set(tasks)
    for task in left:
        task.cancel()
    return await ended(left, MAX_UNWILLING_SECONDS)


async def _awaited(work: Callable[[], Awaitable[ToolResult | str]]) -> ToolResult | str:
    return await work()
