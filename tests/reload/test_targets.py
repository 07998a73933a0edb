"""Who has to follow, and what is known of it: slow, late, broken, and passed by."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.clock import Clock
from tests.reload.disk import OTHER, TIGHT, Disk, until
from zcpolicy.reload import targets
from zcpolicy.reload.targets import AppliedLive, Event, Outcome, QueuedForReload, Rejected, Targets


class One:
    """A target that does what it is told to, and keeps what it was told."""

    def __init__(self, name: str, does: Callable[[Event], Awaitable[Any]]) -> None:
        self.name = name
        self.does = does
        self.told: list[int] = []

    async def take(self, event: Event) -> Outcome:
        self.told.append(event.generation)
        answer: Outcome = await self.does(event)
        return answer


async def applies(event: Event) -> Outcome:
    return AppliedLive()


async def waits(event: Event) -> Outcome:
    return QueuedForReload("its sessions end first")


async def refuses(event: Event) -> Outcome:
    return Rejected("it cannot")


async def raises(event: Event) -> Outcome:
    raise ValueError("secret")


async def mumbles(event: Event) -> Any:
    return "yes"


async def gives_up(event: Event) -> Any:
    raise asyncio.CancelledError


def event(generation: int) -> Event:
    return Event(generation, ())


def of(all_: Targets, name: str) -> tuple[Any, ...]:
    """What status says of a target: told, answered, what, why."""
    found = all_.status()[name]
    return found["told"], found["generation"], found["outcome"], found.get("reason")


@pytest.mark.parametrize(
    ("does", "outcome", "reason"),
    [
        (applies, "applied-live", None),
        (waits, "queued-for-reload", "its sessions end first"),
        (refuses, "rejected", "it cannot"),
        (raises, "rejected", "it raised ValueError"),
        (mumbles, "rejected", "it answered what is no outcome"),
        (gives_up, "rejected", "it was cut off"),
    ],
)
def test_an_answer_is_known_for_its_generation(does: Any, outcome: str, reason: str | None) -> None:
    async def story() -> None:
        all_ = Targets(now=Clock())
        all_.add(One("t", does))
        assert of(all_, "t") == (None, None, None, None)
        all_.tell(event(2))
        await all_.answered()
        assert of(all_, "t") == (2, 2, outcome, reason)
        assert all_.status()["t"]["at"] == "2026-01-01T12:00:00Z"
        await all_.close()

    asyncio.run(story())


def test_events_that_were_passed_while_it_was_busy_are_skipped() -> None:
    async def story() -> None:
        go = asyncio.Event()

        async def slow(event: Event) -> Outcome:
            await go.wait()
            return AppliedLive()

        all_, one = Targets(), One("t", slow)
        all_.add(one)
        for generation in (2, 3, 4):
            all_.tell(event(generation))
            await asyncio.sleep(0)
        assert of(all_, "t") == (4, None, None, None)
        go.set()
        await all_.answered()
        assert (one.told, of(all_, "t")) == ([2, 4], (4, 4, "applied-live", None))

    asyncio.run(story())


def test_an_older_event_is_not_told_after_a_newer() -> None:
    async def story() -> None:
        all_, one = Targets(), One("t", applies)
        all_.add(one)
        for generation in (3, 2, 3):
            all_.tell(event(generation))
            await all_.answered()
        assert one.told == [3]

    asyncio.run(story())


def test_one_that_does_not_answer_in_time_holds_up_nobody_and_its_late_answer_replaces_no_newer_one() -> None:
    """It even ignores that it was given up on."""

    async def story() -> None:
        late = asyncio.Event()

        async def stubborn(event: Event) -> Outcome:
            while event.generation == 2 and not late.is_set():
                try:
                    await late.wait()
                except asyncio.CancelledError:
                    continue
            return Rejected("late") if event.generation == 2 else AppliedLive()

        all_, one, other = Targets(0.02), One("t", stubborn), One("u", applies)
        all_.add(one)
        all_.add(other)
        all_.tell(event(2))
        await all_.answered()
        assert of(all_, "t") == (2, 2, "rejected", "it has not answered for 0.02 seconds")
        assert of(all_, "u") == (2, 2, "applied-live", None)
        all_.tell(event(3))
        await all_.answered()
        late.set()
        await asyncio.sleep(0.01)
        assert of(all_, "t") == (3, 3, "applied-live", None)
        await all_.close()

    asyncio.run(story())


def test_a_late_answer_counts_where_there_is_no_newer_one() -> None:
    async def story() -> None:
        late = asyncio.Event()

        async def stubborn(event: Event) -> Outcome:
            while not late.is_set():
                try:
                    await late.wait()
                except asyncio.CancelledError:
                    continue
            return AppliedLive()

        all_ = Targets(0.01)
        all_.add(One("t", stubborn))
        all_.tell(event(2))
        await all_.answered()
        assert of(all_, "t")[2] == "rejected"
        late.set()
        await asyncio.sleep(0.01)
        assert of(all_, "t") == (2, 2, "applied-live", None)

    asyncio.run(story())


def test_names_are_taken_once_and_can_be_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        all_, one = Targets(), One("t", applies)
        all_.add(one)
        with pytest.raises(ValueError, match="already"):
            all_.add(One("t", applies))
        all_.remove("t")
        all_.remove("t")
        all_.tell(event(2))
        assert (all_.status(), one.told) == ({}, [])
        monkeypatch.setattr(targets, "MAX_TARGETS", 0)
        with pytest.raises(ValueError, match="no more"):
            all_.add(one)

    asyncio.run(story())


def test_one_that_is_removed_while_it_works_is_given_up_on() -> None:
    async def story() -> None:
        ended = asyncio.Event()

        async def slow(event: Event) -> Outcome:
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()
            return AppliedLive()

        all_ = Targets()
        all_.add(One("t", slow))
        all_.tell(event(2))
        await asyncio.sleep(0.01)
        all_.remove("t")
        async with asyncio.timeout(5):
            await ended.wait()

    asyncio.run(story())


def test_targets_hear_of_a_reload_and_may_take_the_policy_of_its_generation(disk: Disk) -> None:
    async def story() -> None:
        generations = disk.start(told=False)
        taken: list[tuple[int, int, tuple[str, ...]]] = []

        async def takes(event: Event) -> Outcome:
            taken.append((event.generation, generations.resolver.newest.generation, event.changed))
            return AppliedLive()

        generations.targets.add(One("t", takes))
        async with generations:
            for text in (TIGHT, OTHER):
                disk.write(text)
                await generations.reload()
                await asyncio.sleep(0.01)
                await generations.targets.answered()
        assert taken == [(2, 2, (str(disk.file),)), (3, 3, (str(disk.file),))]
        assert generations.status()["targets"]["t"]["outcome"] == "applied-live"

    asyncio.run(story())


def test_a_reload_that_is_cut_off_still_tells(disk: Disk) -> None:
    async def story() -> None:
        generations = disk.start(told=False)
        one = One("t", applies)
        generations.targets.add(one)
        async with generations:
            disk.write(TIGHT)
            reload = asyncio.create_task(generations.reload())
            await asyncio.sleep(0)
            reload.cancel()
            await until(lambda: one.told != [])
        assert one.told == [generations.resolver.newest.generation] == [2]

    asyncio.run(story())
