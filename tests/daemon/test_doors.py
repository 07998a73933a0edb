"""When a turn may begin, and what becomes of those that run when a host stops."""

import asyncio

import pytest

from zcpolicy.daemon.doors import Doors, NotNow


def test_a_client_has_so_many_at_a_time_and_others_theirs() -> None:
    async def story() -> None:
        doors = Doors(of_client=2)
        with doors.turn("ann"), doors.turn("ann"):
            with pytest.raises(NotNow, match="as many turns") as refused, doors.turn("ann"):
                pass
            assert (refused.value.retry_after, refused.value.for_all) == (1.0, False)
            with doors.turn("ben"):
                assert doors.turns == 3
        with doors.turn("ann"):
            assert doors.turns == 1

    asyncio.run(story())


def test_a_scheduled_turn_is_not_turned_away_for_its_client() -> None:
    async def story() -> None:
        doors = Doors(of_client=1)
        with doors.turn("ann"), doors.turn("ann", surface="scheduled"), doors.turn("ann", surface="heartbeat"):
            assert doors.turns == 3

    asyncio.run(story())


def test_closing_waits_for_those_that_end_in_time() -> None:
    async def story() -> None:
        doors = Doors(drain=5)
        went: list[str] = []

        async def turn() -> None:
            with doors.turn("ann"):
                await asyncio.sleep(0.1)
                went.append("done")

        running = asyncio.create_task(turn())
        await asyncio.sleep(0)
        await doors.close()
        assert went == ["done"]
        await running
        with pytest.raises(NotNow, match="about to stop") as refused, doors.turn("ann"):
            pass
        assert (refused.value.retry_after, refused.value.for_all) == (5, True)

    asyncio.run(story())


def test_closing_cuts_off_those_that_do_not() -> None:
    async def story() -> None:
        doors = Doors(drain=0)

        async def turn() -> str:
            try:
                with doors.turn("ann"):
                    await asyncio.sleep(60)
            except NotNow as cut:
                task = asyncio.current_task()
                assert task is not None
                assert task.cancelling() == 0
                return str(cut)
            return "went on"

        running = asyncio.create_task(turn())
        await asyncio.sleep(0)
        await doors.close()
        assert await running == "the host has stopped before the turn was done"
        assert doors.turns == 0

    asyncio.run(story())


def test_a_turn_that_its_own_caller_cancels_is_cancelled() -> None:
    async def story() -> None:
        doors = Doors()

        async def turn() -> None:
            with doors.turn("ann"):
                await asyncio.sleep(60)

        running = asyncio.create_task(turn())
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert doors.turns == 0

    asyncio.run(story())
