"""Construct, register, execute, shut down: the order in which a host's tools live.

In: factories. Out: `Lifecycle`, whose `sources()` are the tools that may be called.

    tools = Lifecycle(handles)
    tools.add("canvas", make_canvas)          # construct: nothing waits for the outside
    failed = await tools.register()           # start-up validation
    host = Host(resolver, tools.sources(), …) # execute
    await tools.shut_down()                   # everything is released
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Self

from zcpolicy.awaited import is_async
from zcpolicy.refusals import PermitError
from zcpolicy.registry.sources import HostTool, ToolSources
from zcpolicy.state.audit import HandleError, Handles
from zcpolicy.state.given import Given
from zcpolicy.state.guard import constructed, not_in_a_call
from zcpolicy.state.inspection import Finding, inspected
from zcpolicy.state.releasing import Once, traced
from zcpolicy.state.toolset import Made, Toolset, Unfit
from zcpolicy.state.versions import SourceVersions

Factory = Callable[[Given], Made]

REGISTER_SECONDS: Final = 30.0
"""How long a tool may take to register, where the host does not say."""
DRAIN_SECONDS: Final = 10.0
"""How long calls under way may go on at shut-down, where the host does not say."""
RELEASE_SECONDS: Final = 10.0
"""How long releasing one thing may take, where the host does not say."""


class Lifecycle:
    """The tools of a host, or of one generation of its configuration. In one event loop. `async with` shuts it down.

    `handles`: what factories are lent from; they outlive it. `seconds`: to register, to drain, to release one thing.
    """

    def __init__(
        self,
        handles: Handles | None = None,
        versions: SourceVersions | None = None,
        *,
        seconds: tuple[float, float, float] = (REGISTER_SECONDS, DRAIN_SECONDS, RELEASE_SECONDS),
    ) -> None:
        self._handles = Handles() if handles is None else handles
        self._versions = SourceVersions() if versions is None else versions
        self._register_seconds, self._drain_seconds, self._release_seconds = seconds
        self._toolsets: dict[str, Toolset] = {}
        self._factories: dict[str, tuple[Factory, str]] = {}
        self._ending = Once(self._ended)

    def add(self, name: str, factory: Factory, settings: Mapping[str, Any] | None = None, *, vouched: str = "") -> None:
        """Constructs a tool. `vouched`: why its text is not inspected, by whoever has read it. Raises Unfit, and leaves nothing."""
        not_in_a_call("constructing a tool")
        if self._ending.begun:
            raise Unfit(f"`{name}` comes too late: its host is shutting down")
        if not name or name in self._toolsets:
            raise Unfit(f"there is a tool `{name}` already" if name else "a tool has a name")
        if is_async(factory):
            raise Unfit(f"the factory of `{name}` is a coroutine function: constructing waits for nothing")
        given = Given(self._handles, self._versions, settings or {})
        try:
            made = constructed(lambda: factory(given))
        except Exception as error:
            raise Unfit(f"`{name}` cannot be constructed: {_said(error)}") from error
        finally:
            handles = given.close()
        if not callable(getattr(made, "tools", None)):
            raise Unfit(f"what the factory of `{name}` made has no `tools()`")
        self._toolsets[name] = Toolset(name, made, handles)
        self._factories[name] = (factory, vouched)

    async def register(self) -> dict[str, str]:
        """Registers what was added since, one after the other. Those that failed, and why; nothing of them is left."""
        not_in_a_call("registering a tool")
        failed: dict[str, str] = {}
        for one in [one for one in self._toolsets.values() if one.phase == "constructed"]:
            try:
                await one.register(self._check(one.name), self._register_seconds)
            except Unfit as unfit:
                failed[one.name] = str(unfit)
        return failed

    def _check(self, name: str) -> Callable[[Made, Sequence[HostTool]], Awaitable[None]]:
        factory, vouched = self._factories[name]

        async def check(made: Made, tools: Sequence[HostTool]) -> None:
            taken = {tool.name for one in self._toolsets.values() for tool in one.tools}
            twice = next((tool.name for tool in tools if tool.name in taken), "")
            if twice:
                raise Unfit(f"there is a tool `{twice}` already")
            if not vouched:
                _refuse(await asyncio.to_thread(inspected, factory, type(made), *(tool.run for tool in tools)))

        return check

    def sources(self) -> ToolSources:
        """The tools that have registered. One that is shut down later refuses to be called."""
        ready = [one for one in self._toolsets.values() if one.phase == "executing"]
        return ToolSources(builtins=tuple(tool for one in ready for tool in one.tools))

    def status(self) -> dict[str, Any]:
        """Name to `{phase, why, tools, handles, vouched}`, JSON."""
        return {
            name: {
                "phase": one.phase,
                "why": one.why,
                "tools": [tool.name for tool in one.tools],
                "handles": [*one.handles],
                "vouched": self._factories[name][1],
            }
            for name, one in self._toolsets.items()
        }

    async def retire(self, name: str) -> list[str]:
        """Shuts one tool down. What went wrong. Raises LookupError."""
        not_in_a_call("shutting a tool down")
        return await self._toolsets[name].shut_down(self._drain_seconds, self._release_seconds)

    async def shut_down(self) -> list[str]:
        """Shuts all of them down, the last first, once, whatever fails, also where whoever waits is cancelled. What went wrong."""
        not_in_a_call("shutting tools down")
        for one in self._toolsets.values():
            one.stop(self._drain_seconds, self._release_seconds)
        return await self._ending.asked()

    async def _ended(self) -> list[str]:
        wrong: list[str] = []
        for one in reversed(self._toolsets.values()):
            wrong += await one.ending.done()
        return wrong

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.shut_down()


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, PermitError | Unfit | HandleError) else traced(error)


def _refuse(findings: Sequence[Finding]) -> None:
    """Raises Unfit where there are findings."""
    if findings:
        raise Unfit("keeps state of its own:\n" + "\n".join(map(str, findings)))
