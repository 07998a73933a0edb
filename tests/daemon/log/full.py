"""A process whose disk is full after some bytes: `python -m tests.daemon.log.full FOLDER`. It prints what happened."""

import json
import resource
import sys
from pathlib import Path

from zcpolicy.daemon.log.chain import LogError
from zcpolicy.daemon.log.place import line_files

from .scene import event, opened


def main() -> None:
    folder = Path(sys.argv[1])
    log = opened(folder, sync="every")
    log(event(number=0))
    size = (folder / line_files(str(folder))[0]).stat().st_size
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, hard))  # part of a line has room
    refused: list[str] = []
    for number in range(1, 6):
        try:
            log(event(number=number))
        except LogError as error:
            refused.append(str(error))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    log(event(number=6))
    log.close()
    print(json.dumps(refused))


if __name__ == "__main__":
    main()
