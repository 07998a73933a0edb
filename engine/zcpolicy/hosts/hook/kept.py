"""What is kept between the calls of one session, of which each has a process of its own: one lock, one file.

In: a folder, a session as its host tells of it. Out: the session with what it had before; its file, replaced in one step. The
lock is held from reading to writing, so that calls at the same time follow each other, each with the labels of those before.
"""

from __future__ import annotations

import os

from zcpolicy.hosts.hook.event import NoEvent, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Final, Self

    from zcpolicy.facts import Session

MAX_SESSION_BYTES: Final = 64 * 1024 * 1024
"""Bytes of one kept session."""

MAX_ID_CHARACTERS: Final = 120
"""Characters of a host's id of a session: it becomes part of a file's name."""


class Kept:
    """A session of a host, locked while it is entered. `folder`: of the state, which is made. Raises OSError, NoEvent."""

    __slots__ = ("_file", "_labels", "_lock", "_open")

    def __init__(self, folder: str, name: str) -> None:
        if plain(name, "_-.") != name or len(name) > MAX_ID_CHARACTERS:
            raise NoEvent("the session's id is none that a host would make")
        sessions = os.path.join(folder, "sessions")
        own_folder(folder)
        own_folder(sessions)
        self._file = os.path.join(sessions, f"{name}.json")
        self._lock = os.path.join(sessions, f"{sum(name.encode()) % 64:02}.lock")  # few files, and few wait for others
        self._open = -1
        self._labels = frozenset[str]()

    def __enter__(self) -> Self:
        self._open = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock(self._open)
        except BaseException:
            os.close(self._open)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._open)  # which lets go of the lock

    def taken_up(self, session: Session) -> Session:
        """The session, with what it had when its last call was decided. Raises OSError, FactsError, NoEvent."""
        try:
            with open(self._file, "rb") as stream:
                data = stream.read(MAX_SESSION_BYTES + 1)
        except FileNotFoundError:
            return session
        from json import loads

        from zcpolicy.sessions import restore

        if len(data) > MAX_SESSION_BYTES:
            raise NoEvent("what was kept of the session is too long")
        try:
            found = restore(loads(data), resolve_link=session.resolve_link)
        except (ValueError, RecursionError):
            raise NoEvent("what was kept of the session cannot be read") from None
        if (found.id, found.client) != (session.id, session.client):
            raise NoEvent("what was kept is of another session")
        found.cwd, found.turn, found.interactive = session.cwd, session.turn, session.interactive
        self._labels = found.labels
        return found

    def keep(self, session: Session) -> None:
        """Writes what the session has now, where it is more than is there. Raises OSError, FactsError."""
        if session.labels == self._labels:
            return
        from json import dumps

        from zcpolicy.sessions import save

        session.history = []  # of no call it is known that it succeeded, and arguments may be secrets
        replace(self._file, dumps(save(session)).encode())


def own_folder(path: str) -> None:
    """Makes a folder that others cannot write to. Raises OSError; NoEvent for one that they can: who writes there decides."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    stat = os.stat(path)
    if os.name != "nt" and (stat.st_uid != os.getuid() or stat.st_mode & 0o022):
        raise NoEvent(f"`{path}` is another user's, or others may write to it")


def replace(path: str, data: bytes) -> None:
    """Writes a file beside its place and moves it there: who reads sees the old one or the new one. Raises OSError."""
    aside = f"{path}.{os.urandom(8).hex()}.new"
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, path)
    except BaseException:
        if os.path.lexists(aside):
            os.unlink(aside)
        raise


def lock(descriptor: int) -> None:
    """Waits until nobody else holds this file. Raises OSError."""
    import sys

    if sys.platform == "win32":
        from msvcrt import LK_LOCK, locking

        locking(descriptor, LK_LOCK, 1)
    else:
        from fcntl import LOCK_EX, flock

        flock(descriptor, LOCK_EX)
