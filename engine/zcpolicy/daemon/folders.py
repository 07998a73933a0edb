"""Folders that are the daemon's own, where nobody else may write, and the socket in one of them.

In: paths. Out: nothing, or why a folder cannot be trusted, or a socket not be made.
"""

import os
import socket
import stat

from zcpolicy.daemon.settings import SettingsError


def make_own(folder: str) -> None:
    """Makes a folder for its owner alone, where it is not there. Raises SettingsError where it is, and is not."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        why = not_own(folder)
    except OSError as error:
        raise SettingsError(f"the folder `{folder}` cannot be used: {error.strerror}") from None
    if why is not None:
        raise SettingsError(f"the folder `{folder}` {why}")


def not_own(folder: str | os.PathLike[str]) -> str | None:
    """Why a folder is not this user's alone to write in; None if it is. Raises OSError."""
    found = os.stat(folder)
    if found.st_uid != os.getuid():
        return "belongs to another user"
    if stat.S_IMODE(found.st_mode) & 0o022:
        return "can be written by others"
    return None if os.access(folder, os.W_OK | os.X_OK) else "cannot be written by this user"


def remove_stale(path: str) -> None:
    """A socket that nobody listens on was left by a daemon that was killed. Raises SettingsError for one that is in use."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise SettingsError(f"there is something at `{path}` that is no socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise SettingsError(f"somebody listens on `{path}` already")
