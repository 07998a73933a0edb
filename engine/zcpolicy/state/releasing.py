"""Giving back what is held of the outside: once, in reverse order, whatever fails on the way.

In: resources, as they are acquired. Out: `Owned`, which releases them; the texts of what went wrong.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from os.path import dirname
from sysconfig import get_paths
from traceback import walk_tb
from typing import Any, Final, TypeVar

from zcpolicy.refusals import PermitError
from zcpolicy.texts import escaped

T = TypeVar("T")

MAX_WHY: Final = 300
"""Characters of what an exception says that a message quotes."""
MAX_UNWILLING_SECONDS: Final = 2.0
"""How long what was cancelled may take to end; then it is left alone."""


class Owned:
    """What one tool holds of the outside. It takes resources while the tool registers, and releases them when it is shut down."""

    def __init__(self) -> None:
        self._open = False
        self._releases: list[Callable[[], Awaitable[object]]] = []

    async def enter(self, resource: AbstractAsyncContextManager[T]) -> T:
        """Enters it, and leaves it when the tool is shut down. Raises PermitError outside of `register`."""
        self._ask()
        found = await resource.__aenter__()
        if not self._open:  # registration was given up meanwhile
            await resource.__aexit__(None, None, None)
            self._ask()
        self._releases.append(partial(resource.__aexit__, None, None, None))
        return found

    def on_shut_down(self, release: Callable[[], Awaitable[object]]) -> None:
        """Has it called when the tool is shut down. Raises PermitError outside of `register`."""
        self._ask()
        self._releases.append(release)

    def open(self) -> None:
        """Registration begins."""
        self._open = True

    def shut(self) -> None:
        """Registration is over."""
        self._open = False

    async def release(self, seconds: float) -> list[str]:
        """Releases all that is left, what came last first, each within so many seconds. What went wrong. Never raises."""
        self.shut()
        wrong: list[str] = []
        while self._releases:
            why = await fault(self._releases.pop(), seconds)
            wrong += [why] if why else []
        return wrong

    def _ask(self) -> None:
        if not self._open:
            raise PermitError("resources are acquired in `register`, and nowhere else")


class Once:
    """Work that is done once and to its end, however many ask for it, and whoever of them is cancelled."""

    def __init__(self, work: Callable[[], Awaitable[list[str]]]) -> None:
        self._work = work
        self._over: asyncio.Future[list[str]] | None = None

    @property
    def begun(self) -> bool:
        """Whether somebody has asked for it."""
        return self._over is not None

    async def asked(self) -> list[str]:
        """What went wrong. Where the task that asks is cancelled meanwhile, that is raised once the work is done."""
        task = asyncio.current_task()
        before = 0 if task is None else task.cancelling()
        wrong = await self.done()
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError
        return wrong

    async def done(self) -> list[str]:
        """The same, for work that is itself to be done to its end: being cancelled it goes on.

        It runs in the task that asks first, since a task of its own could be cancelled before it begins. What it awaits is `fault`,
        `ended`, `done`, which go on as well.
        """
        if self._over is None:
            self._over = asyncio.get_running_loop().create_future()
            wrong: list[str] = []
            try:
                wrong = await self._work()
            finally:
                self._over.set_result(wrong)
        while not self._over.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({self._over})
        return self._over.result()


async def fault(work: Callable[[], Awaitable[object]], seconds: float) -> str:
    """Does it, within so many seconds. Why it failed, "" where it did not. Never raises; being cancelled does not stop it."""
    begun: list[bool] = []
    task = asyncio.ensure_future(_done(work, begun))
    over = await ended({task}, seconds)
    while over and not begun:  # the event loop is being closed, and cancelled the task before it began
        task = asyncio.ensure_future(_done(work, begun))
        over = await ended({task}, seconds)
    if not over:
        task.cancel()
        gone = await ended({task}, MAX_UNWILLING_SECONDS)
        return f"did not end within {seconds:g} seconds" + ("" if gone else ", and not when it was cancelled")
    return task.result()


async def ended(tasks: "set[asyncio.Task[Any]]", seconds: float) -> bool:
    """Waits for tasks, so many seconds at most, also where it is cancelled. Whether all have ended."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    left: set[asyncio.Task[Any]] = set(tasks)
    while left and loop.time() < until:
        try:
            _, left = await asyncio.wait(left, timeout=until - loop.time())
        except asyncio.CancelledError:
            left = {one for one in tasks if not one.done()}
    return not left


async def _done(work: Callable[[], Awaitable[object]], begun: list[bool]) -> str:
    begun.append(True)
    try:
        await work()
    except BaseException as error:  # noqa: BLE001 - the tool's code: what is left has to be released all the same
        return reason(error)
    return ""


def traced(error: BaseException) -> str:
    """The same with the place where it arose in somebody's own code, `FILE:LINE`, where there is one."""
    paths = get_paths()
    others = (paths["stdlib"], paths["purelib"], paths["platlib"], dirname(dirname(__file__)), "<")
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [f"{file}:{line}" for file, line in lines if not file.startswith(others)]
    return reason(error) + (f", at {escaped(own[-1])}" if own else "")


def reason(error: BaseException) -> str:
    """The name of an exception, and what it says, for people."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - the tool's code, which may not even say what went wrong
        said = ""
    return type(error).__name__ + (f": {escaped(said[:MAX_WHY])}" if said else "")
