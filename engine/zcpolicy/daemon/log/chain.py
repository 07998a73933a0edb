"""The log of a host: every event a line, each line bound to the one before.

In: events, from threads and tasks. Out: lines on disk, or `LogError`, and then nothing is permitted. After a failure the next event tries
again; what is on disk stays one chain, and says what happened to it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from zcpolicy.daemon.log.entry import members_of
from zcpolicy.daemon.log.files import LogFiles
from zcpolicy.daemon.log.line import Head, moment
from zcpolicy.daemon.log.mask import Masker
from zcpolicy.daemon.log.place import key_of
from zcpolicy.daemon.log.settings import MASKING, ROTATION, Masking, Rotation, Sync
from zcpolicy.daemon.log.tail import flush
from zcpolicy.daemon.log.writer_lock import InUse

if TYPE_CHECKING:
    from types import TracebackType

    from zcpolicy.events import Event


class LogError(Exception):
    """What happened cannot be put on record; the message says why."""


class DecisionLog:
    """An open log; itself a `Recorder`. One writer per folder."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        sync: Sync = "interval",
        interval: float = 1.0,
        rotation: Rotation = ROTATION,
        masking: Masking = MASKING,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`folder` is made, for its owner alone, in a folder that is there. `interval`: seconds. Raises LogError."""
        if not interval > 0:
            raise ValueError("the interval is longer than 0 seconds")
        self.folder = os.path.abspath(folder)
        self._clock, self._every, self._interval = clock, sync == "every", interval
        self._lock, self._dirty, self._closed, self._process = threading.Lock(), threading.Event(), False, os.getpid()
        self._files = LogFiles(self.folder, rotation)
        self._refused, self._why = 0, ""
        try:
            with suppress(FileExistsError):
                os.mkdir(self.folder, 0o700)
            self._files.open(self._now())
            self._masker = Masker(key_of(self.folder), masking)
            if self._every:
                self._files.sync()
        except (OSError, InUse) as error:
            self._files.drop()
            raise self._fault(error) from error
        if not self._every:
            self._dirty.set()
            threading.Thread(target=self._keep_synced, name="decision log", daemon=True).start()

    def __call__(self, event: Event) -> None:
        """Puts an event on record. Raises LogError."""
        self._put(members_of(event, self._masker))

    def note(self, did: str, **data: Any) -> None:
        """Puts on record what the host itself did: a line of kind `host`. Raises LogError."""
        self._put({"kind": "host", "data": self._masker.fit({"did": did, **data})})

    @property
    def head(self) -> Head:
        """The last line; to be kept where who can write the log cannot."""
        return self._files.head

    @property
    def is_failing(self) -> bool:
        """Whether the last event could not be put on record. The next one, or `sync`, tries again."""
        return not self._files.is_open

    def sync(self) -> None:
        """Returns once all that is on record is on the disk. Raises LogError."""
        with self._lock:
            self._trying(lambda: self._synced(self._now()))

    def close(self) -> None:
        """Says so, syncs, and lets go of the folder. Raises LogError, and has let go of it all the same."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._dirty.set()
            try:
                if os.getpid() == self._process and self._files.is_open:
                    self._files.append({"kind": "log", "data": {"did": "stopped"}}, self._now())
                    self._files.sync()
            except OSError as error:
                raise self._fault(error) from error
            finally:
                self._files.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _put(self, members: Mapping[str, Any]) -> None:
        with self._lock:
            self._trying(lambda: self._write(members))

    def _write(self, members: Mapping[str, Any]) -> None:
        now = self._now()
        self._reopened(now)
        self._files.append(members, now)
        if self._every:
            self._files.sync()
        else:
            self._dirty.set()

    def _synced(self, now: str) -> None:
        self._reopened(now)
        self._files.sync()

    def _reopened(self, now: str) -> None:
        """After a failure: goes on, and says so."""
        if not self._files.is_open:
            self._files.open(now, {"refused": self._refused, "why": self._why})
            self._refused, self._why = 0, ""

    def _trying(self, do: Callable[[], None]) -> None:
        if self._closed or os.getpid() != self._process:
            raise LogError(f"the log in `{self.folder}` was closed, or opened by another process")
        try:
            do()
        except (OSError, InUse) as error:
            self._refused, self._why = self._refused + 1, str(error)[:200]
            self._files.drop()
            raise self._fault(error) from error
        except BaseException:
            self._files.drop()  # an interrupt may have come between a line and its head: the next event looks at the disk
            raise

    def _keep_synced(self) -> None:
        """Syncs what was written, without keeping writers waiting; a failure makes the next event open the log anew."""
        while not self._closed:
            self._dirty.wait()
            time.sleep(self._interval)
            self._dirty.clear()
            handles: tuple[int, ...] = ()
            try:
                with self._lock:
                    handles = self._files.handles() if self._files.is_open else ()
                for handle in handles:
                    flush(handle)
            except OSError as error:
                with self._lock:
                    self._why = str(error)[:200]
                    self._files.drop()
            finally:
                for handle in handles:
                    os.close(handle)

    def _now(self) -> str:
        return moment(self._clock())

    def _fault(self, error: Exception) -> LogError:
        said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        return LogError(
            said if isinstance(error, InUse) else f"the log in `{self.folder}` cannot be written: {said.lower()}"
        )
