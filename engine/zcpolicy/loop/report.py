"""Telling the host: events for its record, pieces of the answer for whoever listens.

In: an execution, what happened. Out: calls of the host's functions; what they raise is a `HostFault`, which fails the turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zcpolicy.decision import Decision
from zcpolicy.events import tell
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.loop.access import ResolvedIo

if TYPE_CHECKING:
    from zcpolicy.events import Kind


class HostFault(Exception):
    """A function of the host's own failed; its exception is the cause."""


def report(io: ResolvedIo, kind: Kind, run: ResolvedAgentExecution, **data: Any) -> None:
    """Puts an event on record. Raises HostFault."""
    try:
        tell(io.record, kind, run, data)
    except Exception as error:
        raise HostFault("what happened could not be put on record") from error


def report_call(io: ResolvedIo, phase: str, decision: Decision, key: str, *, log: str = "", **more: Any) -> None:
    """An event about a call. `phase`: admitted, started, finished, abandoned, refused or waiting. `log`: the line of the
    decision, where it is known already. Raises HostFault.
    """
    report(io, "call", decision.run, phase=phase, key=key, decision=log or decision.for_log, **more)


def emit(io: ResolvedIo, piece: str) -> None:
    """Passes on a piece of the answer. Raises HostFault."""
    try:
        io.emit(piece)
    except Exception as error:
        raise HostFault("a piece of the answer could not be passed on") from error
