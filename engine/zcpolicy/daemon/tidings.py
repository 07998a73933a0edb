"""What changes in a daemon without anybody asking for it: a line for whoever watches it, and one on record.

In: a host, what it keeps; what came of reloads. Out: lines, told when something changes and once for each change; `remarks`,
for operators.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from time import time
from typing import Any, Final

from zcpolicy.daemon.host import Host
from zcpolicy.daemon.keeping import Kept
from zcpolicy.daemon.log.chain import LogError
from zcpolicy.daemon.order import Order, TurnRefused
from zcpolicy.daemon.sessions import Full
from zcpolicy.daemon.tokens import TokensError
from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.registry.remarks import UNKNOWN
from zcpolicy.reload.outcomes import Failure, Reloaded

LOOK_SECONDS: Final = 1.0
"""Between two looks at the policy and the tokens."""
LEDGER_LOOKS: Final = 5
"""Looks of which one is also at the ledger."""
MAX_TOLD_REMARKS: Final = 20
"""Remarks on one generation that are told; operators see all."""

_ELSEWHERE: Final = "another process"


class Tidings:
    """`told`: is given the lines. `own`: tools that the daemon brings along, whether or not a policy has them."""

    def __init__(
        self, host: Host, kept: Kept, agents: Collection[str], own: Collection[str], told: Callable[[str], None]
    ) -> None:
        self._host, self._kept, self._agents, self._own, self._told = host, kept, agents, own, told
        self._suspended = self._lost = ""
        self._remarked: object = None
        self.remarks: tuple[str, ...] = ()

    async def watch(self) -> None:
        """Until it is cancelled."""
        looks = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            looks += 1
            await self.look(ledger=looks % LEDGER_LOOKS == 0)

    async def look(self, *, ledger: bool = True) -> None:
        """Tells what is another than it was."""
        self._look_at_policy()
        await self._look_at_tools()
        await self._look_at_tokens()
        if ledger:
            await self._look_at_ledger()

    def note(self, did: str, **data: Any) -> None:
        """Puts on record what is so already: a record that cannot take it is told of by whoever asks for a permit."""
        with suppress(LogError):
            self._kept.log.note(did, **data)

    def _look_at_policy(self) -> None:
        before, self._suspended = self._suspended, self._host.resolver.newest.suspended
        if self._suspended == before:
            return
        if self._suspended:
            self._told(f"the policy decides nothing: {self._suspended}")
            self.note("policy suspended", why=self._suspended)
        else:
            self._told("the policy decides again")
            self.note("policy reinstated")

    async def _look_at_tools(self) -> None:
        """Where tools and policy do not meet: again for each policy."""
        newest = self._host.resolver.newest
        if newest.suspended or newest.program is self._remarked:
            return
        self._remarked = newest.program
        before = self.remarks
        self.remarks = tuple(await remarks_of(self._host, self._agents, self._own))
        new = [one for one in self.remarks if one not in before]
        for one in new[:MAX_TOLD_REMARKS]:
            self._told(one)
        if len(new) > MAX_TOLD_REMARKS:
            self._told(f"and {len(new) - MAX_TOLD_REMARKS} more remarks, which GET /status has")

    async def _look_at_tokens(self) -> None:
        try:
            changed = await asyncio.to_thread(self._kept.tokens.news)
        except TokensError:
            return  # whoever comes in is refused, and /readyz says why
        for one in changed:
            self.note("token revoked" if one.revoked else f"token of {one.role}", what=one.name, by=_ELSEWHERE)

    async def _look_at_ledger(self) -> None:
        before, self._lost = self._lost, ""
        try:
            await asyncio.to_thread(self._kept.ledger.now, time())
        except LedgerUnavailable as error:
            self._lost = str(error)
        if bool(before) == bool(self._lost):
            return
        if self._lost:
            self._told(f"the ledger is unavailable, calls under a limit are denied: {self._lost}")
            self.note("ledger lost", why=self._lost)
        else:
            self._told("the ledger is there again")
            self.note("ledger back")


async def remarks_of(host: Host, agents: Collection[str], own: Collection[str]) -> dict[str, None]:
    """A line for each tool or skill on which host and policy do not meet. Of `own`, those that a policy lacks are no news."""
    found: dict[str, None] = {}
    for agent in agents:
        try:
            seat = host.sessions.open("")
        except Full:
            break
        try:
            said: Mapping[str, str] = await host.remarks(Order(agent, "", "start", seat))
        except TurnRefused:
            continue  # an agent that the policy does not have: that is a finding of its own
        finally:
            host.sessions.close(seat)
        for name, remark in said.items():
            what = name if name.startswith("skill ") else f"tool {name}"
            if not remark.startswith(UNKNOWN):
                found[f"agent {agent}, {what}: {remark}"] = None
            elif name not in own:
                found[f"{what}: {remark}"] = None
    return found


# --- how it is said --------------------------------------------------------------------------------------------------


def of_reload(done: Reloaded | Failure) -> str:
    """What came of a reload."""
    if isinstance(done, Failure):
        return f"the policy could not be loaded, and generation {done.generation} stays in force: {first_of(done.why)}"
    if not done.is_new:
        return f"the policy is good again: it is generation {done.generation}, which is in force"
    files = ", ".join(done.changed)
    return f"generation {done.generation} of the policy is in force" + (f": {files} changed" if files else "")


def of_start(generation: int, why: str) -> str:
    """A daemon that starts without a policy that is good now."""
    return (
        f"the policy could not be loaded, and generation {generation}, the last good one, is in force: {first_of(why)}"
    )


def of_server(name: str, why: str) -> str:
    """A server that was lost, or is back."""
    return f"server {name} is not there: {why}" if why else f"server {name} is there again"


def first_of(why: str) -> str:
    """The first line of several, and how many there are more."""
    first, *more = [line for line in why.splitlines() if line.strip()] or [""]
    return f"{first} (and {len(more)} more)" if more else first
