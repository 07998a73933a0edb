"""A host that is killed while it keeps a generation: `dying.py FOLDER STEP`, or `dying.py FOLDER` for one that goes on until
somebody kills it.

Each policy says its own generation. What was published is printed; STEP counts what the process does with the folder's files.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from policy_lang.serving.compiling import compile_layers
from tests.reload.disk import LOOSE, write
from zcpolicy import Resolver
from zcpolicy.reload.generations import Generations, Reloaded
from zcpolicy.reload.settling import Settling
from zcpolicy.reload.sources import PolicySource

TOUCHING = {"open", "os.rename", "os.utime", "os.remove", "os.link", "os.truncate", "os.chmod", "os.mkdir"}


def said(generation: int) -> str:
    """The policy of a generation; not all are of one length."""
    return LOOSE + f'ceiling {{ deny act because "generation {generation}" }}\n' + "# \n" * (generation % 7 * 500)


class Steps:
    """Ends the process, as kill -9 does, before the last of so many steps."""

    def __init__(self, folder: str, last: int) -> None:
        self.folder, self.left = folder, last
        sys.addaudithook(self.heard)
        sync = os.fsync

        def dying(file: int) -> None:
            self.step()
            sync(file)

        os.fsync = dying

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        if event in TOUCHING and any(type(one) is str and one.startswith(self.folder) for one in args):
            self.step()

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, last: int) -> None:
    """Goes from generation to generation."""
    file, state = folder / "policies" / "policy.zcpolicy", folder / "state"
    file.parent.mkdir()
    write(file, said(1))
    generations = Generations.start(
        PolicySource.of_layers([file]),
        compile_layers,
        state,
        make=lambda program, number, files: Resolver(program, generation=number, policy_files=files),
        how=Settling(settle=0.0),
    )
    print(generations.resolver.generation, flush=True)
    if last:
        Steps(str(state), last)
    number = generations.resolver.generation
    while last == 0 or number < 3:
        number += 1
        write(file, said(number))
        done = generations.reload_now()
        assert done == Reloaded(number, is_new=True, changed=(str(file),)), done
        print(number, flush=True)
    print("whole", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
