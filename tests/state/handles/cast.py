"""Callers, and every handle with the least that can be done with it: what is put there for one, and what another sees of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.state.stage import acting
from zcpolicy import PermitError, ResolvedAgentExecution
from zcpolicy.registry.sources import ToolSpec
from zcpolicy.state.caller import Caller, Who, caller_for, caller_of
from zcpolicy.state.contract import Handle
from zcpolicy.state.handles.canvas import CanvasStore
from zcpolicy.state.handles.channel_map import ChannelMap
from zcpolicy.state.handles.credentials import Credentials
from zcpolicy.state.handles.parent_tools import ParentTools
from zcpolicy.state.handles.pool import ConnectionPool
from zcpolicy.state.handles.rate_limiter import AgentRateLimiter, RateLimiter, SessionRateLimiter
from zcpolicy.state.handles.rates import Rate, RateLimited
from zcpolicy.state.handles.session_cache import SessionCache
from zcpolicy.state.handles.tool_channels import PerToolChannels
from zcpolicy.state.versions import SourceVersions

ANN = ("ann", "one", "first")
BEN = ("ben", "one", "second")


def called(client: str = "ann", agent: str = "one", session: str = "first") -> Caller:
    return caller_of(acting(client, agent, session))


def who(client: str = "ann", agent: str = "one", session: str = "first") -> Who:
    return Who(client, agent, session, "chat")


class Call:
    """A call that ends when it is told to."""

    def __init__(self, client: str = "ann", agent: str = "one", session: str = "first") -> None:
        self._run = acting(client, agent, session)
        self._is_over = False
        self.caller = caller_for(self._acting)

    def end(self) -> None:
        self._is_over = True

    def _acting(self) -> ResolvedAgentExecution:
        if self._is_over:
            raise PermitError("the call is over")
        return self._run


class Talk:
    """A conversation with somebody who says always the same."""

    def __init__(self, says: str = "yes") -> None:
        self.says = says
        self.heard: list[str] = []

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        self.heard.append(question)
        return self.says

    async def poll(self, question: str, options: tuple[str, ...]) -> Mapping[str, int]:
        return dict.fromkeys(options, 1)

    async def react(self, reaction: str) -> None:
        self.heard.append(reaction)


class Wires:
    """Makes connections for threads: each is a list with the name of its client, and counts what becomes of them."""

    def __init__(self) -> None:
        self.made: list[list[str]] = []
        self.closed: list[list[str]] = []

    def connect(self, name: str, who: Who) -> list[str]:
        self.made.append([who.client, name])
        return self.made[-1]

    def is_healthy(self, connection: list[str]) -> bool:
        return "broken" not in connection

    def close(self, connection: list[str]) -> None:
        self.closed.append(connection)


async def nowhere(_text: str) -> None:
    """Sends to nobody."""


SPEC = ToolSpec("note", "note", "Writes a note.", {"type": "object"})
RATES = {"r": Rate(3, 60.0)}


@dataclass(frozen=True)
class Kind:
    """`fill`: puts something there for somebody, as `mark`. `seen`: all that a view shows; in a thread."""

    make: Callable[[SourceVersions], Handle[Any]]
    fill: Callable[[Any, tuple[str, str, str], str], object]
    seen: Callable[[Any], Sequence[str]]
    uses: Sequence[Callable[[Any], object]]
    """What refuses a view whose call is over."""


def _sees_rate(view: Any) -> list[str]:
    """The limiter shows nothing: whether there is room for all is what can be told, and it takes it."""
    try:
        view.take("r", 3)
    except RateLimited:
        return ["taken"]
    return []


def _borrows(view: Any) -> list[str]:
    with view.connection("db") as connection:
        return [*connection[1:]]


def _marks(view: Any, mark: str) -> None:
    with view.connection("db") as connection:
        connection.append(mark)


def _view(handle: Any, whose: tuple[str, str, str]) -> Any:
    return handle.scoped(called(*whose))


def _rate(kind: type[RateLimiter]) -> Kind:
    return Kind(
        lambda versions: kind(versions, lambda: RATES),
        lambda handle, whose, _mark: _view(handle, whose).take("r"),
        _sees_rate,
        [lambda view: view.take("r"), lambda view: view.wait_in_thread("r", 1.0)],
    )


KINDS: dict[str, Kind] = {
    "parent tools": Kind(
        lambda _versions: ParentTools(),
        lambda handle, _whose, _mark: handle.push(SPEC),
        lambda view: [str(spec.name) for spec in view.all()],
        [lambda view: view.all(), lambda view: view.find("note")],
    ),
    "tool channels": Kind(
        PerToolChannels,
        lambda handle, whose, mark: handle.open(who(*whose), mark, nowhere),
        lambda view: view.names(),
        [lambda view: view.names(), lambda view: view.send_in_thread("m", "text")],
    ),
    "channel map": Kind(
        ChannelMap,
        lambda handle, whose, mark: handle.open(who(*whose), mark, Talk()),
        lambda view: view.names(),
        [
            lambda view: view.names(), lambda view: view.ask_in_thread("m", "why?"), lambda view: view.react_in_thread("m", "+"),
            lambda view: view.poll_in_thread("m", "why?", ["a"]),
        ],
    ),
    "canvas": Kind(
        CanvasStore,
        lambda handle, whose, mark: _view(handle, whose).render("c", mark),
        lambda view: [frame.content for frame in view.frames("c")],
        [
            lambda view: view.names(), lambda view: view.frames("c"), lambda view: view.render("c", "x"), lambda view: view.close("c"),
            lambda view: view.subscribe("c"),
        ],
    ),
    "rate limiter": _rate(RateLimiter),
    "rate limiter by agents": _rate(AgentRateLimiter),
    "rate limiter by sessions": _rate(SessionRateLimiter),
    "pool": Kind(
        lambda versions: ConnectionPool(versions, Wires()),
        lambda handle, whose, mark: _marks(_view(handle, whose), mark),
        lambda view: [mark for mark in _borrows(view) if mark != "db"],
        [_borrows],
    ),
    "credentials": Kind(
        lambda versions: Credentials(versions, lambda client, name: f"{client}'s {name}"),
        lambda handle, whose, mark: _view(handle, whose).get_in_thread(mark),
        lambda view: [view.get_in_thread("key").reveal()],
        [lambda view: view.get_in_thread("key")],
    ),
    "session cache": Kind(
        SessionCache,
        lambda handle, whose, mark: _view(handle, whose).get_in_thread("c", lambda: mark),
        lambda view: [found for found in [view.find("c")] if found],
        [lambda view: view.find("c"), lambda view: view.get_in_thread("c", lambda: "x")],
    ),
}  # fmt: skip
