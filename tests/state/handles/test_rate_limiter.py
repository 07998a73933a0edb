"""Rates: a window that rolls, for each client, agent or session apart, and lives on over a reload."""

import asyncio
import time
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.clock import Clock
from tests.state.handles.cast import ANN, BEN, Call, called, who
from zcpolicy import PermitError
from zcpolicy.state.handles import rates as module
from zcpolicy.state.handles.named import Missing
from zcpolicy.state.handles.rate_limiter import AgentRateLimiter, RateLimiter, SessionRateLimiter
from zcpolicy.state.handles.rates import MAX_RATE_SECONDS, MAX_RATE_TIMES, Rate, RateLimited
from zcpolicy.state.versions import SourceVersions

PEOPLE = [("ann", "one", "1"), ("ann", "two", "2"), ("ann", "one", "3"), ("ben", "one", "4")]
RATES = st.builds(Rate, st.integers(0, 4), st.sampled_from([1.0, 4.0]))
LIMITERS = {1: RateLimiter, 2: AgentRateLimiter, 3: SessionRateLimiter}
"""By how much of (client, agent, session) they keep apart."""


class Rated(RuleBasedStateMachine):
    """Beside a model that forgets nothing: all moments of each, counted anew for every question."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(module, "MAX_RATE_TIMES", 4)
        self.clock = Clock(1000.0)
        self.rates = {"x": Rate(3, 4.0), "y": Rate(1, 1.0)}
        self.versions = SourceVersions()
        self.limiters = {part: kind(self.versions, self.configured, self.clock) for part, kind in LIMITERS.items()}
        self.done: dict[tuple[Any, ...], list[float]] = {}

    def teardown(self) -> None:
        self.patch.undo()

    def configured(self) -> dict[str, Rate]:
        return dict(self.rates)

    @rule(seconds=st.sampled_from([0.25, 0.75, 1.0, 3.0]))
    def time_goes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(name=st.sampled_from(["x", "y"]), rate=RATES)
    def reload(self, name: str, rate: Rate) -> None:
        self.rates[name] = rate
        self.versions.bump("config")

    @rule(source=st.sampled_from(["credentials", "policy", "workspace", "provider"]))
    def something_else_changes(self, source: Any) -> None:
        self.versions.bump(source)

    @rule(whose=st.sampled_from(PEOPLE), part=st.sampled_from([*LIMITERS]))
    def forget(self, whose: tuple[str, str, str], part: int) -> None:
        self.limiters[part].forget(who(*whose))
        for name in self.rates:
            self.done.pop((part, whose[:part], name), None)

    @rule(
        whose=st.sampled_from(PEOPLE), part=st.sampled_from([*LIMITERS]), name=st.sampled_from(["x", "y"]), times=st.integers(1, 4)
    )  # fmt: skip
    def take(self, whose: tuple[str, str, str], part: int, name: str, times: int) -> None:
        rate, now = self.rates[name], self.clock()
        done = self.done.setdefault((part, whose[:part], name), [])
        view = self.limiters[part].scoped(called(*whose))
        if _room(rate, done, now, times):
            view.take(name, times)
            done += [now] * times
            return
        with pytest.raises(RateLimited) as limited:
            view.take(name, times)
        after = limited.value.retry_after
        if after is None:
            assert times > rate.times
        else:
            assert _room(rate, done, now + after, times)
            assert not _room(rate, done, now + after - 0.125, times)


def _room(rate: Rate, done: list[float], now: float, times: int) -> bool:
    return sum(one > now - rate.seconds for one in done) + times <= rate.times


TestRated = Rated.TestCase
TestRated.settings = settings(max_examples=max(120, settings().max_examples))


def limiter(
    rates: dict[str, Rate], versions: SourceVersions | None = None, clock: Callable[[], float] = time.monotonic
) -> RateLimiter:
    return RateLimiter(versions or SourceVersions(), lambda: rates, clock)


def test_r14_one_client_can_neither_exhaust_nor_reset_what_is_another_s() -> None:
    made = limiter({"search": Rate(2, 60.0)})
    ann, ben = made.scoped(called(*ANN)), made.scoped(called(*BEN))
    ann.take("search", 2)
    ben.take("search", 2)
    for view in (ann, ben):
        with pytest.raises(RateLimited, match="too often for the rate `search`"):
            view.take("search")
    made.forget(who(*BEN))
    ben.take("search")
    with pytest.raises(RateLimited):
        ann.take("search")
    assert not hasattr(ann, "forget")


def test_a_lowered_rate_applies_to_what_was_done_and_a_raised_one_as_well() -> None:
    rates, versions, clock = {"search": Rate(5, 10.0)}, SourceVersions(), Clock()
    view = limiter(rates, versions, clock).scoped(called())
    view.take("search", 3)
    rates["search"] = Rate(3, 10.0)
    view.take("search")  # nobody has said that the configuration has changed
    versions.bump("config")
    with pytest.raises(RateLimited) as limited:
        view.take("search")
    assert limited.value.retry_after == 10.0
    rates["search"] = Rate(5, 20.0)
    versions.bump("config")
    clock.now += 15
    view.take("search")
    with pytest.raises(RateLimited) as limited:
        view.take("search")
    assert limited.value.retry_after == 5.0


def test_waiting_in_tasks_and_threads_goes_on_as_soon_as_there_is_room() -> None:
    async def story() -> float:
        view = limiter({"search": Rate(1, 0.1)}).scoped(called())
        view.take("search")
        began = time.monotonic()
        await asyncio.gather(
            view.wait("search", 5), view.wait("search", 5), asyncio.to_thread(view.wait_in_thread, "search", 5)
        )
        return time.monotonic() - began

    assert 0.29 < asyncio.run(story()) < 3


def test_waiting_ends_where_there_will_be_no_room_in_time_or_ever_or_the_call_is_over() -> None:
    async def story() -> None:
        made = limiter({"search": Rate(1, 60.0), "never": Rate(0, 1.0)})
        call = Call()
        view = made.scoped(call.caller)
        with pytest.raises(RateLimited) as limited:
            await view.wait("never", 5)
        assert limited.value.retry_after is None
        view.take("search")
        with pytest.raises(RateLimited):
            await view.wait("search", 0.02)
        waiting = asyncio.create_task(view.wait("search", 60))
        await asyncio.sleep(0)
        call.end()
        with pytest.raises(PermitError, match="the call is over"):
            await asyncio.wait_for(waiting, 2)
        with pytest.raises(PermitError, match="this would hold up the event loop"):
            made.scoped(called()).wait_in_thread("search", 1)

    asyncio.run(story())


def test_threads_and_tasks_never_get_more_than_the_rate() -> None:
    made = limiter({"search": Rate(50, 600.0)})

    def tries(number: int) -> int:
        view = made.scoped(called(*(ANN, BEN)[number % 2]))
        return sum(_taken(view) for _ in range(40))

    async def story() -> list[int]:
        with ThreadPoolExecutor(8) as pool:
            loop = asyncio.get_running_loop()
            return await asyncio.gather(*(loop.run_in_executor(pool, tries, number) for number in range(8)))

    taken = asyncio.run(story())
    assert (sum(taken[0::2]), sum(taken[1::2])) == (50, 50)


def _taken(view: Any) -> bool:
    try:
        view.take("search")
    except RateLimited:
        return False
    return True


def test_what_was_done_at_the_beginning_of_a_window_is_outside_at_its_end_and_no_more_is_kept_than_is_asked_for() -> (
    None
):
    moments = array("d")
    for second in range(3 * MAX_RATE_TIMES):
        module.ask("x", Rate(MAX_RATE_TIMES, float(MAX_RATE_TIMES)), moments, 1, float(second))
        module.add(moments, 1, float(second))
    assert len(moments) == MAX_RATE_TIMES
    with pytest.raises(RateLimited):
        module.ask("x", Rate(MAX_RATE_TIMES, MAX_RATE_TIMES + 1.0), moments, 1, 3.0 * MAX_RATE_TIMES)


def test_a_rate_that_is_not_configured_is_none_that_can_be_taken() -> None:
    view = limiter({"search": Rate(1, 1.0)}).scoped(called())
    with pytest.raises(Missing, match="there is no rate `serach`; there is `search`"):
        view.take("serach")


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (Rate(MAX_RATE_TIMES + 1, 1.0), "rate `x`: 0 to 1,000 times"),
        (Rate(-1, 1.0), "rate `x`: 0 to 1,000 times"),
        (Rate(True, 1.0), "rate `x`: 0 to 1,000 times"),
        (Rate(1, 0.0), "rate `x`: a window of up to 86,400 seconds"),
        (Rate(1, float("nan")), "rate `x`: a window of up to 86,400 seconds"),
        (Rate(1, MAX_RATE_SECONDS + 1), "rate `x`: a window of up to 86,400 seconds"),
    ],
)
def test_a_configuration_that_is_no_rate_lets_nobody_go_on(rate: Rate, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        limiter({"x": rate}).scoped(called()).take("x")


@pytest.mark.parametrize("times", [0, -1, True, 1.5])
def test_nothing_is_done_less_than_once(times: Any) -> None:
    with pytest.raises(ValueError, match="something is done once, or more often"):
        limiter({"x": Rate(9, 1.0)}).scoped(called()).take("x", times)
