"""Steps at a ledger that waits: whole, whatever happens meanwhile, and not held up by what tools do."""

import asyncio
import os
import subprocess
import sys
import threading
from time import sleep
from typing import Any

import pytest

from tests.loop.stage import stage, told
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.loop.unbroken import unbroken
from zcpolicy.registry.sources import ToolContext


class Waits(MemoryLedger):
    """Says that it waits, as one on a disk does."""

    blocking = True


def test_a_step_that_is_cancelled_again_and_again_is_done_whole() -> None:
    done: list[str] = []

    def step() -> None:
        sleep(0.05)
        done.append("whole")

    async def story() -> None:
        task = asyncio.ensure_future(unbroken(Waits(), step))
        for _ in range(4):
            await asyncio.sleep(0.01)
            task.cancel()
            assert done == []
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert done == ["whole"]


def test_what_a_step_raises_is_raised() -> None:
    def step() -> None:
        raise OSError("no disk")

    for ledger in (Waits(), MemoryLedger()):
        with pytest.raises(OSError, match="no disk"):
            asyncio.run(unbroken(ledger, step))


def test_the_event_loop_goes_on_while_a_ledger_waits() -> None:
    async def story() -> int:
        ticks = 0

        async def ticking() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        task = asyncio.ensure_future(ticking())
        await unbroken(Waits(), lambda: sleep(0.1))
        task.cancel()
        return ticks

    assert asyncio.run(story()) > 5


def test_tools_that_keep_every_thread_of_the_loop_busy_hold_up_no_call() -> None:
    go_on = threading.Event()

    async def stuck(_arguments: dict[str, Any], _context: ToolContext) -> str:
        await asyncio.to_thread(go_on.wait, 10)
        return "stuck"

    async def quick(_arguments: dict[str, Any], _context: ToolContext) -> str:
        go_on.set()
        return "quick"

    many = (os.cpu_count() or 1) + 8
    on = stage("allow look, fetch; runtime { parallel_tools on }", ledger=Waits(), look=stuck, fetch=quick)
    batch = calls(*[("look", {"at": "x"})] * many, ("fetch", {"url": "https://x.org/"}))
    result = asyncio.run(on.turn(ScriptedModel(batch, "done")))
    assert told(result) == ["stuck"] * many + ["quick"]
    assert on.open_reservations() == []


FORK = """
import asyncio, os
from tests.loop.test_unbroken import Waits
from zcpolicy.loop.unbroken import unbroken

asyncio.run(unbroken(Waits(), lambda: None))
child = os.fork()
asyncio.run(unbroken(Waits(), lambda: print("whole", flush=True)))
if child:
    os.waitpid(child, 0)
"""


def test_a_process_that_was_forked_has_threads_of_its_own() -> None:
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-Wignore", "-c", FORK], env={**os.environ, "PYTHONPATH": path}, timeout=30, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == "whole\nwhole\n"
