"""What agents show: canvases with frames, for each client apart, and whoever watches them.

In: frames that tools render. Out: the last frames of a canvas; subscriptions, which are handed each new one. Rendering waits for
nobody: a subscriber that does not keep up is dropped, and told so.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Future
from threading import Lock
from time import monotonic
from typing import Any, Final, Self

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Handle, Held, Scope, key_of, owners
from zcpolicy.state.handles.apart import Apart, Full
from zcpolicy.state.handles.frames import MAX_FRAME_CHARACTERS, Canvas, Dropped, Frame, Watcher
from zcpolicy.state.handles.named import checked_name
from zcpolicy.state.handles.waiting import awaited, waited, within
from zcpolicy.state.versions import Kept, SourceVersions

MAX_CANVASES: Final = 16
"""Canvases of one client."""
MAX_SUBSCRIBERS: Final = 16
"""Subscribers of one canvas."""


class CanvasStore(Handle["OwnCanvases"]):
    """Frames live on over a reload, unless the workspace has changed that they show."""

    contract = Contract(
        holds="what agents show to their client",
        owner="daemon",
        concurrency="lock",
        isolation="client",
        reload="kept",
        depends=frozenset({"workspace"}),
        security=False,
    )

    def __init__(self, versions: SourceVersions) -> None:
        self._all = _All(versions, self.contract)

    @owners
    def end(self, who: Who) -> None:
        """Takes out all canvases of a client. Whoever watches them is told."""
        with self._all.lock:
            for canvas in (self._all.valid().drop(key_of(self.contract.isolation, who)) or {}).values():
                canvas.drop_all("the canvas is gone")

    def _view(self, scope: Scope) -> "OwnCanvases":
        return OwnCanvases(self._all, scope)

    def _held(self) -> Iterable[Held]:
        with self._all.lock:
            return [Held(name, canvas.who) for own in self._all.valid().all() for name, canvas in own.items()]


class _All:
    """All canvases. Whoever reads or changes them holds the lock."""

    def __init__(self, versions: SourceVersions, contract: Contract) -> None:
        self.lock: Final = Lock()
        self._last: Apart[dict[str, Canvas]] = Apart(dict, lambda own: not own)
        self._kept = Kept(versions, contract, self._fresh)

    def valid(self) -> Apart[dict[str, Canvas]]:
        """Those that nothing has made invalid. Whoever watches others is told."""
        return self._kept.get()

    def _fresh(self) -> Apart[dict[str, Canvas]]:
        for own in self._last.all():
            for canvas in own.values():
                canvas.drop_all("the workspace has changed")
        self._last = Apart(dict, lambda own: not own)
        return self._last


class OwnCanvases:
    """Those of one caller's client. All raise PermitError once the call is over."""

    def __init__(self, canvases: _All, scope: Scope) -> None:
        self._all = canvases
        self._scope = scope

    def names(self) -> tuple[str, ...]:
        """Canvases that there are."""
        with self._all.lock:
            return tuple(self._own())

    def frames(self, name: str) -> tuple[Frame, ...]:
        """The last frames, oldest first; none where there is no such canvas."""
        with self._all.lock:
            canvas = self._own().get(name)
            return () if canvas is None else tuple(canvas.frames)

    def render(self, name: str, content: str, kind: str = "text/html") -> Frame:
        """Shows a new frame, on a new canvas where there is none. Raises Full, TypeError, ValueError."""
        given: tuple[Any, ...] = (content, kind)
        if not all(isinstance(one, str) for one in given):
            raise TypeError("what is shown is text")
        if len(content) + len(kind) > MAX_FRAME_CHARACTERS:
            raise ValueError(f"a frame has up to {MAX_FRAME_CHARACTERS:,} characters")
        with self._all.lock:
            return self._canvas(name).show(kind, content)

    def close(self, name: str) -> None:
        """Takes a canvas out. Whoever watches it is told."""
        with self._all.lock:
            canvas = self._own().pop(name, None)
            if canvas is not None:
                canvas.drop_all("the canvas is gone")

    def subscribe(self, name: str) -> "Subscription":
        """To the frames that come from now on, on a new canvas where there is none. Raises Full, TypeError, ValueError."""
        with self._all.lock:
            canvas = self._canvas(name)
            if canvas.watched() >= MAX_SUBSCRIBERS:
                raise Full(f"there is room for {MAX_SUBSCRIBERS} subscribers of one canvas, and no more")
            watcher = Watcher(self._scope)
            canvas.watchers.append(watcher)
        return Subscription(self._all, watcher)

    def _own(self) -> dict[str, Canvas]:
        return self._all.valid().find(self._scope.key) or {}

    def _canvas(self, name: str) -> Canvas:
        own = self._all.valid().of(self._scope.key)
        if name not in own:
            checked_name(name)
            if len(own) >= MAX_CANVASES:
                raise Full(f"there is room for {MAX_CANVASES} canvases of one client, and no more")
            own[name] = Canvas(self._scope.who)
        return own[name]


class Subscription:
    """The frames of one canvas as they come. `async for` gives them, and last why there are no more; `with` ends it."""

    def __init__(self, canvases: _All, watcher: Watcher) -> None:
        self._all = canvases
        self._watcher = watcher

    async def next(self, seconds: float | None = None) -> Frame | Dropped:
        """The next frame, or that there are no more. Raises TimeoutError, PermitError once the call is over."""
        async with asyncio.timeout(None if seconds is None else within(seconds)):
            while isinstance(found := self._next(), Future):
                await awaited(found)
        return found

    def next_in_thread(self, seconds: float) -> Frame | Dropped:
        """The same for threads."""
        until = monotonic() + within(seconds)
        while isinstance(found := self._next(), Future):
            waited(found, max(0.0, until - monotonic()))
        return found

    async def __aiter__(self) -> AsyncIterator[Frame | Dropped]:
        while isinstance(found := await self.next(), Frame):
            yield found
        yield found

    def close(self) -> None:
        """It is handed nothing any more."""
        with self._all.lock:
            self._watcher.drop("closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def _next(self) -> "Frame | Dropped | Future[None]":
        self._watcher.scope.who  # noqa: B018 - it asks: a call that is over gets nothing
        with self._all.lock:
            self._all.valid()  # what has changed meanwhile is dropped now
            return self._watcher.next()
