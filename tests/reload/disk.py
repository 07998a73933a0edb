"""A policy on a disk, and a host that follows it: real files, the real compiler, a clock that a test moves."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from policy_lang.serving.compiling import compile_layers
from tests.clock import Clock
from zcpolicy import Resolver
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.program import Program
from zcpolicy.reload.generations import Generations
from zcpolicy.reload.settling import Settling
from zcpolicy.reload.sources import PolicySource

LOOSE = """zcpolicy 1
tool look(at: path) risk read
tool act(n?: integer) risk low
agent a { autonomy full; allow look, act }
"""
TIGHT = LOOSE + 'ceiling { deny act because "closed" }\n'
OTHER = LOOSE.replace("allow look, act }", "allow look }")
WRONG = LOOSE.replace("allow look, act", "allow loook, act")


def write(file: Path, text: str) -> None:
    """As a careful editor does: the file is there all the time, old or new."""
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(text, "utf-8")
    beside.replace(file)


class Disk:
    """`policy.zcpolicy` in a folder, and beside it the folder that keeps what was good. Clock and waiting are the test's."""

    def __init__(self, folder: Path, text: str = LOOSE) -> None:
        self.folder = folder
        self.file = folder / "policies" / "policy.zcpolicy"
        self.file.parent.mkdir(exist_ok=True)
        write(self.file, text)
        self.state = folder / "state"
        self.clock = Clock()
        self.ledger: Ledger | None = None

    def write(self, text: str) -> None:
        """Another policy."""
        write(self.file, text)

    def wait(self, seconds: float) -> None:
        """Time passes, and nobody sleeps."""
        self.clock.now += seconds

    def make(self, program: Program, generation: int, files: tuple[str, ...]) -> Resolver:
        """The host's resolver."""
        return Resolver(program, generation=generation, policy_files=files, ledger=self.ledger)

    def start(self, source: PolicySource | None = None, **more: Any) -> Generations:
        """A host starts."""
        how = Settling(wait=self.wait, ticks=self.clock, now=self.clock)
        given: dict[str, Any] = {"make": self.make, "how": how, **more}
        return Generations.start(
            source or PolicySource.of_layers([self.file]), given.pop("compiler", compile_layers), self.state, **given
        )


async def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Waits for what comes about by itself."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - files and threads set no event
            await asyncio.sleep(0.01)
