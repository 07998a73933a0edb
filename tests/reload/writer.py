"""A process that writes policies as some programs do: `writer.py KIND FOLDER SECONDS`.

In FOLDER lies `now/policy.zcpolicy`, which imports `now/rest.zcpolicy`. The policies take turns; each is in two parts that belong
together, and every part of it that can be read by itself allows more than the whole.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

PAUSE = 0.15 if sys.platform == "linux" else 0.01
"""Between two pieces of a file that is written while it is open: on Linux, much longer than a host waits."""
REST = (0.01, 0.15)
"""After a policy that is written whole: shorter than a host waits after the one, longer after the other."""


def parts(which: int) -> dict[str, str]:
    """The files of a policy. What they forbid grows line by line."""
    denies = "".join(f"ceiling {{ deny act when args.n == {which * 100 + n} }}\n" for n in range(12))
    more = "".join(f"ceiling {{ deny act when args.n == {which * 100 + 50 + n} }}\n" for n in range(12))
    root = f"""zcpolicy 1
import "rest.zcpolicy"
tool act(n?: integer) risk low
agent a {{ autonomy full; allow act }}
# {which}
{denies}"""
    return {"policy.zcpolicy": root, "rest.zcpolicy": f"zcpolicy 1\n{more}"}


def in_place(now: Path, which: int) -> None:
    """Piece by piece, at the lines, into the file that is there."""
    for name, text in parts(which).items():
        lines = text.splitlines(keepends=True)
        with (now / name).open("w") as file:
            for begin in range(0, len(lines), 6):
                file.write("".join(lines[begin : begin + 6]))
                file.flush()
                time.sleep(PAUSE)


def truncate(now: Path, which: int) -> None:
    """Empty first, then all at once."""
    for name, text in parts(which).items():
        with (now / name).open("w") as file:
            time.sleep(PAUSE)
            file.write(text)


def rename(now: Path, which: int) -> None:
    """Each file whole, over the old one; the two at once, as near as two renames are."""
    for name, text in parts(which).items():
        (now / f"{name}.new").write_text(text)
    for name in parts(which):
        (now / f"{name}.new").replace(now / name)
    time.sleep(REST[which])


def link(now: Path, which: int) -> None:
    """A link to a folder is turned to another one."""
    whole = now.with_name(f"v{which}")
    if not whole.exists():
        whole.mkdir()
        for name, text in parts(which).items():
            (whole / name).write_text(text)
    beside = now.with_name("next")
    beside.symlink_to(whole.name)
    beside.replace(now)
    time.sleep(REST[which])


def folder(now: Path, which: int) -> None:
    """The folder is put aside, and another in its place."""
    beside, old = now.with_name("next"), now.with_name("old")
    beside.mkdir()
    for name, text in parts(which).items():
        (beside / name).write_text(text)
    now.rename(old)
    beside.rename(now)
    shutil.rmtree(old)
    time.sleep(REST[which])


KINDS: dict[str, Callable[[Path, int], None]] = {
    one.__name__: one for one in (in_place, truncate, rename, link, folder)
}  # fmt: skip


def main(kind: str, where: Path, seconds: float) -> None:
    """Writes until the time is over, and ends with a whole policy."""
    end, which = time.monotonic() + seconds, 0
    while time.monotonic() < end or which % 2:
        which += 1
        KINDS[kind](where / "now", which % 2)
    os.sync()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
