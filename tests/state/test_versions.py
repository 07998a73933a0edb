"""How long a value is valid: never past a change of what it was worked out from."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.state.stage import contract
from zcpolicy import PermitError
from zcpolicy.state.locks import LockMisused
from zcpolicy.state.sources import SOURCES, Source
from zcpolicy.state.versions import MAX_WORKED_OUT, AsyncDerived, Derived, Kept, SourceVersions


class World:
    """Five sources that hold numbers, and say so when they change."""

    def __init__(self) -> None:
        self.versions = SourceVersions()
        self.values: dict[Source, int] = dict.fromkeys(SOURCES, 0)
        self.computed = 0

    def change(self, source: Source) -> None:
        self.values[source] += 1
        self.versions.bump(source)

    def derived(self, *depends: Source) -> Derived[dict[Source, int]]:
        return Derived(self.versions, depends, lambda: self._now(depends))

    def _now(self, depends: tuple[Source, ...]) -> dict[Source, int]:
        self.computed += 1
        return {source: self.values[source] for source in depends}


@pytest.mark.parametrize("source", SOURCES)
def test_r12_a_stale_value_is_not_seen_by_the_next_use(source: Source) -> None:
    world = World()
    derived = world.derived(*SOURCES)
    assert derived.get()[source] == 0
    assert derived.get()[source] == 0
    assert world.computed == 1
    world.change(source)
    assert derived.get()[source] == 1
    assert world.computed == 2


def test_what_it_does_not_depend_on_leaves_it_alone() -> None:
    world = World()
    derived = world.derived("config", "policy")
    derived.get()
    world.change("workspace")
    derived.get()
    assert world.computed == 1


STEPS = st.lists(st.one_of(st.sampled_from(SOURCES), st.integers(0, 2)), max_size=40)


@given(STEPS, st.lists(st.sets(st.sampled_from(SOURCES), min_size=1), min_size=3, max_size=3))
def test_r12_changes_and_uses_in_any_order(steps: list[Source | int], depends: list[set[Source]]) -> None:
    world = World()
    values = [world.derived(*one) for one in depends]
    for step in steps:
        if isinstance(step, str):
            world.change(step)
        else:
            assert values[step].get() == {source: world.values[source] for source in depends[step]}


@given(st.lists(st.sampled_from(SOURCES), max_size=4), st.lists(st.sampled_from(SOURCES), max_size=3))
def test_what_changes_while_it_is_worked_out_is_worked_out_again(during: list[Source], depends: list[Source]) -> None:
    """However the change falls: before the source was read, or after it."""
    world = World()
    late = list(during)
    wanted: tuple[Source, ...] = tuple({*depends, "config"})

    def compute() -> dict[Source, int]:
        found: dict[Source, int] = {source: world.values[source] for source in wanted}
        if late:
            world.change(late.pop())
        return found

    derived: Derived[dict[Source, int]] = Derived(world.versions, wanted, compute)
    assert derived.get() == {source: world.values[source] for source in wanted}


def test_threads_never_see_a_value_of_before_their_use_began() -> None:
    world = World()
    derived = world.derived("config")
    stale: list[tuple[int, int]] = []
    stop = threading.Event()

    def use() -> None:
        while not stop.is_set():
            before = world.values["config"] - 1  # the one that may not have been told yet
            found = derived.get()["config"]
            if found < before:
                stale.append((before, found))

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(2000):
        world.change("config")
    stop.set()
    for thread in threads:
        thread.join()
    assert stale == []


def test_one_at_a_time_works_it_out() -> None:
    world = World()
    at_work: list[int] = []
    most: list[int] = []

    def compute() -> int:
        at_work.append(1)
        most.append(len(at_work))
        threading.Event().wait(0.01)
        at_work.pop()
        return 7

    derived = Derived(world.versions, ["config"], compute)
    threads = [threading.Thread(target=derived.get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_tasks_share_one_working_out_also_when_the_first_is_cancelled() -> None:
    async def story() -> None:
        began: list[int] = []
        go = asyncio.Event()

        async def compute() -> int:
            began.append(1)
            await go.wait()
            return 7

        derived = AsyncDerived(SourceVersions(), ["provider"], compute)
        tasks = [asyncio.create_task(derived.get()) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.sleep(0.001)
        go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert found[1:] == [7] * 4
        assert len(began) == 2

    asyncio.run(story())


def test_a_change_during_an_await_is_not_missed() -> None:
    async def story() -> None:
        world = World()
        first = asyncio.Event()
        go = asyncio.Event()

        async def compute() -> int:
            found = world.values["credentials"]
            first.set()
            await go.wait()
            return found

        derived = AsyncDerived(world.versions, ["credentials"], compute)
        task = asyncio.create_task(derived.get())
        await first.wait()
        world.change("credentials")
        go.set()
        assert await task == 1

    asyncio.run(story())


def test_what_fails_gives_no_old_value_and_is_tried_again() -> None:
    world = World()
    answers: list[Any] = ["old", OSError("the provider is away"), "new"]

    def compute() -> str:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return str(answer)

    derived = Derived(world.versions, ["provider"], compute)
    assert derived.get() == "old"
    world.change("provider")
    with pytest.raises(OSError, match="the provider is away"):
        derived.get()
    assert derived.get() == "new"


def test_sources_that_never_rest_are_refused() -> None:
    world = World()
    count: list[int] = []

    def compute() -> int:
        count.append(1)
        world.change("config")
        return 1

    with pytest.raises(
        PermitError, match="<Derived of config> cannot be told: what it is worked out from keeps changing"
    ):
        Derived(world.versions, ["config"], compute).get()
    assert len(count) == MAX_WORKED_OUT


def test_a_value_that_needs_itself_is_refused() -> None:
    def compute() -> int:
        return derived.get()

    derived = Derived(SourceVersions(), ["config"], compute)
    with pytest.raises(LockMisused):
        derived.get()


def test_r13_display_state_outlives_what_it_does_not_depend_on() -> None:
    world = World()
    kept = Kept(world.versions, contract(reload="kept", security=False, depends=frozenset({"workspace"})), list[str])
    kept.get().append("frame")
    world.change("config")
    world.change("policy")
    assert kept.get() == ["frame"]
    world.change("workspace")
    assert kept.get() == []


def test_r13_what_is_not_declared_so_is_not_kept() -> None:
    with pytest.raises(TypeError, match="only what its contract declares as `kept`"):
        Kept(SourceVersions(), contract(), list[str])


WRONG: dict[str, Callable[[SourceVersions], object]] = {
    "no such source": lambda versions: versions.bump("moon"),  # type: ignore[arg-type]
    "nothing": lambda versions: versions.bump(),
    "depends on nothing": lambda versions: Derived(versions, [], int),
    "depends on what is none": lambda versions: Derived(versions, ["moon"], int),  # type: ignore[list-item]
}


@pytest.mark.parametrize("case", WRONG)
def test_sources_are_the_five(case: str) -> None:
    with pytest.raises(TypeError, match="sources are at least one of config, credentials, policy, workspace, provider"):
        WRONG[case](SourceVersions())


def test_versions_are_told() -> None:
    world = World()
    world.change("policy")
    assert world.versions.to_json() == {"config": 0, "credentials": 0, "policy": 1, "workspace": 0, "provider": 0}
