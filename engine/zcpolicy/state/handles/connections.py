"""Connections that are open, and whose.

In: what a connector made, and what it was made under. Out: `Connection`, and the `Place` that it leads to.
"""

from concurrent.futures import Future
from typing import Any, Final, Generic, Protocol, TypeVar

from zcpolicy.state.caller import Who
from zcpolicy.state.handles.slots import Slots
from zcpolicy.state.versions import Versions

C = TypeVar("C")

MAX_CONNECTIONS: Final = 8
"""Connections of one client to one place."""


class Connector(Protocol[C]):
    """Makes connections that tasks use."""

    async def connect(self, name: str, who: Who) -> C:
        """A connection for whom it is. The pool bounds it in time."""
        ...

    async def is_healthy(self, connection: C) -> bool: ...

    async def close(self, connection: C) -> None: ...


class ThreadConnector(Protocol[C]):
    """Makes connections that threads use. What takes too long it has to cut off itself."""

    def connect(self, name: str, who: Who) -> C:
        """A connection for whom it is."""
        ...

    def is_healthy(self, connection: C) -> bool: ...

    def close(self, connection: C) -> None: ...


class Place:
    """One place that one client is connected to. `idle`: those that nobody has; `open`: all that are not closed yet."""

    __slots__ = ("idle", "open", "slots")

    def __init__(self) -> None:
        self.slots = Slots(MAX_CONNECTIONS)
        self.idle: list[Connection[Any]] = []
        self.open: set[Connection[Any]] = set()

    @property
    def is_over(self) -> bool:
        """Whether nothing is open, and nobody is about to open something."""
        return self.slots.is_idle and not self.open


class Connection(Generic[C]):
    """One that is open, and what it was made under."""

    __slots__ = ("closing", "connection", "place", "since", "slot", "versions", "who")

    def __init__(self, connection: C, place: Place, slot: "Future[None]", versions: Versions, who: Who) -> None:
        self.connection: Final = connection
        self.place: Final = place
        self.slot = slot
        self.versions: Final = versions
        self.who: Final = who
        self.since = 0.0
        self.closing = False
