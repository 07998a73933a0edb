"""What those who run a daemon see of it and do with it.

In: the parts of a daemon that runs. Out: `Operating`: status and readiness as JSON values, reloads, notes on what was done.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any

from zcpolicy.daemon.approvals import Questions
from zcpolicy.daemon.clients import without_token
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.keeping import Kept
from zcpolicy.daemon.log.chain import LogError
from zcpolicy.daemon.servers import Servers
from zcpolicy.daemon.settings import Settings
from zcpolicy.daemon.tidings import Tidings
from zcpolicy.daemon.tokens import TokensError
from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.reload.generations import Failure, Generations
from zcpolicy.state.audit import Handles
from zcpolicy.state.lifecycle import Lifecycle


@dataclass(frozen=True, slots=True)
class Operating:
    """`handles`: the state that tools share. `addresses`: where the daemon is reached, by surface. `findings`: what is wrong with the
    settings under the policy in force.
    """

    settings: Settings
    host: Host
    kept: Kept
    policy: Generations
    tools: Lifecycle
    handles: Handles
    questions: Questions
    addresses: Mapping[str, str]
    servers: Servers
    tidings: Tidings
    file: "SettingsFile"
    findings: Callable[[], Sequence[str]]
    began: float = field(default_factory=monotonic)

    def status(self) -> dict[str, Any]:
        """The policy in force with the last failure, targets and staleness; what goes on; for how many seconds."""
        host = self.host
        return {
            "policy": self.policy.status(),
            "agents": {name: list(agent.surfaces) for name, agent in self.settings.agents.items()},
            "addresses": dict(self.addresses),
            "clients": without_token(self.kept.minting),
            "sessions": len(host.sessions),
            "turns": host.doors.turns,
            "approvals": len(self.questions),
            "tools": self.tools.status(),
            "servers": self.servers.status(),
            "remarks": list(self.tidings.remarks),
            "findings": list(self.findings()),
            "settings": "changed since start" if self.file.changed() else "as at start",
            "jobs": len(self.kept.schedule.jobs),
            "draining": host.doors.closing,
            "uptime": round(monotonic() - self.began, 3),
        }

    def absent(self) -> dict[str, str]:
        """What is not there, although turns can run without it: servers, and why."""
        return self.servers.down()

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

    async def reload(self, by: str) -> dict[str, Any]:
        """Loads the policy anew; what came of it, which is on record then. `by`: who wants it."""
        done = await self.policy.reload()
        told: dict[str, Any] = {"generation": done.generation}
        if isinstance(done, Failure):
            told = {"reloaded": False, "failure": done.to_json()}
        else:
            told |= {
                "reloaded": True,
                "new": done.is_new,
                "changed": list(done.changed),
                "findings": [*self.findings()],
            }
        self.tidings.note("reload is done", by=by, **told)
        return told

    def note(self, did: str, what: str, by: str) -> None:
        """Puts on record what an operator does: before it is done. Raises LogError, and then it must not be done."""
        self.kept.log.note(did, what=what, by=by)


class SettingsFile:
    """The file of settings as it was when the daemon began: it is read once. `""`: there is none."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = _looks(path)

    def changed(self) -> bool:
        """Whether the next start reads something else."""
        return _looks(self._path) != self._seen


def _looks(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_ino, found.st_mtime_ns, found.st_size)
