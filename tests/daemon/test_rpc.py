"""JSON-RPC on a Unix socket: its methods, its errors, whose questions are whose."""

import asyncio
import json
import socket
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import World, turn
from zcpolicy.daemon.paths.rpc import MAX_CONNECTIONS, Rpc
from zcpolicy.daemon.wire import MAX_REQUEST_BYTES
from zcpolicy.loop.scripted import Step, calls

POLICY = "agent worker { allow file_read; allow shell with approval }\nagent free { allow file_read }"
LIST = calls(("shell", {"command": "ls"}))


class Peer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, line: str | bytes) -> None:
        self.writer.write((line if isinstance(line, bytes) else line.encode()) + b"\n")
        await self.writer.drain()

    async def call(self, method: str, name: Any = 1, **params: Any) -> None:
        await self.send(json.dumps({"jsonrpc": "2.0", "id": name, "method": method, "params": params}))

    async def next(self) -> Any:
        line = await self.reader.readline()
        return json.loads(line) if line else None

    async def ask(self, method: str, **params: Any) -> Any:
        await self.call(method, **params)
        return await self.next()


def run(story: Callable[[World, Callable[[], Awaitable[Peer]]], Awaitable[None]], folder: Path, *steps: Step) -> World:
    world = World(POLICY, folder)
    world.script("worker", *steps)
    path = str(folder / "socket")

    async def served() -> None:
        peers: list[Peer] = []

        async def connect() -> Peer:
            peers.append(Peer(*await asyncio.open_unix_connection(path, limit=2 * MAX_REQUEST_BYTES)))
            return peers[-1]

        async with await Rpc(world.host, {"worker"}).serve(path):
            try:
                await story(world, connect)
            finally:
                for peer in peers:
                    peer.writer.close()
                    with suppress(ConnectionError):
                        await peer.writer.wait_closed()

    asyncio.run(asyncio.wait_for(served(), 30))
    assert not Path(path).exists()
    return world


Connect = Callable[[], Awaitable[Peer]]

