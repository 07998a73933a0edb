"""What those who run a daemon see of it and do with it.

In: the parts of a daemon that runs. Out: `Operating`: status and readiness as JSON values, reloads, notes on what was done.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any

from zcpolicy.daemon.approvals import Questions
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.keeping import Kept
from zcpolicy.daemon.log.chain import LogError
from zcpolicy.daemon.settings import Settings
from zcpolicy.daemon.tokens import TokensError
from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.reload.generations import Failure, Generations
from zcpolicy.state.audit import Handles
from zcpolicy.state.lifecycle import Lifecycle


@dataclass(frozen=True, slots=True)
class Operating:
    """`handles`: the state that tools share. `addresses`: where the daemon is reached, by surface."""

    settings: Settings
    host: Host
    kept: Kept
    policy: Generations
    tools: Lifecycle
    handles: Handles
    questions: Questions
    addresses: Mapping[str, str]
    began: float = field(default_factory=monotonic)

    def status(self) -> dict[str, Any]:
        """The policy in force with the last failure, targets and staleness; what goes on; for how many seconds."""
        host = self.host
        return {
            "policy": self.policy.status(),
            "agents": {name: list(agent.surfaces) for name, agent in self.settings.agents.items()},
            "addresses": dict(self.addresses),
            "sessions": len(host.sessions),
            "turns": host.doors.turns,
            "approvals": len(self.questions),
            "tools": self.tools.status(),
            "jobs": len(self.kept.schedule.jobs),
            "draining": host.doors.closing,
            "uptime": round(monotonic() - self.began, 3),
        }

    async def unready(self) -> list[str]:
        """Why no turn should be sent here; nothing if there is no reason."""
        found: list[str] = []
        if self.host.doors.closing:
            found.append("the daemon is about to stop")
        if self.policy.resolver.newest.suspended:
            found.append(f"the policy decides nothing: {self.policy.resolver.newest.suspended}")
        try:
            await asyncio.to_thread(self.kept.ledger.now, time())
        except LedgerUnavailable as error:
            found.append(f"the ledger is unavailable: {error}")
        try:
            if self.kept.log.is_failing:
                await asyncio.to_thread(self.kept.log.sync)
        except LogError as error:
            found.append(f"nothing is permitted: {error}")
        try:
            await asyncio.to_thread(self.kept.tokens.holders)
        except TokensError as error:
            found.append(str(error))
        return found

    async def reload(self) -> dict[str, Any]:
        """Loads the policy anew; what came of it."""
        done = await self.policy.reload()
        if isinstance(done, Failure):
            return {"reloaded": False, "failure": done.to_json()}
        return {"reloaded": True, "generation": done.generation, "new": done.is_new, "changed": list(done.changed)}

    def note(self, did: str, what: str, by: str) -> None:
        """Puts on record what an operator does: before it is done. Raises LogError, and then it must not be done."""
        self.kept.log.note(did, what=what, by=by)
