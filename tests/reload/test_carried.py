"""The generation that work in flight was begun under: missing, forged, or of another time, it ends the work."""

import asyncio
import copy
import gc

import pytest

from tests.reload.disk import OTHER, Disk
from zcpolicy.reload.carried import Carried, NotCurrent, carry, checked


def test_work_goes_on_as_long_as_its_generation_is_in_force(disk: Disk) -> None:
    generations = disk.start()
    carried = carry(generations.resolver)
    assert carried.generation == 1
    carried.check()
    assert checked(carried, generations.resolver) is carried
    disk.write(OTHER)
    generations.reload_now()
    with pytest.raises(NotCurrent, match="generation 1 was followed by 2"):
        carried.check()
    carry(generations.resolver).check()


def test_spawned_work_is_handed_it_and_fails_closed_without(disk: Disk) -> None:
    generations = disk.start()
    done: list[str] = []

    async def work(name: str, carried: object) -> None:
        await asyncio.sleep(0)
        checked(carried, generations.resolver)
        done.append(name)

    async def story() -> None:
        given = (work("with", carry(generations.resolver)), work("without", None))
        _, raised = await asyncio.gather(*given, return_exceptions=True)
        assert str(raised) == "no generation was handed on with this work"

    asyncio.run(story())
    assert done == ["with"]


def test_a_suspended_policy_carries_nothing(disk: Disk) -> None:
    generations = disk.start()
    carried = carry(generations.resolver)
    generations.resolver.suspend("for the night")
    for act in (carried.check, lambda: carry(generations.resolver)):
        with pytest.raises(NotCurrent, match="for the night"):
            act()
    generations.resolver.reinstate()
    carried.check()


def test_what_carry_did_not_make_is_worth_nothing(disk: Disk) -> None:
    resolver = disk.start().resolver
    real = carry(resolver)
    forged: Carried = object.__new__(Carried)
    object.__setattr__(forged, "generation", 1)
    for given in (forged, None, 1, "1", object()):
        with pytest.raises(NotCurrent):
            checked(given, resolver)
    with pytest.raises(TypeError, match="is sealed"):
        Carried()  # type: ignore[call-arg]  # that is what is refused
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(real)
    object.__setattr__(real, "generation", 2)
    with pytest.raises(NotCurrent):
        real.check()


def test_it_is_one_policys(disk: Disk) -> None:
    resolver = disk.start().resolver
    other = disk.make(resolver.program, 1, ())
    with pytest.raises(NotCurrent, match="another policy's"):
        checked(carry(other), resolver)


def test_it_outlives_the_resolver_that_it_was_made_by(disk: Disk) -> None:
    generations = disk.start()
    carried = carry(generations.resolver)
    generations.resolver.suspend("for a moment")
    generations.resolver.reinstate()
    gc.collect()
    carried.check()
