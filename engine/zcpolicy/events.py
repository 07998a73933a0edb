"""What happened, for audit: each event names the acting execution and those above it.

In: what the seam, the gate and the loop report. Out: `Event`s, handed to the host's recorder.
"""

from __future__ import annotations

from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from zcpolicy.identity import Identity

    Kind = Literal["turn", "model", "call", "approval", "delegation", "skill", "memory", "stopped", "failed", "renewed"]
    Recorder = Callable[["Event"], None]


class Event(NamedTuple):
    """`kind`: what it is about. `data`: JSON values; of a call its decision's log line, of an approval who said what."""

    kind: Kind
    at: float
    identity: Identity
    data: Mapping[str, Any]
