"""How often a tool may do something: for each client, agent or session apart, as the type declares.

In: rates by name, as they are configured at the time. Out: permission to go on now, or after some waiting.

What was done stands apart from the rates: it survives a reload, and a rate that was lowered applies to it.
"""

import asyncio
import time
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Final, NamedTuple

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Handle, Held, Scope, key_of, owners
from zcpolicy.state.handles.apart import Apart
from zcpolicy.state.handles.named import Missing
from zcpolicy.state.handles.rates import Rate, RateLimited, add, ask, checked, is_past
from zcpolicy.state.handles.waiting import not_in_a_loop, within
from zcpolicy.state.versions import Derived, SourceVersions
from zcpolicy.texts import escaped

_NAP_SECONDS: Final = 0.25
"""How long whoever waits sleeps at most: rates may be raised, and calls end."""


class _Done(NamedTuple):
    """The moments when something was done, oldest first; who did it first."""

    moments: "array[float]"
    who: Who


class RateLimiter(Handle["OwnRate"]):
    """For each client. `rates`: by name, read again after every reload of the configuration. `clock`: never goes back."""

    contract = Contract(
        holds="how often each client has done what is limited",
        owner="daemon",
        concurrency="lock",
        isolation="client",
        reload="re-resolved",
        depends=frozenset({"config"}),
    )

    def __init__(
        self,
        versions: SourceVersions,
        rates: Callable[[], Mapping[str, Rate]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._all = _All(Derived(versions, self.contract.depends, lambda: checked(rates())), clock)

    @owners
    def forget(self, who: Who) -> None:
        """Begins anew for whom it is: for operators. Tools have no way to do that."""
        with self._all.lock:
            self._all.done.drop(key_of(self.contract.isolation, who))

    def _view(self, scope: Scope) -> "OwnRate":
        return OwnRate(self._all, scope)

    def _held(self) -> Iterable[Held]:
        with self._all.lock:
            return [Held(name, one.who) for done in self._all.done.all() for name, one in done.items()]


class _All:
    """What everybody has done."""

    def __init__(self, rates: Derived[dict[str, Rate]], clock: Callable[[], float]) -> None:
        self.lock: Final = Lock()
        self.done: Final[Apart[dict[str, _Done]]] = Apart(dict, self._is_past)
        self._rates = rates
        self._clock = clock

    def take(self, scope: Scope, name: str, times: int) -> None:
        """Raises RateLimited, Missing, Full, PermitError."""
        key, who = scope.key, scope.who
        with self.lock:
            rates = self._rates.get()
            if name not in rates:
                there = ", ".join(f"`{escaped(one)}`" for one in rates) or "none"
                raise Missing(f"there is no rate `{escaped(str(name)[:60])}`; there is {there}")
            done = self.done.of(key)
            found = done.get(name) or _Done(array("d"), who)
            now = self._clock()
            ask(name, rates[name], found.moments, times, now)
            add(found.moments, times, now)
            done[name] = found
            for old in [old for old, one in done.items() if is_past(one.moments, now)]:
                del done[old]

    def _is_past(self, done: Mapping[str, _Done]) -> bool:
        now = self._clock()
        return all(is_past(one.moments, now) for one in done.values())


class AgentRateLimiter(RateLimiter):
    """For each agent of each client."""

    contract = replace(
        RateLimiter.contract, holds="how often each agent of a client has done what is limited", isolation="agent"
    )


class SessionRateLimiter(RateLimiter):
    """For each session."""

    contract = replace(
        RateLimiter.contract, holds="how often each session has done what is limited", isolation="session"
    )


class OwnRate:
    """Whoever the call is for. All raise Missing for a rate that is not configured, ValueError for no times or no seconds,
    and PermitError once the call is over. Nobody is ahead of others who wait.
    """

    def __init__(self, everybody: _All, scope: Scope) -> None:
        self._all = everybody
        self._scope = scope

    def take(self, name: str, times: int = 1) -> None:
        """Goes on now, or raises RateLimited."""
        if type(times) is not int or times < 1:
            raise ValueError("something is done once, or more often")
        self._all.take(self._scope, name, times)

    async def wait(self, name: str, seconds: float, times: int = 1) -> None:
        """Goes on as soon as there is room. Raises RateLimited where that is not within so many seconds."""
        until = time.monotonic() + within(seconds)
        while (nap := self._nap(name, times, until)) > 0:  # noqa: ASYNC110 - it waits for time to pass
            await asyncio.sleep(nap)

    def wait_in_thread(self, name: str, seconds: float, times: int = 1) -> None:
        """The same for threads."""
        not_in_a_loop()
        until = time.monotonic() + within(seconds)
        while (nap := self._nap(name, times, until)) > 0:
            time.sleep(nap)

    def _nap(self, name: str, times: int, until: float) -> float:
        """How long to sleep before it is tried again; 0 where it may go on."""
        try:
            self.take(name, times)
        except RateLimited as limited:
            left = until - time.monotonic()
            if limited.retry_after is None or left <= 0:
                raise
            return min(max(limited.retry_after, 0.001), _NAP_SECONDS, left)
        return 0.0
