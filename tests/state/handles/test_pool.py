"""Connections: bounded, each client's own, healthy, replaced when they go stale, closed once."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.clock import Clock
from tests.state.handles.cast import ANN, BEN, Call, Wires, called
from zcpolicy import PermitError
from zcpolicy.state.caller import Who
from zcpolicy.state.handles import connections as parts
from zcpolicy.state.handles import lending
from zcpolicy.state.handles.apart import Full
from zcpolicy.state.handles.lending import IDLE_SECONDS
from zcpolicy.state.handles.outside import Unreachable
from zcpolicy.state.handles.pool import ConnectionPool
from zcpolicy.state.versions import SourceVersions

CLIENTS = st.sampled_from(["ann", "ben"])
PLACES = st.sampled_from(["db", "mail"])


class Pool(RuleBasedStateMachine):
    """Beside a model: for each client and place those that are out, and a stack of those that nobody has."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(parts, "MAX_CONNECTIONS", 2)
        self.versions, self.clock, self.wires = SourceVersions(), Clock(), Wires()
        self.pool: ConnectionPool[list[str]] = ConnectionPool(self.versions, self.wires, self.clock)
        self.out: list[tuple[str, str, Any, list[str]]] = []
        self.idle: dict[tuple[str, str], list[list[str]]] = {}
        self.stale: list[list[str]] = []
        self.closed: list[list[str]] = []
        self.unused: dict[int, float] = {}

    def teardown(self) -> None:
        self.patch.undo()
        for _, _, borrowed, _ in self.out:
            borrowed.__exit__(None, None, None)
        asyncio.run(self.pool.shut_down())
        assert sorted(map(id, self.wires.closed)) == sorted(map(id, self.wires.made))

    def is_stale(self, one: list[str]) -> bool:
        return any(one is stale for stale in self.stale) or self.clock() - self.unused[id(one)] >= IDLE_SECONDS

    @rule(client=CLIENTS, name=PLACES)
    def borrow(self, client: str, name: str) -> None:
        borrowed = self.pool.scoped(called(client)).connection(name, seconds=0)
        if sum((client, name) == one[:2] for one in self.out) == 2:
            with pytest.raises(TimeoutError):
                borrowed.__enter__()
            return
        idle = self.idle.setdefault((client, name), [])
        expected = None
        while idle and expected is None:
            one = idle.pop()
            if self.is_stale(one) or "broken" in one:
                self.closed.append(one)
            else:
                expected = one
        made = len(self.wires.made)
        found = borrowed.__enter__()
        assert found[:2] == [client, name]
        assert (found is expected) if expected is not None else (len(self.wires.made) == made + 1)
        self.unused[id(found)] = self.clock()
        self.out.append((client, name, borrowed, found))

    @precondition(lambda self: self.out)
    @rule(data=st.data(), failed=st.booleans(), breaks=st.booleans())
    def give_back(self, data: st.DataObject, failed: bool, breaks: bool) -> None:
        number = data.draw(st.integers(0, len(self.out) - 1))
        client, name, borrowed, one = self.out.pop(number)
        if breaks:
            one.append("broken")
        borrowed.__exit__(ValueError if failed else None, None, None)
        self.unused[id(one)] = self.clock()
        if failed or self.is_stale(one):
            self.closed.append(one)
        else:
            self.idle.setdefault((client, name), []).append(one)

    @rule(source=st.sampled_from(["credentials", "provider", "config", "policy", "workspace"]))
    def reload(self, source: Any) -> None:
        self.versions.bump(source)
        if source in {"credentials", "provider", "config"}:
            self.stale += self.wires.made

    @rule(seconds=st.sampled_from([1.0, IDLE_SECONDS]))
    def time_goes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def sweep(self) -> None:
        asyncio.run(self.pool.sweep())
        for idle in self.idle.values():
            self.closed += [one for one in idle if self.is_stale(one)]
            idle[:] = [one for one in idle if not self.is_stale(one)]

    @invariant()
    def closed_the_same_and_once(self) -> None:
        assert sorted(map(id, self.wires.closed)) == sorted(map(id, self.closed))
        held = sorted(f"{one.who.client} {one.name}" for one in self.pool.held() if one.who is not None)
        left = [f"{client} {name}" for client, name, *_ in self.out]
        left += [f"{client} {name}" for (client, name), idle in self.idle.items() for _ in idle]
        assert held == sorted(left)


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=max(120, settings().max_examples))


