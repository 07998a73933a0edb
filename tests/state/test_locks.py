"""The lock: who asked first is let in first, threads and tasks alike; whoever stops waiting leaves no trace."""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from tests.clock import SLOW_SECONDS
from zcpolicy.state.locks import Hold, Kind, LockMisused, ReadWriteLock

KINDS: list[Kind] = ["reading", "writing"]


@dataclass
class Model:
    """What the lock should do, as plainly as it can be said."""

    queue: list[tuple[int, Kind]] = field(default_factory=list[tuple[int, Kind]])
    inside: dict[int, Kind] = field(default_factory=dict[int, Kind])

    def ask(self, who: int, kind: Kind) -> None:
        self.queue.append((who, kind))
        self._let_in()

    def leave(self, who: int) -> None:
        self.inside.pop(who, None)
        self.queue = [one for one in self.queue if one[0] != who]
        self._let_in()

    def _let_in(self) -> None:
        while self.queue and (not self.inside or {*self.inside.values(), self.queue[0][1]} == {"reading"}):
            who, kind = self.queue.pop(0)
            self.inside[who] = kind


def stay(lock: ReadWriteLock, kind: Kind) -> Hold:
    return lock.reading() if kind == "reading" else lock.writing()


class Party:
    """Somebody who asks for the lock, is inside until told to leave, and notes both."""

    def __init__(self, who: int, lock: ReadWriteLock, kind: Kind, inside: dict[int, Kind]) -> None:
        self.who = who
        self.lock = lock
        self.kind: Kind = kind
        self.inside = inside

    def start(self) -> None: ...

    def leave(self) -> None: ...


class InTask(Party):
    def start(self) -> None:
        self.go = asyncio.Event()
        self.task = asyncio.create_task(self.stay())

    async def stay(self) -> None:
        async with stay(self.lock, self.kind):
            self.inside[self.who] = self.kind
            try:
                await self.go.wait()
            finally:
                del self.inside[self.who]

    def leave(self) -> None:
        """By cancelling it, where it waits or where it is inside."""
        if self.who % 2:
            self.task.cancel()
        else:
            self.go.set() if self.who in self.inside else self.task.cancel()


class InThread(Party):
    def start(self) -> None:
        self.go = threading.Event()
        self.thread = threading.Thread(target=self.stay)
        self.thread.start()

    def stay(self) -> None:
        with stay(self.lock, self.kind):
            self.inside[self.who] = self.kind
            self.go.wait()
            del self.inside[self.who]

    def leave(self) -> None:
        self.go.set()


async def settled(agrees: Callable[[], bool]) -> bool:
    """Whether it comes to be so, once tasks have had their turns."""
    until = time.monotonic() + SLOW_SECONDS
    for _ in range(5):
        await asyncio.sleep(0)
    while not agrees() and time.monotonic() < until:  # noqa: ASYNC110 - threads come and go as well
        await asyncio.sleep(0.0005)
    return agrees()


@pytest.mark.parametrize("seed", range(25))
def test_threads_and_tasks_are_let_in_as_a_plain_model_says(seed: int) -> None:
    async def story() -> None:
        choose = random.Random(seed)
        lock, model = ReadWriteLock(), Model()
        inside: dict[int, Kind] = {}
        parties: dict[int, Party] = {}

        def agrees() -> bool:
            return inside == model.inside and [one.kind for one in lock._queue] == [kind for _, kind in model.queue]

        def leaves(who: int) -> None:
            parties.pop(who).leave()
            model.leave(who)

        for who in range(30):
            able = [one for one in parties if one in model.inside or isinstance(parties[one], InTask)]
            if able and choose.random() < 0.45:
                leaves(choose.choice(able))
            else:
                kind = choose.choice(KINDS)
                parties[who] = choose.choice([InTask, InThread])(who, lock, kind, inside)
                parties[who].start()
                model.ask(who, kind)
            assert await settled(agrees), (inside, model)
        while parties:
            leaves(next(iter(model.inside)))
            assert await settled(agrees), (inside, model)
        assert await settled(lambda: not lock._holders)

    asyncio.run(story())


