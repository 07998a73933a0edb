"""A process that writes a log until it is killed: `python -m tests.daemon.log.writer FOLDER SYNC SIZE KEEP`.

It prints the number of each event once the recorder has returned from it.
"""

import sys

from zcpolicy.daemon.log.chain import DecisionLog
from zcpolicy.daemon.log.settings import Rotation

from .scene import event


def main() -> None:
    folder, sync, size, keep = sys.argv[1:]
    rotation = Rotation(int(size), daily=False, keep=int(keep) or None)
    with DecisionLog(folder, sync="every" if sync == "every" else "interval", interval=0.01, rotation=rotation) as log:
        number = 0
        while True:
            number += 1
            log(event(number=number, text="x" * (number * 37 % 1500)))
            print(number, flush=True)


if __name__ == "__main__":
    main()
