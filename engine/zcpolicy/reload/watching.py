"""When to look at a source: a file changed, a signal came, somebody asked, or it is time to.

In: where to look for changes, what to do then. Out: calls of it, one after the other: what comes close together is one. Where
the file system tells nothing, looking now and then finds the same a little later.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from time import time
from typing import Any, Final

from zcpolicy.reload.moments import moment

DEBOUNCE_SECONDS: Final = 0.1
"""How long it must be quiet before what came is acted on."""
MAX_DEBOUNCE_SECONDS: Final = 1.0
"""How long what came may be held back by more that comes."""
POLL_SECONDS: Final = 2.0
"""How often the source is looked at although nothing came."""
READY_MILLISECONDS: Final = 500
"""After which a watch that has heard nothing says so: by then it hears."""
CANCEL_SECONDS: Final = 1.0
"""After which what was cancelled, and has not ended, is cancelled again."""
MAX_WATCHED_FOLDERS: Final = 1_000
"""Folders that the file system is asked to tell about; more are only looked at now and then."""

Folders = dict[str, tuple[int, int]]
"""By path: device and number."""


class Watch:
    """`look(asked)`: looks at the source; `asked` is False where nobody asked, and a glance will do. `places`: the paths whose
    folders matter. `ours`: files in them that the host writes itself, and that tell nothing. `poll`, `debounce`: seconds.
    """

    def __init__(
        self,
        look: Callable[[bool], Awaitable[object]],
        places: Callable[[], tuple[str, ...]],
        ours: tuple[str, ...] = (),
        *,
        poll: float = POLL_SECONDS,
        debounce: float = DEBOUNCE_SECONDS,
        told: bool = True,
    ) -> None:
        self._look = look
        self._places = places
        self._ours = frozenset(ours)
        self._poll = poll
        self._debounce = debounce
        self._told = told
        self._came = asyncio.Event()
        self._asked = False
        self._renew = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kind = "polling"
        self._why = "" if told else "it is told not to"
        self._fault = ""
        self._looked = 0.0

    def request(self) -> None:
        """Look soon. From any thread, and from a signal's handler; does nothing while nobody watches."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(self._ask)

    def _ask(self) -> None:
        self._asked = True
        self._came.set()

    def status(self) -> dict[str, Any]:
        """JSON: `kind`: `watching` (the file system tells), `polling` or `off`; `why` it does not tell; when it looked last."""
        found: dict[str, Any] = {
            "kind": self._kind if self._loop else "off",
            "looked": moment(self._looked) if self._looked else None,
        }
        return found | {name: text for name, text in (("why", self._why), ("fault", self._fault)) if text}

    async def watch(self, *, hangup: bool = False) -> None:
        """Watches until it is cancelled. `hangup`: SIGHUP is a request; only in the main thread, and where there is one."""
        self._loop = asyncio.get_running_loop()
        before = signal.getsignal(signal.SIGHUP) if hangup else None
        hears = hangup and self._hear_signal(self._loop)
        telling = self._loop.create_task(self._hear()) if self._told else None
        try:
            while True:
                await self._next()
        finally:
            if hears:
                self._loop.remove_signal_handler(signal.SIGHUP)
                signal.signal(signal.SIGHUP, before)
            self._loop = None
            if telling is not None:
                await ended(telling)

    async def _next(self) -> None:
        """One look, when its time has come."""
        if await self._wait(self._poll):
            await self._quiet()
        self._came.clear()
        asked, self._asked = self._asked, False
        try:
            await self._look(asked)
            self._fault = ""
        except Exception as fault:  # noqa: BLE001 - whatever it is, the next look may go better; until then it is told
            self._fault = f"{type(fault).__name__}: {str(fault)[:200]}"
        self._looked = time()
        self._renew.set()

    def _hear_signal(self, loop: asyncio.AbstractEventLoop) -> bool:
        """SIGHUP is heard in the main thread alone."""
        if threading.current_thread() is not threading.main_thread():
            return False
        loop.add_signal_handler(signal.SIGHUP, self.request)
        return True

    async def _quiet(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + MAX_DEBOUNCE_SECONDS
        while self._came.is_set() and loop.time() < end:
            self._came.clear()
            await self._wait(self._debounce)

    async def _wait(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(
                seconds
            ):  # not `wait_for`: in Python 3.11 it may swallow that the task was cancelled
                await self._came.wait()
        except TimeoutError:
            return False
        return True

    # --- the file system -----------------------------------------------------------------------------------------------

    async def _hear(self) -> None:
        """Has the file system tell, of the folders of now; begins anew when they are others, or it has stopped."""
        try:
            import watchfiles
        except ImportError:
            self._kind, self._why = "polling", "`watchfiles` is not installed (the extra `reload`)"
            return
        while True:
            folders = await asyncio.to_thread(_folders, self._places())
            try:
                await self._heard(watchfiles, folders)
                self._kind, self._why = "polling", "the folders are others now"
            except Exception as fault:  # noqa: BLE001 - the system's limits, a folder that went: looking goes on without
                self._kind, self._why = "polling", f"{type(fault).__name__}: {str(fault)[:200]}"
            await asyncio.sleep(self._debounce)

    async def _heard(self, watchfiles: Any, folders: Folders) -> None:
        """Returns when other folders matter, or one of them is not what it was."""
        stop = asyncio.Event()
        guard = asyncio.get_running_loop().create_task(self._until_others(folders, stop))
        try:
            if not folders:
                await guard
                return
            self._kind, self._why = "watching", ""
            told = watchfiles.awatch(
                *folders, watch_filter=None, debounce=50, step=10, stop_event=stop, recursive=False,
                rust_timeout=READY_MILLISECONDS, yield_on_timeout=True,
            )  # fmt: skip
            async with aclosing(told) as changes:
                is_new = True
                async for heard in changes:
                    if is_new or not self._ours.issuperset(path for _, path in heard):
                        self._came.set()  # also once as it begins: what happened before is not heard
                    is_new = False
                    if not folders.keys().isdisjoint(path for _, path in heard):
                        return  # a folder went: what comes in its place is not heard of, though it may look the same
        finally:
            guard.cancel()
            stop.set()

    async def _until_others(self, folders: Folders, stop: asyncio.Event) -> None:
        while True:
            await self._renew.wait()
            self._renew.clear()
            if await asyncio.to_thread(_folders, self._places()) != folders:
                self._came.set()  # what happened before the others are heard of must not be missed
                stop.set()
                return


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks until they are over: one that ends something else at that very moment may not notice the first time."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=CANCEL_SECONDS)


def _folders(places: tuple[str, ...]) -> Folders:
    """The folders in which places lie, or the nearest that are there."""
    found: Folders = {}
    for place in places:
        folder = os.path.dirname(place)
        while folder not in found:
            try:
                seen = os.stat(folder)
            except OSError:
                above = os.path.dirname(folder)
                if above == folder:
                    break
                folder = above
                continue
            if len(found) < MAX_WATCHED_FOLDERS:
                found[folder] = (seen.st_dev, seen.st_ino)
            break
    return found