def test_readers_do_not_starve_writers() -> None:
    async def story() -> None:
        lock = ReadWriteLock()
        stop = False
        written = 0

        async def reads() -> None:
            while not stop:
                async with lock.reading():
                    await asyncio.sleep(0)

        async def writes() -> None:
            nonlocal written
            for _ in range(100):
                async with lock.writing():
                    written += 1

        readers = [asyncio.create_task(reads()) for _ in range(8)]
        async with asyncio.timeout(SLOW_SECONDS):
            await writes()
        stop = True
        await asyncio.gather(*readers)
        assert written == 100

    asyncio.run(story())


@pytest.mark.parametrize("first", ["let in", "cancelled"])
@pytest.mark.parametrize("kind", KINDS)
def test_who_is_cancelled_while_being_let_in_leaves_no_trace(kind: Kind, first: str) -> None:
    async def story() -> None:
        lock = ReadWriteLock()
        inside: list[str] = []

        async def stays(name: str) -> None:
            async with stay(lock, kind):
                inside.append(name)

        with lock.writing():
            gone = asyncio.create_task(stays("gone"))
            after = asyncio.create_task(stays("after"))
            await asyncio.sleep(0)
            if first == "cancelled":
                gone.cancel()
        if first == "let in":
            gone.cancel()
        await after
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert inside == ["after"]
        with lock.writing():
            pass

    asyncio.run(story())


def test_nothing_is_lost_between_threads() -> None:
    lock = ReadWriteLock()
    count = {"n": 0}

    def add() -> None:
        for _ in range(300):
            with lock.writing():
                count["n"] += 1

    async def add_in_tasks() -> None:
        async def one() -> None:
            for _ in range(100):
                async with lock.writing():
                    before = count["n"]
                    await asyncio.sleep(0)
                    count["n"] = before + 1

        await asyncio.gather(*(one() for _ in range(3)))

    threads = [
        *(threading.Thread(target=add) for _ in range(3)),
        *(threading.Thread(target=asyncio.run, args=(add_in_tasks(),)) for _ in range(2)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count["n"] == 1500


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_whoever_holds_it_does_not_wait_for_itself(first: Kind, second: Kind) -> None:
    lock = ReadWriteLock()
    with stay(lock, first), pytest.raises(LockMisused, match="not re-entrant"), stay(lock, second):
        pass
    with stay(lock, "writing"):
        pass


def test_a_loop_is_not_held_up_by_what_it_would_have_to_finish_itself() -> None:
    async def story() -> None:
        lock = ReadWriteLock()
        inside, go = asyncio.Event(), asyncio.Event()

        async def holds() -> None:
            async with lock.writing():
                inside.set()
                await go.wait()

        task = asyncio.create_task(holds())
        await inside.wait()
        with pytest.raises(LockMisused, match="write `async with`"), lock.reading():
            pass
        go.set()
        await task
        with lock.reading():  # nobody is there: no reason to wait
            pass

    asyncio.run(story())


def test_who_waits_in_a_loop_that_is_gone_is_passed_over() -> None:
    lock = ReadWriteLock()
    loop = asyncio.new_event_loop()

    async def waits() -> None:
        async with lock.writing():
            pass

    with lock.writing():
        task = loop.create_task(waits())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        assert len(lock._queue) == 1
    with lock.writing():
        pass
    with suppress(RuntimeError):
        task._coro.close()  # type: ignore[attr-defined]
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    assert not lock._holders


def test_a_stay_is_for_once() -> None:
    stay = ReadWriteLock().reading()
    with stay:
        pass
    with pytest.raises(LockMisused, match="a stay in the lock is for one `with`"), stay:
        pass
