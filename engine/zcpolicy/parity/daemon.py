"""The paths on the host of a daemon: with its doors, its log, its guard, its generations, its names of clients.

In: a `Probe`. Out: `PATHS`. The daemon is built as `zcpolicy serve` builds it, in a folder of its own; only what the host is made of
(tools, models, approvers, resolver, facts) is the probe's.
"""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from typing import Any, Final
from weakref import WeakKeyDictionary

from zcpolicy.approvals.question import Approvers
from zcpolicy.daemon.host import Host, Models
from zcpolicy.daemon.serving import Daemon
from zcpolicy.daemon.settings import AgentSettings, HttpSettings, PolicySettings, Settings, StateSettings
from zcpolicy.events import Event
from zcpolicy.facts import Session
from zcpolicy.parity.probe import Probe
from zcpolicy.parity.reference import paths
from zcpolicy.program import Program
from zcpolicy.registry.site import Site
from zcpolicy.registry.sources import ToolSources
from zcpolicy.reload.settling import Settling
from zcpolicy.resolver import Resolver


class _Probed(Daemon):
    """A daemon whose host is made of what a probe gives."""

    settling = Settling(settle=0.0)

    def __init__(self, probe: Probe, folder: str) -> None:
        self._probe = probe
        file = os.path.join(folder, "team.zcpolicy")
        agents = {probe.agent: AgentSettings("scripted:", ("gateway", "rpc"))}
        policy = PolicySettings((file,), watch=False)
        super().__init__(Settings(policy, StateSettings(os.path.join(folder, "var")), agents), self._compiled)

    def _compiled(self, _layers: object, _read: object) -> Program:
        return self._probe.resolver.program

    def models(self) -> Models:
        return self._probe.access

    async def sources(self) -> ToolSources:
        return self._probe.sources

    def resolver(self, program: Program, generation: int, files: tuple[str, ...]) -> Resolver:
        return self._probe.resolver

    def approvers(self) -> Mapping[str, Approvers]:
        return {"": self._probe.approvers}

    def record(self, event: Event) -> None:
        super().record(event)
        self._probe.record(event)

    def place(self, session: Session) -> None:
        self._probe.place(session)


_daemons: WeakKeyDictionary[Host, Daemon] = WeakKeyDictionary()
"""Whose host each is."""


@asynccontextmanager
async def of_daemon(probe: Probe) -> AsyncGenerator[Host]:
    """The host of a daemon that serves meanwhile."""
    with TemporaryDirectory() as folder:
        daemon = _Probed(probe, folder)
        async with daemon.serving() as host:
            _daemons[host] = daemon
            yield host


async def guarded(probe: Probe, host: Host) -> Any:
    """The daemon's application, guard included: nobody has a token, and the address is this machine's."""
    site = Site(**probe.site)
    return _daemons[host].application(host, HttpSettings(), lambda: 80, narrowing=probe.narrowing, site=site)


PATHS: Final = paths(of_daemon, guarded)