class Line:
    """A connection for tasks."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.healthy: Any = True
        self.closes = 0
        self.users = 0


class Lines:
    """Makes them, after `before_connect` and between `before_check` and `before_close`."""

    def __init__(self) -> None:
        self.made: list[Line] = []
        self.before_connect: Callable[[], Awaitable[object]] = _at_once
        self.before_check: Callable[[], Awaitable[object]] = _at_once
        self.before_close: Callable[[], Awaitable[object]] = _at_once

    async def connect(self, name: str, who: Who) -> Line:
        await self.before_connect()
        self.made.append(Line(who.client))
        return self.made[-1]

    async def is_healthy(self, connection: Line) -> bool:
        await self.before_check()
        found: bool = connection.healthy
        return found

    async def close(self, connection: Line) -> None:
        connection.closes += 1
        await self.before_close()


async def _at_once() -> None:
    await asyncio.sleep(0)


def pool(lines: Any, versions: SourceVersions | None = None) -> ConnectionPool[Any]:
    return ConnectionPool(versions or SourceVersions(), lines)


def run(story: Callable[[Lines], Awaitable[None]]) -> Lines:
    lines = Lines()

    async def whole() -> None:
        await asyncio.wait_for(story(lines), 20)

    asyncio.run(whole())
    return lines


def test_a_connection_is_used_again_by_the_same_client_and_by_no_other() -> None:
    async def story(lines: Lines) -> None:
        made = pool(lines)
        async with made.scoped(called(*ANN)).connection("db") as first:
            pass
        async with made.scoped(called("ann", "two", "later")).connection("db") as again:
            assert again is first
        async with made.scoped(called(*BEN)).connection("db") as bens:
            assert bens.client == "ben"

    assert [line.client for line in run(story).made] == ["ann", "ben"]


def test_r17_after_a_rotation_those_under_way_are_finished_then_closed_and_nobody_else_gets_them() -> None:
    async def story(lines: Lines) -> None:
        versions = SourceVersions()
        made = pool(lines, versions)
        view = made.scoped(called())
        async with view.connection("db") as idle:
            async with view.connection("db") as under_way:
                pass
            await asyncio.sleep(0)
            async with view.connection("db") as under_way_too:
                assert under_way_too is under_way
                versions.bump("credentials")
                async with view.connection("db") as fresh:
                    assert fresh not in (idle, under_way)
                assert (under_way.closes, idle.closes) == (0, 0)
            assert under_way.closes == 1
        assert [line.closes for line in lines.made] == [1, 1, 0]

    run(story)


def test_credentials_that_change_while_it_connects_are_not_those_that_it_is_lent_with() -> None:
    async def story(lines: Lines) -> None:
        versions = SourceVersions()
        made = pool(lines, versions)
        rotations = iter(range(3))

        async def rotate() -> None:
            if next(rotations, None) is not None:
                versions.bump("provider")

        lines.before_connect = rotate
        async with made.scoped(called()).connection("db") as found:
            assert found is lines.made[-1]
        assert [line.closes for line in lines.made] == [1, 1, 1, 0]

    run(story)


def test_credentials_that_never_come_to_rest_connect_nobody() -> None:
    async def story(lines: Lines) -> None:
        versions = SourceVersions()

        async def rotate() -> None:
            versions.bump("credentials")

        lines.before_connect = rotate
        with pytest.raises(Unreachable, match="what it depends on keeps changing"):
            async with pool(lines, versions).scoped(called()).connection("db"):
                pass
        assert [line.closes for line in lines.made] == [1] * lending.MAX_CONNECTED_ANEW

    run(story)


@pytest.mark.parametrize("healthy", [False, "yes", OSError("10.0.0.7")])
def test_one_that_is_not_healthy_is_closed_and_another_made(healthy: Any) -> None:
    async def story(lines: Lines) -> None:
        view = pool(lines).scoped(called())
        async with view.connection("db") as first:
            pass

        async def check() -> None:
            if isinstance(healthy, Exception):
                raise healthy

        first.healthy, lines.before_check = healthy, check
        async with view.connection("db") as second:
            assert second is not first
        assert first.closes == 1

    run(story)


def test_who_leaves_with_an_exception_leaves_nothing_behind() -> None:
    async def story(lines: Lines) -> None:
        view = pool(lines).scoped(called())
        with pytest.raises(ValueError, match="half an answer"):
            async with view.connection("db"):
                raise ValueError("half an answer")
        assert lines.made[0].closes == 1

    run(story)


def test_who_asks_first_is_served_first_and_there_are_never_more_than_there_may_be() -> None:
    order: list[int] = []

    async def story(lines: Lines) -> None:
        view = pool(lines).scoped(called())

        async def use(number: int) -> None:
            async with view.connection("db") as line:
                order.append(number)
                line.users += 1
                assert line.users == 1
                await asyncio.sleep(0.001)
                line.users -= 1

        await asyncio.gather(*(use(number) for number in range(60)))
        assert len(lines.made) <= parts.MAX_CONNECTIONS

    run(story)
    assert order == sorted(order)


def test_one_client_cannot_use_up_another_s() -> None:
    async def story(lines: Lines) -> None:
        made = pool(lines)
        hold = [made.scoped(called(*BEN)).connection("db") for _ in range(parts.MAX_CONNECTIONS)]
        for one in hold:
            await one.__aenter__()
        with pytest.raises(TimeoutError):
            async with made.scoped(called(*BEN)).connection("db", seconds=0.01):
                pass
        async with made.scoped(called(*ANN)).connection("db", seconds=0.01) as anns:
            assert anns.client == "ann"
        for one in hold:
            await one.__aexit__(None, None, None)

    run(story)


def test_r11_shut_down_waits_for_those_that_are_out_and_closes_each_once() -> None:
    async def story(lines: Lines) -> None:
        made = pool(lines)
        view = made.scoped(called())
        async with view.connection("db"):
            async with view.connection("db"):
                pass
            ending = [asyncio.create_task(made.shut_down()) for _ in range(2)]
            await asyncio.sleep(0.02)
            assert not any(one.done() for one in ending)
            assert [line.closes for line in lines.made] == [0, 1]
            with pytest.raises(PermitError, match="the pool is shut down"):
                async with view.connection("db"):
                    pass
        await asyncio.gather(*ending)
        assert [line.closes for line in lines.made] == [1, 1]

    run(story)


def test_shut_down_that_is_cut_off_closes_what_is_out_and_giving_it_back_closes_nothing_twice() -> None:
    async def story(lines: Lines) -> None:
        made = pool(lines)
        async with made.scoped(called()).connection("db") as line:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(made.shut_down(), 0.02)
            assert line.closes == 1
        assert line.closes == 1
        await made.shut_down()

    run(story)


def test_shut_down_while_somebody_connects_leaves_nothing_open() -> None:
    async def story(lines: Lines) -> None:
        made = pool(lines)
        go_on = asyncio.Event()
        lines.before_connect = go_on.wait

        async def use() -> None:
            async with made.scoped(called()).connection("db"):
                pass

        using = asyncio.create_task(use())
        await asyncio.sleep(0.01)
        ending = asyncio.create_task(made.shut_down())
        await asyncio.sleep(0.01)
        assert not ending.done()
        go_on.set()
        with pytest.raises(PermitError, match="the pool is shut down"):
            await using
        await ending
        assert [line.closes for line in lines.made] == [1]

    run(story)


def test_a_call_that_ends_while_it_connects_gets_nothing() -> None:
    async def story(lines: Lines) -> None:
        call = Call()

        async def ends() -> None:
            call.end()

        lines.before_connect = ends
        made = pool(lines)
        with pytest.raises(PermitError, match="the call is over"):
            async with made.scoped(call.caller).connection("db"):
                pass
        await made.shut_down()

    assert [line.closes for line in run(story).made] in ([], [1])


@pytest.mark.parametrize("step", ["before_connect", "before_check", "before_close", "waiting"])
def test_cancelling_at_any_step_leaves_no_place_taken_and_nothing_open(step: str) -> None:
    async def story(lines: Lines) -> None:
        made = pool(lines)
        view = made.scoped(called())
        async with view.connection("db") as first:
            pass
        first.healthy = step != "before_close"
        if step == "before_connect":
            first.healthy = False
        hold = [view.connection("db") for _ in range(parts.MAX_CONNECTIONS if step == "waiting" else 0)]
        for one in hold:
            await one.__aenter__()

        async def use() -> None:
            async with view.connection("db"):
                pass

        if step != "waiting":
            setattr(lines, step, asyncio.Event().wait)
        using = asyncio.create_task(use())
        await asyncio.sleep(0.01)
        using.cancel()
        with suppress(asyncio.CancelledError):
            await using
        assert using.cancelled()
        if step != "waiting":
            setattr(lines, step, _at_once)
        assert made._lending._count == len(made.held())
        for one in hold:
            await one.__aexit__(None, None, None)
        again = [view.connection("db", seconds=1) for _ in range(parts.MAX_CONNECTIONS)]
        for one in again:
            await one.__aenter__()
        for one in again:
            await one.__aexit__(None, None, None)
        await made.shut_down()
        assert {line.closes for line in lines.made} == {1}
        assert made.held() == ()

    run(story)


def test_what_a_server_says_is_not_told() -> None:
    async def story(lines: Lines) -> None:
        async def refuse() -> None:
            raise ConnectionRefusedError("postgres://ann:hunter2@10.0.0.7")

        lines.before_connect = refuse
        with pytest.raises(Unreachable, match=r"^connecting to `db` failed: ConnectionRefusedError$") as told:
            async with pool(lines).scoped(called()).connection("db"):
                pass
        assert told.value.__context__ is None
        assert told.value.__cause__ is None

    run(story)


def test_threads_borrow_what_is_made_for_threads() -> None:
    wires = Wires()
    made = ConnectionPool(SourceVersions(), wires)
    view, users = made.scoped(called()), [0]

    def use() -> None:
        for _ in range(30):
            with view.connection("db") as connection:
                connection.append("in use")
                users[0] = max(users[0], connection.count("in use"))
                time.sleep(0)
                connection.remove("in use")

    async def story() -> None:
        await asyncio.gather(*(asyncio.to_thread(use) for _ in range(6)))
        with pytest.raises(PermitError, match="for threads: write `with`, in a thread"):
            async with view.connection("db"):
                pass
        with pytest.raises(PermitError, match="this would hold up the event loop"), view.connection("db"):
            pass
        await made.shut_down()

    asyncio.run(story())
    assert users == [1]
    assert len(wires.closed) == len(wires.made) <= parts.MAX_CONNECTIONS
    with (
        pytest.raises(PermitError, match="for tasks: write `async with`"),
        pool(Lines()).scoped(called()).connection("db"),
    ):
        pass


def test_a_stay_is_for_one_with() -> None:
    made = pool(Wires())
    borrowed = made.scoped(called()).connection("db")
    with borrowed:
        pass
    borrowed.__exit__(None, None, None)
    assert len(made.held()) == 1
    with pytest.raises(PermitError, match="for one `with`: ask for another"), borrowed:
        pass


def test_a_client_is_connected_to_so_many_places_and_those_that_are_not_used_make_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lending, "MAX_PLACES", 1)
    made = pool(Wires())
    view = made.scoped(called())
    with (
        view.connection("a"),
        pytest.raises(Full, match="there is room for connections to 1 places"),
        view.connection("b"),
    ):
        pass
    with pytest.raises(ValueError, match="left"), view.connection("a"):
        raise ValueError("left")
    with view.connection("b"):
        pass


def test_all_connections_are_bounded_and_for_one_more_the_one_that_rests_longest_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lending, "MAX_OPEN", 2)
    wires, clock = Wires(), Clock()
    made = ConnectionPool(SourceVersions(), wires, clock)
    for client in ("ann", "ben"):
        clock.now += 1
        with made.scoped(called(client)).connection("db"):
            pass
    with made.scoped(called("cleo")).connection("db"):
        assert wires.closed == [["ann", "db"]]
        with made.scoped(called("ben")).connection("db") as again:
            assert again is wires.made[1]
            with pytest.raises(Full, match="there is room for 2 connections, and all are in use"):
                made.scoped(called("ann")).connection("db").__enter__()
    with made.scoped(called("ann")).connection("db") as later:
        assert later[0] == "ann"
    assert len(wires.made) - len(wires.closed) == 2


def test_a_connector_is_for_tasks_or_for_threads() -> None:
    class Mixed(Wires):
        async def close(self, connection: list[str]) -> None:  # type: ignore[override]  # what is refused
            """Never called."""

    with pytest.raises(TypeError, match="all coroutine functions, or none is"):
        pool(Mixed())
