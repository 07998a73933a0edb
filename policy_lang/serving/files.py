"""Files and folders that settings name: whether they can be used.

In: a `Table`, the place of a path and the path as written. Out: findings. Nothing is made.
"""

import os
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from stat import S_ISSOCK
from typing import Final

from policy_lang import codes
from policy_lang.serving.reading import Table
from policy_lang.serving.toml import Path as Place
from zcpolicy.daemon.folders import not_own

MAX_SOCKET_BYTES: Final = 100
"""Bytes of the path of a Unix socket, which systems keep short."""
_KEPT: Final = ("identity", "ledger", "log", "memory", "policy", "schedule", "tokens")  # and a dot, in the state folder
MAX_NEIGHBOURS: Final = 1_000
"""Files of a folder among which the one is looked for that was perhaps meant."""


def readable(table: Table, place: Place, written: str) -> bool:
    """A regular file that can be read."""
    path = table.where(written)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist" if not path.exists() else "is not a regular file"
        table.no_file(f"`{written}` {what}", place, written, _beside(path))
    elif not os.access(path, os.R_OK):
        table.no_file(f"`{written}` cannot be read by this user", place, written, ())
    else:
        return True
    return False


def folder(table: Table, place: Place, written: str) -> bool:
    """A folder that can be read."""
    path = table.where(written)
    if path.is_dir() and os.access(path, os.R_OK | os.X_OK):
        return True
    what = "cannot be read by this user" if path.is_dir() else "is no folder" if path.exists() else "does not exist"
    table.no_file(f"`{written}` {what}", place, written, _beside(path))
    return False


def own_folder(table: Table, place: Place, written: str) -> None:
    """A folder for what the daemon keeps: nobody else writes there. One that is not there can be made."""
    path = table.where(written)
    if path.is_dir():
        why = not_own(path)
        if why is not None:
            table.say(
                codes.UNUSABLE_FILE, f"`{written}` {why}", place,
                help=f"`chmod 700 {written}`: whoever writes there could give tokens out, and take limits back",
            )  # fmt: skip
    elif os.path.lexists(path):
        table.no_file(f"`{written}` is no folder", place, written, ())
    elif not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        table.no_file(f"`{written}` cannot be made in `{path.parent}`", place, written, ())


def socket(table: Table, place: Place, path: str, state: Path) -> None:
    """A socket that can be made, where nobody else can put another in its place."""
    above = Path(path).parent
    if len(os.fsencode(path)) > MAX_SOCKET_BYTES:
        table.say(
            codes.UNUSABLE_FILE, f"the path of the socket has more than {MAX_SOCKET_BYTES} bytes", place,
            help='name a shorter one: `socket = "/run/zcpolicy/rpc.sock"`',
        )  # fmt: skip
    elif os.path.lexists(path) and not S_ISSOCK(os.lstat(path).st_mode):
        table.say(codes.UNUSABLE_FILE, f"there is something at `{path}` that is no socket", place)
    elif _is_of_state(path, state):
        table.say(
            codes.UNUSABLE_FILE, f"`{path}` is a file that the daemon keeps something else in", place,
            help='name another one, such as `socket = "zcpolicy.sock"`',
        )  # fmt: skip
    elif above == state:
        pass  # judged as the state folder, which may still have to be made
    elif not above.is_dir():
        table.say(codes.UNUSABLE_FILE, f"the folder of the socket, `{above}`, does not exist", place)
    elif (why := not_own(above)) is not None:
        table.say(
            codes.UNUSABLE_FILE, f"the folder of the socket, `{above}`, {why}", place,
            help="name a socket in the state folder",
        )  # fmt: skip


def _is_of_state(path: str, state: Path) -> bool:
    """Whether the daemon has a use of its own for a path in its state folder."""
    inside = Path(os.path.realpath(path)).parts
    kept = Path(os.path.realpath(state)).parts
    name = inside[len(kept)] if len(inside) > len(kept) else ""
    return inside[: len(kept)] == kept and (not name or name.partition(".")[0] in _KEPT)


def is_address(text: str) -> bool:
    """Whether text is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _beside(path: Path) -> list[str]:
    """The names of the files beside it."""
    try:
        with os.scandir(path.parent) as entries:
            return [entry.name for entry in islice(entries, MAX_NEIGHBOURS)]
    except OSError:
        return []
