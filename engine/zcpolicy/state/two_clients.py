"""Whether anything of one client reaches another through a tool: told by running it as two of them, over and again.

In: a factory, the handles that it is lent, executions to run as, calls. Out: `Crossing`s, by the tool's name.

    found = await crossings(make_notes, lambda: Handles(notes=Notes()), acting, [("note", {"text": "{marker}"}), ("notes", {})])
    assert found == ()

Each call is made by A and by B in hosts that are made anew. What A wrote must not stand in what B is told (`read`); what B is told, and
what A is told afterwards, must not depend on whether the other was there (`changed`: a quota that is exhausted, an entry that is overwritten
or reset). An answer that differs between two equal hosts cannot be compared: that is told as well (`unsteady`). The functions are run as they
are, no policy is asked: this is a test, and no way to run tools.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from secrets import randbelow
from typing import Any, Final, Literal, NamedTuple, Never

from zcpolicy.exact import is_list, is_object
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.identity import Identity
from zcpolicy.refusals import PermitError, ResolveError
from zcpolicy.registry.sources import HostTool, InnerCall, ToolResult
from zcpolicy.state.audit import Handles
from zcpolicy.state.caller import Caller, caller_for
from zcpolicy.state.lifecycle import Factory, Lifecycle
from zcpolicy.state.releasing import reason
from zcpolicy.state.toolset import Unfit

Acting = Callable[[str, str, str], ResolvedAgentExecution]
"""(client, agent, session) to an execution of that agent, for that client, in that session."""
Call = tuple[str, Mapping[str, Any]]
"""A tool's name and its arguments; `{marker}` in a text becomes what only this client writes."""
Boundary = Literal["client", "agent", "session"]

_WHY: Final = "run by `crossings`"


class Crossing(NamedTuple):
    """What crosses a boundary. `said`: what was told to whom it does not concern, or differs."""

    tool: str
    how: Literal["read", "changed", "unsteady"]
    boundary: Boundary
    said: str

    def __str__(self) -> str:
        told = {
            "read": "tells one {} what another wrote",
            "changed": "answers one {} otherwise where another was there",
            "unsteady": "answers differently in two equal hosts, so that no {} can be told from another",
        }[self.how]
        return f"`{self.tool}` {told.format(self.boundary)}: {self.said}"


async def crossings(
    factory: Factory,
    handles: Callable[[], Handles],
    acting: Acting,
    calls: Sequence[Call],
    *,
    agents: tuple[str, ...],
    rounds: int = 3,
    settings: Mapping[str, Any] | None = None,
    unsteady: Sequence[str] = (),
) -> tuple[Crossing, ...]:
    """What crosses between two clients; between two of the `agents`, and two sessions, of one client as far as the contracts of
    the handles that it takes promise that. `rounds`: how often the other makes all calls. `unsteady`: tools whose answers are
    known to differ (a clock). Raises Unfit.
    """
    test = _Test(factory, handles, acting, tuple(calls), rounds, settings or {})
    found: dict[tuple[str, str, str], Crossing] = {}
    for boundary, a, b in await test.pairs(agents):
        for one in await test.found(boundary, a, b):
            if one.how != "unsteady" or one.tool not in unsteady:
                found.setdefault(one[:3], one)
    return tuple(found.values())


class TwoClients:
    """`crossings` for a test suite without an event loop; the plugin gives it to tests as the fixture `two_clients`."""

    def __call__(
        self,
        factory: Factory,
        handles: Callable[[], Handles],
        acting: Acting,
        calls: Sequence[Call],
        *,
        agents: tuple[str, ...],
        rounds: int = 3,
        settings: Mapping[str, Any] | None = None,
        unsteady: Sequence[str] = (),
    ) -> None:
        """Raises AssertionError where something crosses, a line for each; else as `crossings`."""
        test = crossings(
            factory, handles, acting, calls, agents=agents, rounds=rounds, settings=settings, unsteady=unsteady
        )
        found = asyncio.run(test)
        if found:
            raise AssertionError("\n".join(map(str, found)))


class _Who(NamedTuple):
    client: str
    agent: str
    session: str


