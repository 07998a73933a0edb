"""`max_staleness`: a policy whose source nobody could read for so long decides nothing, until somebody can."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.clock import NOON, Clock
from tests.reload.disk import LOOSE, TIGHT, WRONG, Disk, until
from zcpolicy import PermitError, ResolveError
from zcpolicy.approvals.question import Approvers
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.gate import Admitted, Lapsed, Refused, admit
from zcpolicy.reload.generations import Generations
from zcpolicy.reload.staleness import Staleness

SINCE = "the policy's source could not be read since 2026-01-01T12:00:00Z"


def begun(disk: Disk, **more: Any) -> Generations:
    """A host that has read its policy at noon, and whose source has gone since."""
    generations = disk.start(max_staleness=600.0, **more)
    disk.clock.now = NOON
    generations.reload_now()
    disk.clock.now = NOON
    generations._staleness.confirm()
    disk.file.unlink()
    return generations


def later(disk: Disk, generations: Generations, seconds: float) -> None:
    disk.clock.now = NOON + seconds
    generations.glance()


def test_calls_are_denied_with_a_note_that_says_since_when_until_the_source_can_be_read(disk: Disk) -> None:
    generations = begun(disk)
    run = generations.resolver.resolve("a")
    later(disk, generations, 500)
    assert run.decide("act", {}).effect == "allow"
    assert generations.status()["failure"]["kind"] == "unreadable"
    later(disk, generations, 601)
    decision = run.decide("act", {})
    assert (decision.effect, decision.reason, decision.note) == ("deny", "stale-policy", SINCE)
    assert decision.to_json()["generation"] == 1
    assert generations.status()["suspended"] == SINCE
    with pytest.raises(ResolveError, match="could not be read since"):
        generations.resolver.resolve("a")
    with pytest.raises(ResolveError):
        run.permit(decision)
    disk.write(LOOSE)
    later(disk, generations, 700)
    assert run.decide("act", {}).effect == "allow"
    assert generations.resolver.resolve("a").decide("act", {}).effect == "allow"
    status = generations.status()
    assert (status["generation"], status["suspended"], status["failure"]) == (1, None, None)


def test_another_policy_ends_it_as_well(disk: Disk) -> None:
    generations = begun(disk)
    run = generations.resolver.resolve("a")
    later(disk, generations, 601)
    disk.write(TIGHT)
    later(disk, generations, 602)
    assert (run.decide("act", {}).reason, run.decide("act", {}).to_json()["generation"]) == ("denied", 2)


def test_a_source_that_can_be_read_and_has_an_error_is_not_stale(disk: Disk) -> None:
    generations = begun(disk)
    run = generations.resolver.resolve("a")
    disk.write(WRONG)
    for seconds in (100, 500, 900, 5000):
        later(disk, generations, seconds)
        assert run.decide("act", {}).effect == "allow"


def test_once_stale_only_a_policy_without_an_error_ends_it(disk: Disk) -> None:
    generations = begun(disk)
    run = generations.resolver.resolve("a")
    later(disk, generations, 601)
    disk.write(WRONG)
    later(disk, generations, 602)
    assert (run.decide("act", {}).effect, generations.status()["failure"]["kind"]) == ("deny", "broken")
    disk.write(LOOSE)
    later(disk, generations, 603)
    assert run.decide("act", {}).effect == "allow"


def test_without_a_limit_a_policy_never_grows_stale(disk: Disk) -> None:
    generations = disk.start()
    disk.file.unlink()
    later(disk, generations, 1e9)
    assert generations.resolver.decide("a", "act", {}).effect == "allow"


# --- the gate looks itself ------------------------------------------------------------------------------------------------


def io() -> ResolvedIo:
    return ResolvedIo(Approvers(None, {}), lambda _event: None)


def test_the_gate_looks_at_the_clock_though_nothing_else_runs(disk: Disk) -> None:
    """An event loop that is blocked looks at no file and suspends nothing; the call is denied all the same."""
    generations = begun(disk)
    run = generations.resolver.resolve("a")
    assert run.decide("act", {}).effect == "allow"

    async def story() -> None:
        disk.clock.now = NOON + 600
        call = await admit(run, "act", {}, io())
        assert isinstance(call, Admitted)
        await call.abandon()
        disk.clock.now = NOON + 601
        refused = await admit(run, "act", {}, io())
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.decision.note) == ("stale-policy", SINCE)

    asyncio.run(story())


def test_a_call_that_was_admitted_in_time_and_is_sent_too_late_is_not_sent(disk: Disk) -> None:
    run = begun(disk).resolver.resolve("a")

    async def story() -> None:
        call = await admit(run, "act", {}, io())
        assert isinstance(call, Admitted)
        disk.clock.now = NOON + 601
        with pytest.raises(Lapsed):
            await call.start()

    asyncio.run(story())


def test_permit_looks_as_well(disk: Disk) -> None:
    run = begun(disk).resolver.resolve("a")
    decision = run.decide("act", {})
    disk.clock.now = NOON + 601
    with pytest.raises((PermitError, ResolveError), match="could not be read since"):
        run.permit(decision)


def test_a_clock_that_cannot_be_read_denies(disk: Disk) -> None:
    generations = disk.start()

    def broken() -> str:
        raise OSError

    run = generations.resolver.resolve("a")
    generations.resolver.lapse_when(broken)
    assert generations.resolver.newest.suspended == "whether the policy is still that of its source cannot be told"
    assert run.decide("act", {}).reason == "stale-policy"


# --- restarts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("away", "effect"),
    [(500.0, "allow"), (601.0, "deny"), (-601.0, "deny")],
    ids=["soon", "late", "before: a clock that says so says nothing"],
)
def test_a_restart_does_not_make_a_policy_younger(disk: Disk, away: float, effect: str) -> None:
    first = begun(disk)
    disk.write(LOOSE)
    later(disk, first, 0)
    first.close()
    disk.file.unlink()
    disk.clock.now = NOON + away
    again = disk.start(max_staleness=600.0)
    assert again.status()["failure"]["kind"] == "unreadable"
    assert again.resolver.decide("a", "act", {}).effect == effect


def test_how_long_ago_the_source_was_read_is_kept_as_time_goes_by(disk: Disk) -> None:
    first = disk.start(max_staleness=600.0)
    for seconds in range(100, 1000, 100):
        later(disk, first, seconds)
    first.close()
    disk.file.unlink()
    disk.clock.now = NOON + 1400
    assert disk.start(max_staleness=600.0).resolver.decide("a", "act", {}).effect == "allow"


# --- clocks -------------------------------------------------------------------------------------------------------------


def test_either_clock_makes_a_policy_stale() -> None:
    now, ticks = Clock(), Clock(0.0)
    staleness = Staleness(60.0, now, ticks)
    now.now -= 3600
    assert staleness.why() == ""
    ticks.now = 61.0
    assert staleness.why() == SINCE
    staleness.confirm()
    assert staleness.left() == 60.0
    now.now += 61.0
    assert staleness.why() == "the policy's source could not be read since 2026-01-01T11:00:00Z"


@pytest.mark.parametrize("limit", [0.0, -1.0, 0.5, float("nan")])
def test_a_limit_that_is_none(disk: Disk, limit: float) -> None:
    with pytest.raises(ValueError, match="at least 1 seconds"):
        disk.start(max_staleness=limit)


def test_a_host_that_only_decides_is_suspended_in_time(tmp_path: Path) -> None:
    """`decide` looks at no clock: the host does, while it watches."""
    disk = Disk(tmp_path)
    generations = disk.start(max_staleness=600.0, told=False)
    run = generations.resolver.resolve("a")
    assert run.decide("act", {}).effect == "allow"

    async def story() -> None:
        async with generations:
            disk.file.unlink()
            disk.clock.now += 700
            await until(lambda: run.decide("act", {}).effect == "deny")

    asyncio.run(story())
