"""What goes wrong, told to whoever runs the host: in the log `zcpolicy` of the standard library.

In: what was raised, causes. Out: lines of the log; the same in short, for records. Where the host has no logging,
nothing is printed. Loads `logging` when there is something to tell.
"""

from __future__ import annotations

from zcpolicy.texts import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Final

MAX_FAULT_CHARACTERS: Final = 500
"""Characters that a record keeps of what was raised."""
MAX_CAUSES: Final = 100
"""Causes that are remembered as told; with more, they are told again."""
AGAIN_SECONDS: Final = 600.0
"""Seconds after which a cause is told again."""

_told: Final[dict[str, float]] = {}
"""Causes, and when they were told last."""


def in_short(text: str) -> str:
    """What was raised, fit for a record: on one line, bounded, controls escaped."""
    return escaped(" ".join(text[:MAX_FAULT_CHARACTERS].split()))


def described(raised: BaseException) -> str:
    """What kind it is and what it says, in short. Never raises."""
    try:
        text = in_short(str.__str__(str(raised)))
    except Exception:  # noqa: BLE001 - the host's code, which may not even say what went wrong
        text = ""
    return f"{type(raised).__name__}: {text}" if text else type(raised).__name__


def log_fault(what: str, said: str, raised: BaseException | None) -> None:
    """Something of the host's own has failed. `what`: ``tool `x` ``, `the approver`. With the traceback."""
    _log().error("%s failed: %s", what, said, exc_info=raised)


def log_slip(said: str) -> None:
    """A host that goes on as nobody can mean it."""
    _log().warning("%s", said)


def log_once(cause: str) -> None:
    """What stands in the way of many calls: told once for each cause, and again while it lasts."""
    from time import monotonic

    now = monotonic()
    if now - _told.get(cause, now - AGAIN_SECONDS) < AGAIN_SECONDS:
        return
    if len(_told) >= MAX_CAUSES:
        _told.clear()
    _told[cause] = now
    _log().warning("%s", cause)


def _log() -> Logger:
    import logging

    log = logging.getLogger("zcpolicy")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # nothing is printed where the host has no logging
    return log
