"""What a daemon forgets, and what it keeps: charges by their age, by the windows of the policy, by the sessions that go on."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import time

import pytest

from policy_lang import loads
from policy_lang.serving.compiling import compile_layers
from tests.clock import Clock
from tests.state.handles.cast import Wires, called
from zcpolicy.daemon import upkeep
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.serving import Daemon
from zcpolicy.daemon.upkeep import DAY_SECONDS, longest_window, prune
from zcpolicy.facts import Session
from zcpolicy.ledgers.contract import Charge, Spender, Who
from zcpolicy.ledgers.sqlite import SqliteLedger
from zcpolicy.state.handles.lending import IDLE_SECONDS
from zcpolicy.state.handles.pool import ConnectionPool
from zcpolicy.state.versions import SourceVersions

from .desk import POLICY, lay, serving, settings_of

AGES = (400, 100, 70, 40, 1)
"""Days since what is on record was charged."""
WINDOWS: dict[str, float] = {
    "per turn": 0.0,
    "per session": 0.0,
    "per 90d": 90 * DAY_SECONDS,
    "per 2h": 7_200.0,
    'per calendar day in "Europe/Vienna"': 2 * DAY_SECONDS,
    'per calendar month in "UTC"': 32 * DAY_SECONDS,
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("place", ["ceiling {{ {} }}", "agent other {{ {} }}", "skill careful {{ {} }}"])
def test_how_far_a_policy_looks_back(place: str, window: str) -> None:
    program = loads(POLICY + place.format(f"limit 3 calls to memory_store {window}"))
    assert longest_window(program) == max(DAY_SECONDS, WINDOWS[window])  # the desk has a limit per day


def charged(file: Path, session: str = "s") -> None:
    """Puts on record what was charged on days of long ago."""
    folder = file.parent / "var"
    folder.mkdir(mode=0o700)
    ledger = SqliteLedger(str(folder / "ledger.db"))
    who = Who("ann", session, "t", "helper")
    spender = Spender("memory_store", (who,), frozenset({"helper"}), frozenset(), {})
    for days in AGES:
        clock = time() - days * DAY_SECONDS
        ledger.reserve(str(days), spender, [Charge("calls", 1)], [], clock)
        ledger.dispatch(str(days), clock)
        ledger.settle(str(days), [], clock)
    ledger.close()


def left(daemon: Daemon) -> list[int]:
    """The ages of what is on record."""
    return [int(one.key) for one in daemon.operating().kept.ledger.entries()]


SETTINGS: dict[str, tuple[str, str, list[int]]] = {
    "of themselves": ("", "", [40, 1]),
    "longer": ('keep = "150d"', "", [100, 70, 40, 1]),
    "less than a window of the policy": ('keep = "1d"', "limit 9 calls to memory_store per 80d", [70, 40, 1]),
    "a day more than the window": ('keep = "1d"', "limit 9 calls to memory_store per 39d", [1]),
}


@pytest.mark.parametrize("kept", SETTINGS)
def test_a_daemon_prunes_its_ledger_as_it_starts(tmp_path: Path, kept: str) -> None:
    state, limit, expected = SETTINGS[kept]
    file = lay(tmp_path / "desk", state=state)
    (file.parent / "team.zcpolicy").write_text(POLICY + f"ceiling {{ {limit} }}")
    charged(file)

    async def story() -> None:
        async with serving(file) as (daemon, _):
            for _ in range(200):
                if len(left(daemon)) == len(expected):
                    break
                await asyncio.sleep(0.02)
            assert left(daemon) == expected

    asyncio.run(story())


def opened_long_ago(host: Host) -> None:
    host.sessions.open("ann").opened = time() - 90 * DAY_SECONDS


def below_one_that_is_older(host: Host) -> None:
    host.sessions.open("ann", above=Session(client="ann", id="old"))


GOING_ON: dict[str, tuple[Callable[[Host], None], list[int]]] = {
    "an open session": (opened_long_ago, [70, 40, 1]),
    "a session above an open one": (below_one_that_is_older, list(AGES)),
}


@pytest.mark.parametrize("what", GOING_ON)
def test_what_a_session_that_goes_on_was_charged_is_kept(tmp_path: Path, what: str) -> None:
    begin, expected = GOING_ON[what]
    file = lay(tmp_path / "desk", state='keep = "3660d"')
    charged(file, "old")

    async def story() -> None:
        async with serving(file) as (daemon, _):
            begin(daemon.host)
            await prune(daemon.host, daemon.operating().kept, 20 * DAY_SECONDS)
            assert left(daemon) == expected

    asyncio.run(story())


def test_pools_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "SWEEP_SECONDS", 0.02)
    wires, clock = Wires(), Clock()

    async def story() -> None:
        daemon = Daemon(settings_of(lay(tmp_path / "desk")), compile_layers)
        pool: ConnectionPool[list[str]] = ConnectionPool(SourceVersions(), wires, clock)
        daemon.handles.declare("pool", pool)

        def borrow() -> None:
            with pool.scoped(called("ann")).connection("db"):
                pass

        async with daemon.serving():
            await asyncio.to_thread(borrow)
            assert wires.closed == []
            clock.now += IDLE_SECONDS
            async with asyncio.timeout(10):
                while wires.closed != wires.made:  # noqa: ASYNC110 - a pool tells nobody
                    await asyncio.sleep(0.02)

    asyncio.run(story())
