"""Budgets, scenarios 12 to 21, in whole turns, on each ledger, and in processes where the scenario says so."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.clock import NOON, Clock
from tests.runtime.scene import Scene
from tests.runtime.stores import Store
from tests.runtime.worker import Worker, ran
from tests.servers.redis_server import RedisServer
from zcpolicy.events import Event
from zcpolicy.ledgers.contract import LEASE_SECONDS, Ledger
from zcpolicy.loop.access import ResolvedIo
from zcpolicy.loop.gate import Admitted, admit
from zcpolicy.loop.messages import ModelResponse, Usage
from zcpolicy.loop.scripted import calls
from zcpolicy.prices import PriceTable
from zcpolicy.registry.sources import ToolContext, ToolResult

LOOK = ("look", {"at": "x"})
NOTE = ("note", {"rest": "x"})
HOUR = 3_600.0


def limited(*limits: str, more: str = "") -> str:
    """An agent that may call everything, within these limits."""
    return "agent worker { allow any; " + "; ".join(f"limit {one}" for one in limits) + f"; {more} }}\n"


def usd(scene: Scene) -> Decimal:
    """All that was spent, whoever spent it."""
    entries = [one for one in scene.resolver.ledger.entries() if one.charge.currency == "usd"]
    return sum((Decimal(one.charge.amount) for one in entries if one.state != "released"), Decimal())


async def pays(arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
    """A tool that costs what it is told to."""
    return ToolResult("paid", cost={"usd": Decimal(arguments["amount"])})


def output(tokens: int) -> Mapping[str, Any]:
    """A model each of whose answers may cost as many usd, and which costs nothing to ask."""
    return {"prices": PriceTable({"large": (0, 1_000_000)}), "max_output_tokens": tokens}


FREE = {"prices": PriceTable({"large": 0})}


def used(tokens: int, text: str = "done") -> ModelResponse:
    return ModelResponse(text, (), Usage(1, tokens))


# --- 12, 13: counts ----------------------------------------------------------------------------------------------------


def test_12_of_two_callers_in_two_processes_exactly_one_runs(shared: Store, tmp_path: Path) -> None:
    """`limit 1 calls to t per hour`, two concurrent callers in two processes: exactly one runs."""
    log = tmp_path / "log"
    policy = limited("1 calls to note per hour")
    workers = [Worker(shared, policy, log, NOTE, now=NOON, session=name) for name in ("s1", "s2")]
    ends = [said["ends"] for said in ran(*workers) if said is not None]
    assert sorted(ends) == [["budget"], ["ran"]]
    assert len(log.read_text("utf-8").splitlines()) == 1


def test_13_the_last_one_runs_and_the_next_one_is_told_when_to_come_back(ledger: Ledger) -> None:
    """`limit 6 calls`: the 6th runs, the 7th is denied and says when to retry."""
    scene = Scene(limited("6 calls to look per hour"), ledger=ledger)
    scene.play(calls(LOOK), "done")
    scene.clock.now += 600
    turn = scene.play(calls(*[LOOK] * 6), "done")
    assert scene.ends() == ["ran"] * 6 + ["budget"]
    assert turn.told[-1] == "A limit is reached. Go on without this call, or call again in 3001 seconds."
    scene.clock.now += 3_001
    assert scene.call(*LOOK) == "ran"
    assert scene.call(*LOOK) == "budget"


# --- 14, 18: money -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reserving", "run"), [(5, 0), (1, 1)])
def test_14_two_requests_at_once_reserve_before_they_are_sent(reserving: int, run: int, store: Store) -> None:
    """`limit 10.00 usd`, 9.00 spent, two calls each reserving 5.00 at once: neither runs; each reserving 1.00: exactly one."""
    policy = limited("10.00 usd per day")

    async def story() -> None:
        scenes = [Scene(policy, ledger=store.open(), pay=pays) for _ in range(2)]
        await scenes[0].turn(calls(("pay", {"amount": 9})), "done", access=FREE)
        assert usd(scenes[0]) == 9
        turns = await asyncio.gather(
            *(one.turn(used(reserving), access=output(reserving), session=one.seat(f"of {id(one)}")) for one in scenes)
        )
        assert sorted(one.result.reason for one in turns) == sorted(["answered"] * run + ["budget"] * (2 - run))
        assert sum(len(one.model.requests) for one in turns) == run
        assert usd(scenes[0]) == 9 + run

    asyncio.run(story())


@pytest.mark.parametrize(("reserving", "run"), [("5.00", 0), ("1.00", 1)])
def test_14_two_calls_at_once_of_a_host_that_knows_what_they_cost(reserving: str, run: int, store: Store) -> None:
    """`limit 10.00 usd`, 9.00 spent, two calls each reserving 5.00 at once: neither runs; each reserving 1.00: exactly one."""
    policy = limited("10.00 usd per day")

    async def story() -> None:
        scenes = [Scene(policy, ledger=store.open(), pay=pays) for _ in range(2)]
        await scenes[0].turn(calls(("pay", {"amount": 9})), "done", access=FREE)
        runs = [one.resolver.resolve("worker", session=one.seat()) for one in scenes]
        cost = {"usd": Decimal(reserving)}
        found = await asyncio.gather(*(admit(one, *LOOK, ResolvedIo(), cost=cost) for one in runs))
        admitted = [one for one in found if isinstance(one, Admitted)]
        assert len(admitted) == run
        for one in admitted:
            await one.start()
            await one.finish(ok=True, cost=cost)
        assert usd(scenes[0]) == 9 + run

    asyncio.run(story())


class Wrong:
    """A price list that gives what is no price."""

    def __init__(self, amount: Decimal | None) -> None:
        self.amount = amount

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Mapping[str, Decimal] | None:
        return None if self.amount is None else {"usd": self.amount}


UNPRICED: dict[str, Any] = {
    "no prices": None,
    "no price": PriceTable({"small": 1}),
    "none": Wrong(None),
    "negative": Wrong(Decimal(-1)),
    "not finite": Wrong(Decimal("Infinity")),
    "no number": Wrong(Decimal("NaN")),
}


@pytest.mark.parametrize("case", UNPRICED)
def test_18_what_has_no_price_is_not_asked_under_a_money_limit(case: str, ledger: Ledger) -> None:
    """A call that cannot be priced under a money limit is denied."""
    scene = Scene(limited("10.00 usd per day"), ledger=ledger)
    turn = scene.play(calls(LOOK), "done", access={"prices": UNPRICED[case]})
    assert (turn.result.status, turn.result.reason) == ("stopped", "budget")
    assert (turn.model.requests, scene.ran) == ([], [])
    free = Scene(limited("10 calls per day"), ledger=ledger)  # where money has no limit it is not looked at
    assert free.play("done", access={"prices": UNPRICED[case]}).result.status == "done"


def test_18_a_call_whose_cost_is_not_known(ledger: Ledger) -> None:
    """A call that cannot be priced under a money limit is denied."""
    costs: list[Mapping[str, Decimal] | None] = [
        None,
        {"usd": Decimal(-1)},
        {"usd": Decimal("NaN")},
        {"usd": Decimal(1)},
    ]

    async def story() -> list[bool]:
        run = Scene(limited("10.00 usd per day"), ledger=ledger).resolver.resolve("worker")
        found = [await admit(run, *LOOK, ResolvedIo(), cost=cost) for cost in costs]
        return [isinstance(one, Admitted) for one in found]

    assert asyncio.run(story()) == [False, False, False, True]


# --- 15, 16: what counts -----------------------------------------------------------------------------------------------


def test_15_a_holder_that_dies_before_it_sent_the_call(shared: Store, tmp_path: Path) -> None:
    """A holder dies after reserving and before it sent the call: the reservation returns after the lease."""
    log, policy = tmp_path / "log", limited("1 calls to note per hour")
    assert ran(Worker(shared, policy, log, NOTE, now=NOON, dies="admitted")) == [None]
    clock = Clock()
    scene = Scene(policy, ledger=shared.open(), clock=clock)
    assert scene.call(*NOTE) == "budget"
    clock.now += LEASE_SECONDS + 1
    assert scene.call(*NOTE) == "ran"
    assert scene.call(*NOTE) == "budget"  # nothing counted twice, nothing given back twice
    assert not log.exists()


@pytest.mark.parametrize("dies", ["started", "running", "finished"])
def test_15_a_holder_that_dies_after_it_sent_the_call(dies: str, shared: Store, tmp_path: Path) -> None:
    """It dies after it sent it: the reserved amount counts. Nothing is lost, nothing counted twice."""
    log, policy = tmp_path / "log", limited("2 calls to note per hour")
    assert ran(Worker(shared, policy, log, NOTE, now=NOON, dies=dies)) == [None]
    clock = Clock(NOON + 10 * LEASE_SECONDS)
    scene = Scene(policy, ledger=shared.open(), clock=clock)
    assert [scene.call(*NOTE) for _ in range(2)] == ["ran", "budget"]
    assert log.exists() == (dies != "started")


def test_16_a_call_that_never_reached_its_tool_gives_back_what_it_reserved(ledger: Ledger) -> None:
    """A call that never reached its tool releases what it reserved"""
    scene = Scene(limited("2 calls", more="runtime { parallel_tools on }"), ledger=ledger)
    seen: list[str] = []

    def breaks(event: Event) -> None:
        seen.append(str(event.data.get("phase")))
        if seen.count("admitted") == 2:
            raise OSError("the record is full")

    turn = scene.play(calls(LOOK, LOOK), record=breaks)
    assert (turn.result.reason, scene.ran) == ("host-failed", [])
    scene.play(calls(LOOK, LOOK, LOOK), "done")
    assert sorted(scene.ends()) == ["budget", "ran", "ran"]


def test_16_nor_does_one_that_was_cancelled_while_somebody_was_asked(ledger: Ledger) -> None:
    """A call that never reached its tool releases what it reserved"""
    scene = Scene(limited("1 calls to look", more="ask look"), ledger=ledger)

    async def story() -> None:
        asked = asyncio.Event()

        async def thinks(_question: object) -> Any:
            asked.set()
            await asyncio.sleep(60)

        turn = asyncio.create_task(scene.turn(calls(LOOK), person=thinks))
        await asked.wait()
        turn.cancel()
        assert [type(one) for one in await asyncio.gather(turn, return_exceptions=True)] == [asyncio.CancelledError]

    asyncio.run(story())
    scene.publish(limited("1 calls to look"))
    assert scene.call(*LOOK) == "ran"


async def fails(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
    return ToolResult("no", ok=False)


async def raises(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
    raise OSError("the wire is cut")


async def hangs(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
    await asyncio.sleep(60)
    return ToolResult("late")


@pytest.mark.parametrize("does", [fails, raises, hangs])
def test_16_a_call_that_failed_after_it_was_sent_counts(does: Any, ledger: Ledger) -> None:
    """one that failed after it was sent counts. `limit 2 calls`: two failing calls, the third is denied."""
    scene = Scene(limited("2 calls", more="runtime { call_timeout 1s }"), ledger=ledger, look=does)
    turn = scene.play(calls(LOOK, LOOK, LOOK), "done")
    assert len(scene.ran) == 2
    assert scene.ends()[2] == "budget"
    assert all(text.startswith("[failed]") for text in turn.told[:2])


# --- 19 to 21: what stands ---------------------------------------------------------------------------------------------


def test_19_a_restart_of_the_process(shared: Store, tmp_path: Path) -> None:
    """Restart of the process, restart of the store, reload of the policy: counters stand."""
    log, policy = tmp_path / "log", limited("3 calls to note per hour")
    ends = [said["ends"] for _ in range(2) for said in ran(Worker(shared, policy, log, NOTE, NOTE, now=NOON)) if said]
    assert ends == [["ran", "ran"], ["ran", "budget"]]
    assert len(log.read_text("utf-8").splitlines()) == 3


def test_19_a_restart_of_the_store(shared: Store, redis_server: RedisServer) -> None:
    """Restart of the process, restart of the store, reload of the policy: counters stand."""
    policy = limited("2 calls to look per hour")
    assert Scene(policy, ledger=shared.open()).call(*LOOK) == "ran"
    shared.close()
    if shared.kind == "redis":
        redis_server.kill()
        redis_server.start()
    scene = Scene(policy, ledger=shared.open())
    assert [scene.call(*LOOK) for _ in range(2)] == ["ran", "budget"]


def test_19_a_store_that_is_away_denies_and_one_that_is_back_still_counts(
    shared: Store, redis_server: RedisServer
) -> None:
    """Restart of the process, restart of the store, reload of the policy: counters stand."""
    if shared.kind == "sqlite":
        return  # a file is there or it is not: tests/ledgers
    scene = Scene(limited("2 calls to look per hour"), ledger=shared.open())
    assert scene.call(*LOOK) == "ran"
    redis_server.kill()
    try:
        assert scene.call(*LOOK) == "ledger-unavailable"
    finally:
        redis_server.start()
    assert [scene.call(*LOOK) for _ in range(2)] == ["ran", "budget"]


def test_19_a_reload_that_lowers_a_limit(store: Store) -> None:
    """reload of the policy: counters stand. A reload that lowers a limit applies to what is spent."""
    scene = Scene(limited("4 calls to look per hour"), ledger=store.open())
    assert [scene.call(*LOOK) for _ in range(2)] == ["ran", "ran"]
    scene.publish(limited("3 calls to look per hour"))
    assert [scene.call(*LOOK) for _ in range(2)] == ["ran", "budget"]
    scene.publish(limited("2 calls to look per day"))  # another text, the same pot of spent calls
    assert scene.call(*LOOK) == "budget"
    scene.publish(limited("5 calls to look per hour"))
    assert [scene.call(*LOOK) for _ in range(3)] == ["ran", "ran", "budget"]
    assert Scene(limited("5 calls to look per hour"), ledger=store.open()).call(*LOOK) == "budget"


def test_20_zero_is_never_and_none_is_always(ledger: Ledger) -> None:
    """`limit 0 calls to t`: denied always. The absence of a limit is no limit."""
    scene = Scene(limited("0 calls to look"), ledger=ledger)
    turn = scene.play(calls(LOOK, *[("read", {"path": "/w/a"})] * 30), "done")
    assert scene.ends() == ["budget", *["ran"] * 30]
    assert turn.told[0] == "A limit is reached. Go on without this call."  # there is no time at which it may run
    scene.clock.now += 1e9
    assert scene.call(*LOOK) == "budget"


@pytest.mark.parametrize("window", ["hour", "day", 'calendar day in "Europe/Berlin"', "90m"])
def test_21_a_clock_set_back_grants_nothing_twice(window: str, store: Store) -> None:
    """Clock set back an hour: no budget is granted twice."""
    clock = Clock()
    scene = Scene(limited(f"2 calls to look per {window}"), ledger=store.open(), clock=clock)
    assert [scene.call(*LOOK) for _ in range(3)] == ["ran", "ran", "budget"]
    for back in (HOUR, 2 * HOUR, 48 * HOUR):
        clock.now = NOON - back
        assert scene.call(*LOOK) == "budget"
        other = Scene(limited(f"2 calls to look per {window}"), ledger=store.open(), clock=Clock(NOON - back))
        assert other.call(*LOOK) == "budget"  # of another host, too
    clock.now = NOON
    assert scene.call(*LOOK) == "budget"


def test_21_nor_does_one_that_tells_no_time(ledger: Ledger) -> None:
    """Clock set back an hour: no budget is granted twice."""
    clock = Clock()
    scene = Scene(limited("2 calls to look per hour"), ledger=ledger, clock=clock)
    assert scene.call(*LOOK) == "ran"
    clock.now = float("nan")
    turn = scene.play(calls(LOOK, LOOK, LOOK), "done")
    assert scene.names.count("look") == 1
    assert turn.result.status in ("done", "stopped")
    clock.now = NOON
    assert [scene.call(*LOOK) for _ in range(2)] == ["ran", "budget"]
