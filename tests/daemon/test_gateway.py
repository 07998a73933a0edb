"""HTTP: tokens, sessions, listings, bounds; the last test speaks to a real server on the loopback."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.daemon.world import World
from zcpolicy.approvals.question import Approve, Approvers, Later, Question
from zcpolicy.daemon import sessions
from zcpolicy.daemon.listening import served
from zcpolicy.daemon.paths.gateway import application
from zcpolicy.daemon.wire import MAX_REQUEST_BYTES
from zcpolicy.loop.scripted import Step, calls

POLICY = """
bundle one_of_forge { server forge only get_issue }
agent worker { connect one_of_forge; allow file_read, forge/get_issue; allow shell with approval; approval { route "ops" } }
agent free { allow file_read }
"""
ANN = {"authorization": "Bearer of ann"}
BEN = {"authorization": "Bearer of ben"}
LIST = calls(("shell", {"command": "ls"}))


def run(
    story: Callable[[World, httpx.AsyncClient], Awaitable[None]],
    folder: Path,
    *steps: Step,
    approvers: Approvers | None = None,
    servers: bool = False,
) -> World:
    world = World(POLICY, folder, approvers={"gateway": approvers or Approvers()}, servers=servers)
    world.script("worker", *steps)

    async def served() -> None:
        app = application(world.host, {"worker"}, ["of ann", "of ben"])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host") as client:
            await story(world, client)

    asyncio.run(asyncio.wait_for(served(), 30))
    return world


async def say(client: httpx.AsyncClient, text: str, headers: dict[str, str] = ANN, **more: Any) -> httpx.Response:
    return await client.post("/turn", headers=headers, json={"agent": "worker", "text": text} | more)


def test_a_session_goes_on_when_its_client_names_it(tmp_path: Path) -> None:
    async def story(world: World, client: httpx.AsyncClient) -> None:
        first = (await say(client, "one")).json()
        assert {**first, "session": ""} == {"status": "done", "text": "first", "reason": "answered", "session": ""}
        assert (await say(client, "two", session=first["session"])).json()["text"] == "second"
        assert [one.text for one in world.models["worker"].requests[-1].messages] == ["one", "first", "two"]
        await say(client, "three")
        assert len(world.models["worker"].requests[-1].messages) == 1

    run(story, tmp_path, "first", "second", "third")


def test_36_nobody_else_can_name_it(tmp_path: Path) -> None:
    async def story(world: World, client: httpx.AsyncClient) -> None:
        session = (await say(client, "my secret is 7")).json()["session"]
        stolen = await say(client, "what is it", BEN, session=session)
        assert (stolen.status_code, stolen.json()) == (404, {"error": "there is no such session"})
        assert len(world.models["worker"].requests) == 1

    run(story, tmp_path, "first", "second")


WRONG: dict[str, tuple[dict[str, Any], int]] = {
    "no token": ({"json": {"agent": "worker", "text": "x"}, "headers": {}}, 401),
    "another token": ({"json": {"agent": "worker", "text": "x"}, "headers": {"authorization": "Bearer of zoe"}}, 401),
    "another scheme": ({"json": {"agent": "worker", "text": "x"}, "headers": {"authorization": "Basic of ann"}}, 401),
    "who it is by a header": ({"json": {"agent": "worker", "text": "x"}, "headers": {"x-forwarded-user": "ann"}}, 401),
    "no JSON": ({"content": b"{"}, 400),
    "no object": ({"content": b"[]"}, 400),
    "no text": ({"json": {"agent": "worker"}}, 400),
    "a misspelt member": ({"json": {"agent": "worker", "text": "x", "sesion": "y"}}, 400),
    "a flag that is none": ({"json": {"agent": "worker", "text": "x", "resume": "true"}}, 400),
    "an agent that is not served": ({"json": {"agent": "boss", "text": "x"}}, 403),
    "an agent that is not there": ({"json": {"agent": "nobody", "text": "x"}}, 403),
    "a session that is not there": ({"json": {"agent": "worker", "text": "x", "session": "y"}}, 404),
    "nothing to go on with": ({"json": {"agent": "worker", "resume": True}}, 403),
    "too much": ({"content": b"x" * (MAX_REQUEST_BYTES + 1)}, 413),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_has_a_status(case: str, tmp_path: Path) -> None:
    status = WRONG[case][1]
    request: Any = {"headers": ANN, **WRONG[case][0]}

    async def story(world: World, client: httpx.AsyncClient) -> None:
        answer = await client.post("/turn", **request)
        assert answer.status_code == status
        assert set(answer.json()) == {"error"}
        assert world.models["worker"].requests == []

    run(story, tmp_path, "never said")


def test_requests_that_are_refused_leave_no_session_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World, client: httpx.AsyncClient) -> None:
        monkeypatch.setattr(sessions, "MAX_SEATS", 1)
        for agent in ("nobody", "boss", "worker"):
            assert (await say(client, "x", agent=agent, resume=agent == "worker")).status_code == 403
        world.host.models = {}
        assert (await say(client, "x")).status_code == 403
        world.host.models = world.access
        assert (await say(client, "x")).json()["text"] == "done"

    run(story, tmp_path, "done")


def test_a_client_that_begins_ever_new_sessions_loses_its_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(_world: World, client: httpx.AsyncClient) -> None:
        other = (await say(client, "x", BEN)).json()["session"]
        monkeypatch.setattr(sessions, "MAX_SEATS_OF_CLIENT", 2)
        first, second, third = [(await say(client, "x")).json()["session"] for _ in range(3)]
        answers = [await say(client, "x", session=one) for one in (first, second, third)]
        assert [one.status_code for one in answers] == [404, 200, 200]  # and no fresh session in its place
        assert (await say(client, "x", BEN, session=other)).status_code == 200

    run(story, tmp_path, *["done"] * 7)


def test_a_fault_of_the_host_tells_nothing_of_its_insides(tmp_path: Path) -> None:
    async def story(world: World, client: httpx.AsyncClient) -> None:
        def broken(_agent: str) -> Any:
            raise RuntimeError("the key is under the mat")

        world.host.models = broken
        answer = await say(client, "x")
        assert (answer.status_code, answer.json()) == (500, {"error": "the host failed"})

    run(story, tmp_path)


def test_a_listing_connects_nothing_and_touches_no_hardware(tmp_path: Path) -> None:
    async def story(world: World, client: httpx.AsyncClient) -> None:
        answer = await client.get("/tools", params={"agent": "worker"}, headers=ANN)
        assert [one["name"] for one in answer.json()["tools"]] == ["file_read", "shell"]
        assert answer.json()["servers"] == ["forge"]  # whose tools only a turn would find
        assert (await client.get("/tools", params={"agent": "boss"}, headers=ANN)).status_code == 403
        assert (await client.get("/tools", params={"agent": "worker"})).status_code == 401

    run(story, tmp_path, servers=True)
    assert not (tmp_path / "forge.log").exists()


def test_29_nobody_is_there_to_be_asked(tmp_path: Path) -> None:
    async def story(world: World, client: httpx.AsyncClient) -> None:
        assert (await say(client, "look around")).json()["text"] == "done"
        assert world.ran == []
        assert world.of_kind("approval")

    run(story, tmp_path, LIST, "done")


def test_a_route_answers(tmp_path: Path) -> None:
    async def ops(_question: Question) -> Approve:
        return Approve(by="ops")

    async def story(world: World, client: httpx.AsyncClient) -> None:
        await say(client, "look around")
        assert world.ran == [("worker", "shell")]

    run(story, tmp_path, LIST, "done", approvers=Approvers(routes={"ops": ops}))


def test_7_a_turn_that_waits_goes_on_when_its_answer_has_come(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def ops(question: Question) -> Later:
        asked.append(question)
        return Later()

    async def story(world: World, client: httpx.AsyncClient) -> None:
        waits = (await say(client, "look around")).json()
        assert waits["status"] == "paused"
        session = waits["session"]
        still = await client.post("/turn", headers=ANN, json={"agent": "worker", "session": session, "resume": True})
        assert still.json()["status"] == "paused"
        assert world.ran == []
        seat = world.host.sessions.seat(session)
        assert seat is not None
        run = world.host.resolver.resolve("worker", session=seat.session, surface="gateway")
        await run.approvals.answer(asked[-1], Approve(by="ops"))
        done = await client.post("/turn", headers=ANN, json={"agent": "worker", "session": session, "resume": True})
        assert done.json()["text"] == "done"
        assert world.ran == [("worker", "shell")]

    run(story, tmp_path, LIST, "done", approvers=Approvers(routes={"ops": ops}))


def test_a_session_is_one_of_one_agent(tmp_path: Path) -> None:
    async def story(world: World, _client: httpx.AsyncClient) -> None:
        world.script("free", "never")
        app = application(world.host, {"worker", "free"}, ["of ann"])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host") as client:
            session = (await say(client, "my secret is 7")).json()["session"]
            other = await say(client, "what is it", agent="free", session=session)
        assert (other.status_code, other.json()) == (403, {"error": "this session is one of agent `worker`"})
        assert world.models["free"].requests == []

    run(story, tmp_path, "first")


def test_a_turn_without_an_answer_does_not_give_an_earlier_one(tmp_path: Path) -> None:
    async def story(world: World, client: httpx.AsyncClient) -> None:
        session = (await say(client, "one")).json()["session"]
        failed = (await say(client, "two", session=session)).json()
        assert (failed["status"], failed["text"], failed["reason"]) == ("failed", "", "model-failed")

    run(story, tmp_path, "first")


def test_an_empty_token_lets_nobody_in(tmp_path: Path) -> None:
    world = World(POLICY, tmp_path)
    with pytest.raises(ValueError, match="an empty token"):
        application(world.host, {"worker"}, ["of ann", " "])


def test_a_real_server_on_the_loopback(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(POLICY, tmp_path, servers=True)
        world.script("worker", calls(("forge__get_issue", {"number": 7})), "done")
        async with (
            served(application(world.host, {"worker"}, ["of ann"])) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
        ):
            assert (await client.get("/healthz")).json() == {"generation": 1}
            assert (await say(client, "read issue 7")).json()["text"] == "done"
            assert world.told("worker") == ["issue 7: the sky is blue"]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    asyncio.run(asyncio.wait_for(story(), 30))
