"""The last good policy and the number of its generation, in a folder of the host's.

In: what is about to be published. Out: the same after a restart, whole, whatever ended the process: the file is written beside
the old one, put on the disk, and takes its place in one step. Its own time says when the policy's source was last read.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, NamedTuple

from zcpolicy.program import CompiledError, Program, load_compiled

FORMAT: Final = "zcpolicy-generation 1"
NAME: Final = "policy.generation"
MAX_KEPT_BYTES: Final = 1024 * 1024 * 1024
"""The largest kept policy that is read."""
CONFIRM_SECONDS: Final = 5.0
"""How exact the time is that is kept of when the source was last read."""
MAX_GENERATION: Final = 2**53
"""The highest number of a generation that is believed."""


class KeptError(Exception):
    """The folder cannot keep a policy: another process uses it, or what lies there is damaged. The message says which."""


class Kept(NamedTuple):
    """`program`: None where it cannot be read any more; `why` then says so. `files`: those of the policy. `heard`: when its source
    was last read, in seconds since 1970.
    """

    generation: int
    program: Program | None
    files: tuple[str, ...]
    since: float
    heard: float
    why: str = ""


class LastGood:
    """The folder's file, for one process at a time. `latest`: the highest generation that was ever written, or is about to be.

    Raises KeptError where another process has it, or the folder cannot be used.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder: str = os.path.abspath(os.fspath(folder))
        self.path = os.path.join(self.folder, NAME)
        self.latest = 0
        self._confirmed = 0.0
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise KeptError(f"`{self.folder}` cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise KeptError(f"`{self.folder}` is in use by another process") from None

    @property
    def files(self) -> tuple[str, ...]:
        """All that is ever written, for a resolver's protected files."""
        return (self.path, f"{self.path}.new", f"{self.path}.lock")

    def load(self) -> Kept | None:
        """What was kept; None if nothing was. Raises KeptError where the number of its generation cannot be told."""
        try:
            with open(self.path, "rb") as stream:
                at = os.fstat(stream.fileno()).st_mtime
                data = stream.read(MAX_KEPT_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeptError(f"`{self.path}` cannot be read: {error.strerror}") from None
        head, _, body = data.partition(b"\n")
        found = self._head(head)
        self.latest = found["generation"]
        program, why = _program(body, found["sha256"])
        return Kept(found["generation"], program, tuple(found["files"]), float(found["since"]), at, why)

    def save(self, generation: int, program: Program, files: tuple[str, ...], since: float, heard: float) -> None:
        """Keeps it in the place of the one before. Raises OSError: then the old one may be there, or the new one, whole."""
        self.latest = max(self.latest, generation)
        body = program.dump()
        head = {
            "format": FORMAT, "generation": generation, "digest": program.digest, "files": list(files), "since": since,
            "sha256": sha256(body).hexdigest(),
        }  # fmt: skip
        beside = f"{self.path}.new"
        with suppress(FileNotFoundError):
            os.unlink(beside)
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(file, "wb") as stream:
            stream.write(json.dumps(head, ensure_ascii=True).encode() + b"\n" + body)
            stream.flush()
            os.fsync(stream.fileno())
        os.utime(beside, (heard, heard))
        os.replace(beside, self.path)
        _sync(self.folder)

    def confirm(self, at: float) -> None:
        """The source was read at that time, and is still this policy's. What goes wrong only makes it look older; so does what
        comes sooner than CONFIRM_SECONDS after the last.
        """
        if abs(at - self._confirmed) < CONFIRM_SECONDS:
            return
        self._confirmed = at
        with suppress(OSError):
            os.utime(self.path, (at, at))

    def close(self) -> None:
        """Another process may use the folder. Does nothing the second time."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

    def _head(self, line: bytes) -> dict[str, Any]:
        try:
            found: Any = json.loads(line)
            sound = (
                found["format"] == FORMAT
                and type(found["generation"]) is int
                and 0 < found["generation"] <= MAX_GENERATION
                and type(found["sha256"]) is str
                and type(found["since"]) in (int, float)
                and all(type(file) is str and file.startswith(os.sep) for file in found["files"])
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            sound, found = False, {}
        if not sound:
            raise KeptError(f"`{self.path}` is damaged, and the number of its generation lost; remove it to begin anew")
        head: dict[str, Any] = found
        return head


def _program(body: bytes, digest: str) -> tuple[Program | None, str]:
    if sha256(body).hexdigest() != digest:
        return None, "the policy that was kept is damaged"
    try:
        return load_compiled(body), ""
    except CompiledError as error:
        return None, f"the policy that was kept cannot be used: {error}"


def _sync(folder: str) -> None:
    """Has the disk know the folder's entries."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
