"""Events as hosts report them, and logs to put them in."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from zcpolicy.daemon.log.chain import DecisionLog
from zcpolicy.daemon.log.place import line_files
from zcpolicy.daemon.log.settings import MASKING, ROTATION, Masking, Rotation, Sync
from zcpolicy.daemon.log.verify import Verified, verify
from zcpolicy.events import Event
from zcpolicy.identity import Identity

NOON = 1_800_000_000.0  # 2027-01-15T08:00:00Z
DAY = 86_400.0


class Clock:
    """Moves when told."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def identity(agent: str = "coder", client: str = "ann", session: str = "s1", surface: str = "rpc") -> Identity:
    return Identity(agent, client, session, "t1", surface, 0, ())


ANN = identity()


def event(kind: Any = "call", who: Identity = ANN, **data: Any) -> Event:
    return Event(kind, NOON, who, data)


def call(arguments: Any, rules: Sequence[str] = ("team.zcpolicy:3",), **more: Any) -> Event:
    """A call as the loop reports it: its decision is a line of JSON."""
    decision = {
        "effect": "allow", "reason": "allowed", "agent": "coder", "tool": "shell", "client": "ann", "session": "s1",
        "arguments": arguments, "rules": [*rules], "digest": "ab" * 32,
    }  # fmt: skip
    return event(phase="admitted", key="k.1", decision=json.dumps(decision), **more)


def opened(
    folder: Path,
    *,
    sync: Sync = "interval",
    interval: float = 1.0,
    rotation: Rotation = ROTATION,
    masking: Masking = MASKING,
    clock: Callable[[], float] | None = None,
) -> DecisionLog:
    return DecisionLog(folder, sync=sync, interval=interval, rotation=rotation, masking=masking, clock=clock or Clock())


def filled(folder: Path, lines: int = 10) -> DecisionLog:
    """A closed log with this many events."""
    with opened(folder) as log:
        for number in range(lines):
            log(event(number=number))
    return log


def entries(folder: Path) -> list[dict[str, Any]]:
    """All lines of a log, as JSON."""
    return [
        json.loads(line) for name in line_files(str(folder)) for line in (folder / name).read_text("utf-8").splitlines()
    ]


def did(folder: Path) -> list[str]:
    """What the log tells of itself."""
    return [entry["data"]["did"] for entry in entries(folder) if entry["kind"] == "log"]


def said(found: Verified, folder: Path) -> list[str]:
    """The problems, with their places."""
    return [
        f"{Path(one.place.file).relative_to(folder)}:{one.place.line}: {one.place.seq}: {one.text}"
        for one in found.problems
    ]


def problems(folder: Path, head: str | None = None) -> list[str]:
    return said(verify(folder, head), folder)
