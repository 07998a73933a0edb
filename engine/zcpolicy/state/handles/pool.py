"""Connections that are kept open between calls: for each client apart, so many at a time, none that has gone stale.

In: a connector. Out: a connection for the time of a `with` or `async with`, of the caller's client alone.

INVARIANT: what was made before credentials, provider or configuration changed is lent to nobody afterwards; it is closed, once, as
soon as whoever has it gives it back.
"""

from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from typing import Final, Generic, TypeVar

from zcpolicy.state.contract import Contract, Handle, Held, Scope, owners
from zcpolicy.state.handles.borrowing import Borrowed, in_task
from zcpolicy.state.handles.connections import Connector, ThreadConnector
from zcpolicy.state.handles.lending import Lending
from zcpolicy.state.handles.waiting import awaited, within
from zcpolicy.state.versions import SourceVersions

C = TypeVar("C")

PLACE_SECONDS: Final = 30.0
"""How long a borrower waits while others have all connections, where the tool does not say."""


class ConnectionPool(Handle["OwnConnections[C]"], Generic[C]):
    """`connector`: its three functions are coroutine functions, and tasks borrow; or none is, and threads do."""

    contract = Contract(
        holds="open connections of clients",
        owner="daemon",
        concurrency="lock",
        isolation="client",
        reload="replaced",
        depends=frozenset({"credentials", "provider", "config"}),
    )

    def __init__(
        self,
        versions: SourceVersions,
        connector: Connector[C] | ThreadConnector[C],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._lending = Lending(self.contract, versions, connector, clock)

    @owners
    async def sweep(self) -> None:
        """Closes what nobody has and nobody will get any more: stale ones, and those unused for long. To be called now and then."""
        for one in self._lending.unwanted():
            await in_task(self._lending.close(one))

    @owners
    async def shut_down(self) -> None:
        """Lends none any more, waits for those that are out, and has closed all when it returns, also where it is cancelled."""
        self._lending.stop()
        try:
            await self.sweep()
            while (left := self._lending.left()) is not None:
                await awaited(left)
        finally:
            for _, one in self._lending.opened():
                await in_task(self._lending.close(one))

    def _view(self, scope: Scope) -> "OwnConnections[C]":
        return OwnConnections(self._lending, scope)

    def _held(self) -> Iterable[Held]:
        return [Held(name, one.who) for name, one in self._lending.opened()]


class OwnConnections(Generic[C]):
    """Those of one caller's client."""

    def __init__(self, lending: Lending[C], scope: Scope) -> None:
        self._lending = lending
        self._scope = scope

    def connection(self, name: str, seconds: float = PLACE_SECONDS) -> Borrowed[C]:
        """`async with` in a task, `with` in a thread, as the connector is. `seconds`: to wait while others have them all.

        Entering raises Full, TimeoutError, Unreachable, and PermitError once the call is over. Nothing of it is to be kept.
        """
        lending = self._lending
        return Borrowed(
            partial(lending.borrow, self._scope, name), lending.give_back, within(seconds), for_tasks=lending.for_tasks
        )