ERRORS: dict[str, tuple[str | bytes, int]] = {
    "no JSON": ("{", -32700),
    "no text": (b"\xff\xfe", -32700),
    "a name twice": ('{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "tools"}', -32700),
    "too deep": ("[" * 200_000, -32700),
    "no number": ('{"jsonrpc": "2.0", "id": NaN, "method": "tools"}', -32700),
    "no object": ("[1]", -32600),
    "a batch": ('[{"jsonrpc": "2.0", "id": 1, "method": "tools"}]', -32600),
    "no version": ('{"id": 1, "method": "tools"}', -32600),
    "another version": ('{"jsonrpc": "1.0", "id": 1, "method": "tools"}', -32600),
    "no method": ('{"jsonrpc": "2.0", "id": 1}', -32600),
    "an id that is none": ('{"jsonrpc": "2.0", "id": [1], "method": "tools"}', -32600),
    "an id that is a boolean": ('{"jsonrpc": "2.0", "id": true, "method": "tools"}', -32600),
    "unknown method": ('{"jsonrpc": "2.0", "id": 1, "method": "shutdown"}', -32601),
    "parameters in a row": ('{"jsonrpc": "2.0", "id": 1, "method": "tools", "params": ["worker"]}', -32602),
    "no agent": ('{"jsonrpc": "2.0", "id": 1, "method": "tools", "params": {}}', -32602),
    "an agent that is none": ('{"jsonrpc": "2.0", "id": 1, "method": "tools", "params": {"agent": 7}}', -32602),
    "a misspelt member": ('{"jsonrpc": "2.0", "id": 1, "method": "turn", "params": {"agent": "worker", "txt": "x"}}', -32602),
    "a lone surrogate": ('{"jsonrpc": "2.0", "id": 1, "method": "turn", "params": {"agent": "worker", "text": "\\ud800"}}', -32602),
    "somebody else's identity": ('{"jsonrpc": "2.0", "id": 1, "method": "turn", "params": {"agent": "worker", "text": "x", "client": "root"}}', -32602),
    "an agent that is not served": ('{"jsonrpc": "2.0", "id": 1, "method": "turn", "params": {"agent": "boss", "text": "x"}}', -32000),
    "a question that is not open": ('{"jsonrpc": "2.0", "id": 1, "method": "approve", "params": {"question": "x", "answer": "yes"}}', -32602),
    "an answer that is none": ('{"jsonrpc": "2.0", "id": 1, "method": "approve", "params": {"question": "x", "answer": "sure"}}', -32602),
    "a flag that is none": ('{"jsonrpc": "2.0", "id": 1, "method": "turn", "params": {"agent": "worker", "text": "x", "resume": 1}}', -32602),
    "no turn to go on with": ('{"jsonrpc": "2.0", "id": 1, "method": "turn", "params": {"agent": "worker", "resume": true}}', -32000),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_what_is_malformed_is_answered_with_an_error(case: str, tmp_path: Path) -> None:
    line, code = ERRORS[case]

    async def story(world: World, connect: Connect) -> None:
        peer = await connect()
        await peer.send(line)
        answer = await peer.next()
        assert answer["error"]["code"] == code, answer
        assert set(answer) == {"jsonrpc", "id", "error"}
        assert (await peer.ask("turn", agent="worker", text="still there"))["result"]["text"] == "yes"  # it goes on

    run(story, tmp_path, "yes")


def test_a_line_that_is_too_long_ends_the_connection(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        peer = await connect()
        await peer.send("x" * (MAX_REQUEST_BYTES + 1))
        assert (await peer.next())["error"]["code"] == -32600
        assert await peer.next() is None

    run(story, tmp_path)


def test_an_error_is_told_under_the_id_of_its_request(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        peer = await connect()
        for method, params in (
            ("shutdown", {}),
            ("tools", ["worker"]),
            ("tools", {}),
            ("turn", {"agent": "boss", "text": "x"}),
        ):
            await peer.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
            assert (await peer.next())["id"] == method
        await peer.send('{"jsonrpc": "2.0", "id": "x"}')
        assert (await peer.next())["id"] is None

    run(story, tmp_path)


def test_a_notification_gets_no_answer(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        peer = await connect()
        await peer.send('{"jsonrpc": "2.0", "method": "shutdown"}')
        await peer.send('{"jsonrpc": "2.0", "method": "tools", "params": {"agent": "worker"}}')
        assert (await peer.ask("cancel"))["result"] == {"cancelled": False}

    run(story, tmp_path)


def test_the_tools_are_listed_as_a_turn_would_show_them(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        peer = await connect()
        listed = await peer.ask("tools", agent="worker")
        assert [one["name"] for one in listed["result"]["tools"]] == ["file_read", "shell"]
        assert listed["result"]["servers"] == []

    run(story, tmp_path)


def test_the_peer_is_asked_and_answers(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        peer = await connect()
        await peer.call("turn", name="t", agent="worker", text="look around")
        question = await peer.next()
        assert question["method"] == "question"
        assert "id" not in question
        number = question["params"]["question"]
        assert (await peer.ask("approve", question=number, answer="yes"))["result"] == {"taken": True}
        assert (await peer.next())["result"]["text"] == "done"
        assert world.ran == [("worker", "shell")]
        assert (await peer.ask("approve", question=number, answer="yes"))["error"]["code"] == -32602  # once

    run(story, tmp_path, LIST, "done")


def test_36_another_connection_cannot_answer_its_question(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        peer, other = await connect(), await connect()
        await peer.call("turn", agent="worker", text="look around")
        number = (await peer.next())["params"]["question"]
        assert "error" in await other.ask("approve", question=number, answer="yes")
        await peer.ask("approve", question=number, answer="no")
        assert (await peer.next())["result"]["status"] == "done"
        assert world.ran == []

    run(story, tmp_path, LIST, "done")


def test_connections_have_sessions_of_their_own_and_the_kernel_says_whose_they_are(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        for text in ("one", "two"):
            peer = await connect()
            await peer.ask("turn", agent="worker", text=text)
        assert [len(one.messages) for one in world.models["worker"].requests] == [1, 1]
        who = {(one.identity.client, one.identity.session) for one in world.events}
        assert len({session for _, session in who}) == 2
        assert len({client for client, _ in who}) == 1  # one user: a new connection gets no fresh budgets

    run(story, tmp_path, "first", "second")


def test_each_agent_has_a_session_of_its_own(tmp_path: Path) -> None:
    world = World(POLICY, tmp_path)
    world.script("worker", "first", "third")
    world.script("free", "second")

    async def story() -> None:
        async with await Rpc(world.host, {"worker", "free"}).serve(str(tmp_path / "socket")):
            peer = Peer(*await asyncio.open_unix_connection(str(tmp_path / "socket")))
            for agent in ("worker", "free", "worker"):
                await peer.ask("turn", agent=agent, text="my secret is 7")
            peer.writer.close()
            await peer.writer.wait_closed()

    asyncio.run(asyncio.wait_for(story(), 20))
    assert [len(one.messages) for one in world.models["worker"].requests] == [1, 3]
    assert [len(one.messages) for one in world.models["free"].requests] == [1]
    assert world.host.sessions._seats == {}


def test_one_turn_at_a_time_and_it_can_be_cancelled(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        peer = await connect()
        await peer.call("turn", name=1, agent="worker", text="look around")
        assert (await peer.next())["method"] == "question"
        await peer.call("turn", name=2, agent="worker", text="and this")
        assert (await peer.next())["error"]["code"] == -32001
        await peer.call("cancel", name=3)
        told = {one["id"]: one for one in (await peer.next(), await peer.next())}
        assert told[3]["result"] == {"cancelled": True}
        assert told[1]["error"]["code"] == -32002
        assert world.ran == []
        world.script("worker", "here again")
        assert (await peer.ask("turn", agent="worker", text="are you there"))["result"]["text"] == "here again"

    run(story, tmp_path, LIST, "done")


def test_a_turn_that_is_cancelled_in_the_same_breath_is_answered(tmp_path: Path) -> None:
    async def story(_world: World, connect: Connect) -> None:
        peer = await connect()
        await peer.call("turn", name=1, agent="worker", text="look around")
        await peer.call("cancel", name=2)
        told = {one["id"]: one for one in (await peer.next(), await peer.next())}
        assert told[2]["result"] == {"cancelled": True}
        assert told[1]["error"]["code"] == -32002

    run(story, tmp_path, LIST, "done")


def test_when_the_peer_goes_its_turn_ends(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        peer = await connect()
        await peer.call("turn", agent="worker", text="look around")
        await peer.next()
        peer.writer.close()
        await asyncio.sleep(0.1)
        assert world.ran == []
        assert len(world.models["worker"].requests) == 1

    run(story, tmp_path, LIST, "done")


def test_a_fault_of_the_host_tells_nothing_of_its_insides(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        def broken(_agent: str) -> Any:
            raise RuntimeError("the key is under the mat")

        world.host.models = broken
        peer = await connect()
        answer = await peer.ask("turn", agent="worker", text="x")
        assert answer["error"] == {"code": -32603, "message": "the host failed"}

    run(story, tmp_path)


def test_only_this_user_can_open_the_socket_and_not_too_often(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == 0o600
        peers = [await connect() for _ in range(MAX_CONNECTIONS)]
        await peers[-1].ask("cancel")
        assert await (await connect()).next() is None

    run(story, tmp_path)


def test_a_place_that_is_taken_is_not_taken_over(tmp_path: Path) -> None:
    async def story(world: World, connect: Connect) -> None:
        with pytest.raises(OSError, match="in use"):
            await Rpc(world.host, {"worker"}).serve(str(tmp_path / "socket"))

    run(story, tmp_path)


def test_36_where_the_kernel_does_not_say_who_it_is_a_new_connection_has_no_fresh_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        world = World(
            "agent worker { allow shell; limit 1 calls to shell per day for each client }\nagent free { allow shell }",
            tmp_path,
        )
        for _ in range(2):
            world.script("worker", calls(("shell", {"command": "ls"})), "done")
            await turn("rpc", world)
        assert world.ran == [("worker", "shell")]

    monkeypatch.delattr(socket, "SO_PEERCRED")
    asyncio.run(story())
