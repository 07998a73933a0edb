"""A host in a process of its own: `python -m tests.runtime.worker ORDER`, ORDER being JSON.

It says `ready`, waits for a line, runs one turn of agent `worker`, and says what became of each call. `dies`: the event at
which it is killed, as by a crash: a phase of a call, or `running`, within the tool.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.clock import Clock
from tests.runtime.scene import Scene
from tests.runtime.stores import Store
from zcpolicy.events import Event
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.sources import ToolContext

ROOT = Path(__file__).resolve().parents[2]


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _add(log: Path, line: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def _turn(order: Mapping[str, Any]) -> dict[str, Any]:
    async def notes(arguments: dict[str, Any], _context: ToolContext) -> str:
        _add(Path(order["log"]), json.dumps(arguments))
        if order["dies"] == "running":
            _die()
        return "noted"

    def heard(event: Event) -> None:
        if event.kind == "call" and event.data["phase"] == order["dies"]:
            _die()

    store = Store(*order["store"])
    scene = Scene(order["policy"], ledger=store.open(), clock=Clock(order["now"]), note=notes)
    session = scene.seat(order["session"])
    turn = scene.play(calls(*(tuple(one) for one in order["calls"])), "done", session=session, record=heard)
    store.close()
    return {"ends": scene.ends(), "told": turn.told}


class Worker:
    """Such a process. `log`: a file to which `note`, its one tool that does something, adds a line."""

    def __init__(
        self,
        store: Store,
        policy: str,
        log: Path,
        *wanted: tuple[str, Mapping[str, Any]],
        now: float,
        session: str = "s1",
        dies: str = "",
    ) -> None:
        order = {
            "store": [store.kind, store.where, store.name], "policy": policy, "log": str(log), "calls": wanted,
            "now": now, "session": session, "dies": dies,
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.worker", json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "engine")])},
        )
        self._wait_for_ready()

    def _wait_for_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def said(self) -> dict[str, Any] | None:
        """What became of the calls; None if it was killed."""
        out, _ = self.process.communicate(timeout=60)
        return json.loads(out) if self.process.returncode == 0 else None


def ran(*workers: Worker) -> list[dict[str, Any] | None]:
    """All of them at once, to their ends."""
    for one in workers:
        one.go()
    return [one.said() for one in workers]


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(_turn(given)), flush=True)