class _Test:
    def __init__(
        self,
        factory: Factory,
        handles: Callable[[], Handles],
        acting: Acting,
        calls: tuple[Call, ...],
        rounds: int,
        settings: Mapping[str, Any],
    ) -> None:
        self._factory = factory
        self._handles = handles
        self._acting = acting
        self._calls = calls
        self._rounds = rounds
        self._settings = settings

    async def pairs(self, agents: tuple[str, ...]) -> list[tuple[Boundary, _Who, _Who]]:
        """Who is held against whom: clients always, and what all handles that it takes keep apart."""
        handles = self._handles()
        tools = await self._started(handles)
        taken: list[str] = tools.status()[_NAME]["handles"]
        await tools.shut_down()
        apart = {handle.contract.isolation for name, handle in handles if name in taken}
        one, two = agents[0], agents[-1]
        found: list[tuple[Boundary, _Who, _Who]] = [("client", _Who("a", one, "1"), _Who("b", one, "2"))]
        if apart and apart <= {"agent", "session"} and one != two:
            found.append(("agent", _Who("a", one, "1"), _Who("a", two, "2")))
        if apart == {"session"}:
            found.append(("session", _Who("a", one, "1"), _Who("a", one, "2")))
        return found

    async def found(self, boundary: Boundary, a: _Who, b: _Who) -> list[Crossing]:
        alone, again = [await self._told(b) for _ in range(2)]
        after = await self._told(*[a] * self._rounds, b)
        mine = await self._told(a, a)
        between = await self._told(a, *[b] * self._rounds, a)
        found: list[Crossing] = []
        for number, (tool, _) in enumerate(self._calls):
            one, other = after.last[number], between.last[number]
            if after.marks[a] in after.raw[number]:
                found.append(Crossing(tool, "read", boundary, after.raw[number]))
            elif between.marks[b] in between.raw[number]:
                found.append(Crossing(tool, "read", boundary, between.raw[number]))
            elif alone.last[number] != again.last[number]:
                found.append(Crossing(tool, "unsteady", boundary, again.last[number]))
            elif one != alone.last[number]:
                found.append(Crossing(tool, "changed", boundary, f"{alone.last[number]} became {one}"))
            elif other != mine.last[number]:
                found.append(Crossing(tool, "changed", boundary, f"{mine.last[number]} became {other}"))
        return found

    async def _told(self, *order: _Who) -> "_Told":
        """What the last of them is told, in a host that is made anew."""
        marks = {one: f"{randbelow(10**16):016}" for one in order}
        tools = await self._started(self._handles())
        try:
            runs = {one: self._acting(*one) for one in marks}
            offered = {tool.name: tool for tool in tools.sources().builtins}
            raw: list[str] = []
            for one in order:
                raw = [
                    await _said(offered[name], _marked(dict(given), marks[one]), runs[one])
                    for name, given in self._calls
                ]
        finally:
            await tools.shut_down()
        last = order[-1]
        return _Told(raw, [text.replace(marks[last], "{marker}") for text in raw], marks)

    async def _started(self, handles: Handles) -> Lifecycle:
        tools = Lifecycle(handles)
        tools.add(_NAME, self._factory, self._settings, vouched=_WHY)
        failed = await tools.register()
        if failed:
            raise Unfit(failed[_NAME])
        return tools


_NAME: Final = "tested"


class _Told(NamedTuple):
    """Answers as they came, the same with the marker taken out, and what everybody wrote."""

    raw: list[str]
    last: list[str]
    marks: dict[_Who, str]


async def _said(tool: HostTool, arguments: dict[str, Any], run: ResolvedAgentExecution) -> str:
    context = _Alone(run)
    try:
        found = await tool.run(arguments, context)
    except Exception as error:  # noqa: BLE001 - what it raises is told as well
        return reason(error)
    finally:
        context.close()
    return found if isinstance(found, str) else f"{'' if found.ok else 'failed: '}{found.text}"


def _marked(value: Any, marker: str) -> Any:
    if isinstance(value, str):
        return value.replace("{marker}", marker)
    if is_object(value):
        return {name: _marked(part, marker) for name, part in value.items()}
    return [_marked(part, marker) for part in value] if is_list(value) else value


class _Alone:
    """A `ToolContext` of one call, with nobody beside it."""

    def __init__(self, run: ResolvedAgentExecution) -> None:
        self._run: ResolvedAgentExecution | None = run

    def close(self) -> None:
        self._run = None

    def _acting(self) -> ResolvedAgentExecution:
        if self._run is None:
            raise PermitError("the call is over")
        return self._run

    @property
    def identity(self) -> Identity:
        return self._acting().identity

    @property
    def caller(self) -> Caller:
        self._acting()
        return caller_for(self._acting)

    @property
    def memory(self) -> Any:
        return self._acting().memory

    @property
    def registry(self) -> Never:
        raise ResolveError("there is no registry here")

    async def run(self, calls: Sequence[InnerCall]) -> list[ToolResult]:
        raise ResolveError("there are no other tools here")

    async def delegate(self, agent: str, task: str, *, independent: bool = False) -> ToolResult:
        raise ResolveError("there is nobody to delegate to here")

    def load_skill(self, skill: str) -> str:
        raise ResolveError("there are no skills here")

    def later(self, agent: str = "") -> Never:
        raise ResolveError("there is no scheduler here")
