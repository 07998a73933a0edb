"""What happened, for audit: each event names the acting execution and those above it.

In: what the seam, the gate and the loop report. Out: `Event`s, handed to the host's recorder.
"""

from __future__ import annotations

from zcpolicy.records import NamedTuple
from zcpolicy.windows import NoTime, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.identity import Identity

    Kind = Literal["turn", "model", "call", "approval", "delegation", "skill", "memory", "stopped", "failed"]
    Recorder = Callable[["Event"], None]


class Event(NamedTuple):
    """`kind`: what it is about. `data`: JSON values; of a call its decision's log line, of an approval who said what."""

    kind: Kind
    at: float
    identity: Identity
    data: Mapping[str, Any]


def nowhere(_event: Event) -> None:
    """The recorder of hosts that keep no record."""


def tell(record: Recorder, kind: Kind, run: ResolvedAgentExecution, data: Mapping[str, Any]) -> None:
    """Puts on record what an execution did. `at` is 0.0 where the session's clock tells no time.

    Raises what the recorder raises, and TypeError for one that would have to be awaited: nothing is on record then.
    """
    try:
        at = told(run.session.clock)
    except NoTime:
        at = 0.0
    called: Callable[[Event], object] = record
    found: Any = called(Event(kind, at, run.identity, data))
    if hasattr(found, "__await__"):
        if hasattr(found, "close"):
            found.close()
        raise TypeError("a recorder is a plain function: one that is awaited records nothing")
