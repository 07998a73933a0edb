"""What asks somebody, answered by operators over HTTP, on the daemon as it is."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from threading import Thread
from time import monotonic
from typing import Any

import httpx
import pytest

from tests.servers.redis_server import RedisServer
from zcpolicy.approvals.asking import acting
from zcpolicy.daemon import approvals
from zcpolicy.daemon.serving import Daemon
from zcpolicy.ledgers.redis import REST_SECONDS

from .desk import Process, lay, serving, token

POLICY = """zcpolicy 1
tool memory_store(text: string, scope?: string)                   risk low
tool memory_recall(query: string)                                 risk read
tool delegate(agent: string, task: string, independent?: boolean) risk low
tool pipeline(steps: list<object>) runs tools                     risk low

agent helper {{
    autonomy full
    ask memory_store because "memories stay"
    allow memory_store, memory_recall, delegate, pipeline
    memory read own write own
    delegate to aide
    runtime {{ parallel_tools on }}
    approval {{ {approval} }}
}}
agent aide {{ autonomy full; allow memory_store; ask memory_store; memory read own write own; approval {{ route "security" }} }}
"""
SECURITY = 'route "security", timeout 30s, remember exact for 1h'
STORE = {"calls": [{"tool": "memory_store", "arguments": {"text": "the sky\x1b[31m is blue"}}]}
TURN = {"agent": "helper", "text": "go"}
ROUTES = '[approvals]\nroutes = ["security"]\npause_after = "{}"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "desk"


def lay_out(
    folder: Path, *, approval: str = SECURITY, pause: str = "10s", steps: list[Any] | None = None, more: str = ""
) -> Path:
    """A desk whose helper asks before it remembers something."""
    file = lay(folder, steps=[STORE, "kept"] if steps is None else steps, more=more or ROUTES.format(pause))
    (folder / "team.zcpolicy").write_text(POLICY.format(approval=approval))
    return file


@dataclass(frozen=True)
class Desk:
    """A daemon, a client that has turns, an operator who answers."""

    daemon: Daemon
    client: httpx.AsyncClient
    operator: dict[str, str]
    asker: dict[str, str]

    async def turn(self, **more: Any) -> dict[str, Any]:
        """A turn of the client, until it is done or pauses."""
        found: dict[str, Any] = (await self.client.post("/turn", json={**TURN, **more}, headers=self.asker)).json()
        return found

    async def listed(self, **asked: Any) -> dict[str, Any]:
        """What waits."""
        answer = await self.client.get("/approvals", params=asked, headers=self.operator)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def asked(self) -> dict[str, Any]:
        """The one question that waits, as soon as one does."""
        found: dict[str, Any] = (await self.listed(wait=10))["questions"][0]
        return found

    async def answer(self, name: str, answer: str = "yes", **more: Any) -> tuple[int, dict[str, Any]]:
        """What came of an operator's answer."""
        given = await self.client.post(f"/approvals/{name}", json={"answer": answer, **more}, headers=self.operator)
        return given.status_code, given.json()

    async def until(self, held: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """What waits, as soon as it is as it should be."""
        found = await self.listed()
        async with asyncio.timeout(10):
            while not held(found["questions"]):
                found = await self.listed(wait=5, since=found["revision"])
        questions: list[dict[str, Any]] = found["questions"]
        return questions

    async def paused(self) -> dict[str, Any]:
        """The one question, once its turn pauses."""
        return (await self.until(lambda found: [one["paused"] for one in found] == [True]))[0]


@asynccontextmanager
async def at(file: Path) -> AsyncGenerator[Desk]:
    asker, operator = token(file, "ann"), token(file, "olga", "operator")
    async with serving(file) as (daemon, client):
        yield Desk(daemon, client, operator, asker)


# --- a turn that waits -------------------------------------------------------------------------------------------------


def test_a_turn_waits_for_an_operator_and_goes_on(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder)) as desk:
            turn = asyncio.create_task(desk.turn())
            question = await desk.asked()
            assert question["text"].startswith(
                'Allow memory_store(text: "the sky\\u001b[31m is blue") for agent helper?'
            )
            assert json.loads(question["arguments"]) == {"text": "the sky\x1b[31m is blue"}
            assert question["scopes"] == ["once", "exact"]
            assert question["because"] == ["memories stay"]
            assert question["rules"][0].endswith("team.zcpolicy:9")
            assert (question["route"], question["surface"], question["paused"]) == ("security", "gateway", False)
            assert 0 < question["due"] <= 30
            assert "key" not in question
            assert await desk.answer(question["id"]) == (
                200,
                {"id": question["id"], "answer": "yes", "by": "olga", "recorded": True, "scope": "once"},
            )
            assert (await turn)["text"] == "kept"
            assert (await desk.listed())["questions"] == []
            said = [line["data"] for line in lines(folder) if line["kind"] == "approval"]
            assert [(one["outcome"], one.get("by")) for one in said] == [
                ("asked", None),
                ("yes", "olga"),
            ]

    asyncio.run(story())


def lines(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for part in sorted((folder / "var/log").glob("decisions-*.jsonl"))
        for line in part.read_text().splitlines()
    ]


def test_a_no_is_told_to_the_agent_with_its_reason(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder)) as desk:
            turn = asyncio.create_task(desk.turn())
            question = await desk.asked()
            assert (await desk.answer(question["id"], "no", note="not about weather"))[0] == 200
            answer = await turn
            seat = desk.daemon.host.sessions.seat(answer["session"])
            assert seat is not None
            assert "They say: not about weather" in next(one.text for one in seat.messages if one.role == "tool")
            assert (await desk.answer(question["id"]))[0] == 409

    asyncio.run(story())


def test_a_yes_beyond_the_call_holds_for_the_next_one(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder)) as desk:
            turn = asyncio.create_task(desk.turn())
            question = await desk.asked()
            assert (await desk.answer(question["id"], scope="exact"))[1]["scope"] == "exact"
            session = (await turn)["session"]
            assert (await desk.turn(session=session))["text"] == "kept"
            assert len(desk.daemon.questions) == 0

    asyncio.run(story())


def test_nobody_in_time_is_a_no(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder, approval='route "security", timeout 1s')) as desk:
            turn = asyncio.create_task(desk.turn())
            question = await desk.asked()
            assert (await turn)["status"] == "done"
            assert (await desk.answer(question["id"]))[0] == 410
            assert any(line["data"].get("reason") == "no-approver" for line in lines(folder))

    asyncio.run(story())


# --- a turn that pauses ------------------------------------------------------------------------------------------------


def test_a_turn_pauses_and_is_taken_up_once_it_is_answered(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder, pause="0s")) as desk:
            first = await desk.turn()
            assert (first["status"], first["reason"]) == ("paused", "asked")
            question = await desk.paused()
            again = await desk.turn(resume=True, session=first["session"])
            assert again["status"] == "paused"
            assert [one["id"] for one in (await desk.listed())["questions"]] == [question["id"]]
            assert (await desk.answer(question["id"]))[0] == 200
            assert (await desk.turn(resume=True, session=first["session"]))["text"] == "kept"
            assert (await desk.answer(question["id"]))[0] == 409

    asyncio.run(story())


def test_a_no_to_a_turn_that_pauses(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder, pause="0s")) as desk:
            first = await desk.turn()
            question = await desk.paused()
            assert (await desk.answer(question["id"], "no"))[0] == 200
            assert (await desk.turn(resume=True, session=first["session"]))["status"] == "done"
            assert [line["data"]["reason"] for line in lines(folder) if line["data"].get("phase") == "refused"] == [
                "rejected"
            ]

    asyncio.run(story())


def test_a_turn_that_is_given_up_asks_nobody_any_more(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder, pause="0s", steps=[STORE, STORE, "kept"])) as desk:
            first = await desk.turn()
            old = await desk.paused()
            second = await desk.turn(session=first["session"])  # something else is said
            assert second["status"] == "paused"
            new = (await desk.listed())["questions"]
            assert len(new) == 1
            assert new[0]["id"] != old["id"]
            assert (await desk.answer(old["id"]))[0] == 410

    asyncio.run(story())


def test_the_time_of_the_policy_holds_for_a_turn_that_pauses(folder: Path) -> None:
    async def story() -> None:
        approval = 'route "security", timeout 1s'
        async with at(lay_out(folder, pause="0s", approval=approval)) as desk:
            await desk.turn()
            question = await desk.paused()
            assert 0 < question["due"] <= 1
            await asyncio.sleep(1.1)
            assert (await desk.answer(question["id"]))[0] == 410

    asyncio.run(story())


def test_a_reload_that_changed_the_rules_withdraws_the_question(folder: Path) -> None:
    async def story() -> None:
        file = lay_out(folder, pause="0s")
        async with at(file) as desk:
            first = await desk.turn()
            old = await desk.paused()
            policy = (folder / "team.zcpolicy").read_text()
            (folder / "team.zcpolicy").write_text(
                policy + "\nagent other { autonomy supervised; allow memory_recall }\n"
            )
            assert (await desk.client.post("/reload", headers=desk.operator, json={})).json()["new"] is True
            assert [one["id"] for one in (await desk.listed())["questions"]] == [old["id"]]  # the same rules ask
            (folder / "team.zcpolicy").write_text(
                policy.replace("ask memory_store because", "ask memory_store, memory_recall because")
            )
            assert (await desk.client.post("/reload", headers=desk.operator, json={})).json()["new"] is True
            assert (await desk.answer(old["id"]))[0] == 410
            assert (await desk.turn(resume=True, session=first["session"]))["status"] == "paused"
            new = await desk.paused()
            assert new["id"] != old["id"]
            assert (await desk.answer(new["id"]))[0] == 200
            assert (await desk.turn(resume=True, session=first["session"]))["text"] == "kept"

    asyncio.run(story())


def test_a_yes_on_record_does_not_outlive_the_rules_that_asked(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder, pause="0s")) as desk:
            first = await desk.turn()
            old = await desk.paused()
            assert (await desk.answer(old["id"], scope="exact"))[0] == 200
            policy = (folder / "team.zcpolicy").read_text()
            (folder / "team.zcpolicy").write_text(
                policy.replace("ask memory_store because", "ask memory_store, memory_recall because")
            )
            await desk.client.post("/reload", headers=desk.operator, json={})
            assert (await desk.turn(resume=True, session=first["session"]))["status"] == "paused"
            assert (await desk.paused())["id"] != old["id"]

    asyncio.run(story())


def test_a_yes_is_worth_nothing_to_a_turn_that_waits_while_the_rules_change(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder)) as desk:
            turn = asyncio.create_task(desk.turn())
            old = await desk.asked()
            policy = (folder / "team.zcpolicy").read_text()
            (folder / "team.zcpolicy").write_text(
                policy.replace("ask memory_store because", "ask memory_store, memory_recall because")
            )
            await desk.client.post("/reload", headers=desk.operator, json={})
            assert (await desk.answer(old["id"]))[0] == 200
            new = await desk.asked()
            assert new["id"] != old["id"]
            assert not turn.done()
            assert (await desk.answer(new["id"], "no"))[0] == 200
            await turn
            assert not [one for one in lines(folder) if one["data"].get("phase") == "started" and one["kind"] == "call"]

    asyncio.run(story())


def test_an_answer_while_calls_of_the_turn_are_under_way_is_kept(folder: Path) -> None:
    """Two calls at once: a delegation that waits for its own question, and one that pauses the turn."""
    steps = [
        {"calls": [{"tool": "delegate", "arguments": {"agent": "aide", "task": "store"}}, STORE["calls"][0]]},
        "both",
    ]
    file = lay_out(folder, pause="0s", steps=steps)
    (folder / "aide.json").write_text(json.dumps({"steps": [STORE, "aide kept"], "repeat": True}))

    async def story() -> None:
        async with at(file) as desk:
            turn = asyncio.create_task(desk.turn())
            both = await desk.until(lambda found: len(found) == 2)
            own, below = sorted(both, key=lambda one: one["agent"] == "aide")
            assert (own["paused"], below["paused"]) == (True, False)  # nobody takes up a child's turn
            status, told = await desk.answer(own["id"])
            assert (status, told["recorded"]) == (202, False)
            assert (await desk.answer(own["id"]))[0] == 409
            assert [one["answered"] for one in (await desk.listed())["questions"]].count(True) == 1
            assert (await desk.answer(below["id"]))[0] == 200
            first = await turn
            assert first["status"] == "paused"
            await desk.until(lambda found: not found)
            assert (await desk.turn(resume=True, session=first["session"]))["text"] == "both"

    asyncio.run(story())


def test_an_answer_while_a_run_below_the_paused_turn_is_at_work_is_kept(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder, pause="0s")) as desk:
            first = await desk.turn()
            question = await desk.paused()
            seat = desk.daemon.host.sessions.seat(first["session"])
            assert seat is not None
            run = desk.daemon.host.resolver.resolve("helper", session=seat.session)
            with acting(run):  # as of a call of a run that was left for later
                assert (await desk.answer(question["id"]))[0] == 202
                assert (await desk.turn(resume=True, session=first["session"]))["status"] == "paused"
            await desk.until(lambda found: not found)
            assert (await desk.turn(resume=True, session=first["session"]))["text"] == "kept"

    asyncio.run(story())


def test_over_the_socket_a_turn_pauses_as_well(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder, pause="0s")) as desk:
            reader, writer = await asyncio.open_unix_connection(desk.daemon.addresses["rpc"])

            async def asked(**params: Any) -> dict[str, Any]:
                line = json.dumps(
                    {"jsonrpc": "2.0", "id": 1, "method": "turn", "params": {"agent": "helper", **params}}
                )
                writer.write(f"{line}\n".encode())
                found: dict[str, Any] = json.loads(await reader.readline())["result"]
                return found

            assert (await asked(text="go"))["status"] == "paused"
            question = await desk.paused()
            assert question["surface"] == "rpc"
            assert (await desk.answer(question["id"]))[0] == 200
            assert (await asked(resume=True))["text"] == "kept"
            assert (await asked(text="go"))["status"] == "paused"
            writer.close()
            await desk.until(lambda found: True)
            async with asyncio.timeout(10):
                while len(desk.daemon.host.sessions):  # noqa: ASYNC110 - sessions tell nobody that they end
                    await asyncio.sleep(0.02)
            assert (await desk.listed())["questions"] == []  # its session is gone

    asyncio.run(story())


def test_daemons_that_share_a_ledger_answer_their_own_questions(tmp_path: Path, redis_server: RedisServer) -> None:
    async def story() -> None:
        files = [lay_out(tmp_path / name, pause="0s") for name in ("one", "two")]
        for file in files:
            file.write_text(
                file.read_text().replace('folder = "var"', f'folder = "var"\nledger = "{redis_server.url}"')
            )
        async with at(files[0]) as one, at(files[1]) as two:
            first = await one.turn()
            question = await one.paused()
            status, told = await two.answer(question["id"])
            assert (status, told["error"]) == (
                404,
                "there is no such question here: it is answered at the daemon that asks it",
            )
            assert (await one.answer(question["id"]))[0] == 200
            assert (await one.turn(resume=True, session=first["session"]))["text"] == "kept"

    asyncio.run(story())


def test_an_answer_that_the_ledger_cannot_take_can_be_given_again(folder: Path, redis_server: RedisServer) -> None:
    async def story() -> None:
        file = lay_out(folder, pause="0s")
        file.write_text(file.read_text().replace('folder = "var"', f'folder = "var"\nledger = "{redis_server.url}"'))
        async with at(file) as desk:
            session = (await desk.turn())["session"]
            question = await desk.paused()
            redis_server.kill()
            assert (await desk.answer(question["id"]))[0] == 503
            assert [one["answered"] for one in (await desk.listed())["questions"]] == [False]
            redis_server.start()
            assert (await desk.answer(question["id"]))[0] == 200
            assert (await desk.turn(resume=True, session=session))["text"] == "kept"

    asyncio.run(story())


def test_calls_that_a_call_leads_to_wait_since_they_cannot_pause(folder: Path) -> None:
    inner = {"tool": "memory_store", "arguments": {"text": "one"}}
    steps = [{"calls": [{"tool": "pipeline", "arguments": {"steps": [inner]}}]}, "piped"]

    async def story() -> None:
        async with at(lay_out(folder, pause="0s", steps=steps)) as desk:
            turn = asyncio.create_task(desk.turn())
            question = await desk.asked()
            assert question["paused"] is False
            await desk.answer(question["id"])
            assert (await turn)["text"] == "piped"

    asyncio.run(story())


# --- who is asked, who answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("person", "outcome"), [("", "refused"), ('person = ["gateway"]', "finished")])
def test_operators_stand_in_for_the_person_of_a_gateway_where_settings_say_so(
    folder: Path, person: str, outcome: str
) -> None:
    async def story() -> None:
        file = lay_out(folder, approval="timeout 20s", more=f'[approvals]\nroutes = ["security"]\n{person}')
        async with at(file) as desk:
            turn = asyncio.create_task(desk.turn())
            if person:
                question = await desk.asked()
                assert question["route"] == ""
                await desk.answer(question["id"])
            await turn
            assert [one["data"]["phase"] for one in lines(folder) if one["kind"] == "call"][-1] == outcome

    asyncio.run(story())


def test_only_operators_see_and_answer(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder)) as desk:
            turn = asyncio.create_task(desk.turn())
            question = await desk.asked()
            for headers, status in ((desk.asker, 403), ({}, 401)):
                assert (await desk.client.get("/approvals", headers=headers)).status_code == status
                given = await desk.client.post(f"/approvals/{question['id']}", json={"answer": "yes"}, headers=headers)
                assert given.status_code == status
            assert not turn.done()
            await desk.answer(question["id"], "no")
            await turn

    asyncio.run(story())


def test_a_route_is_not_answered_with_the_token_that_asks(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder)) as desk:
            own = Desk(desk.daemon, desk.client, desk.operator, desk.operator)
            turn = asyncio.create_task(own.turn())
            question = await desk.asked()
            assert (await desk.answer(question["id"]))[0] == 403
            other = Desk(desk.daemon, desk.client, token(folder / "daemon.toml", "otto", "operator"), desk.asker)
            assert (await other.answer(question["id"]))[0] == 200
            assert (await turn)["text"] == "kept"

    asyncio.run(story())


BAD = {
    "a scope that is not offered": ({"answer": "yes", "scope": "tool"}, 400, "a yes reaches `once` or `exact` here"),
    "no such scope": (
        {"answer": "yes", "scope": "all"}, 400, "`answer` is `yes` or `no`, `scope` is `once`, `exact` or `tool`",
    ),
    "no such answer": ({"answer": True}, 400, "`answer` is missing, or no text"),
    "a scope of a no": ({"answer": "no", "scope": "exact"}, 400, "a no has no `scope`: it is for this one call"),
    "a note of a yes": ({"answer": "yes", "note": "x"}, 400, "a `note` goes with a no: it tells the agent why"),
    "a member too many": ({"answer": "yes", "by": "ann"}, 400, "a member is none of `answer`, `scope`, `note`"),
    "a note too long": ({"answer": "no", "note": "x" * 2_001}, 400, "a `note` has at most 2000 characters"),
}  # fmt: skip


def test_what_is_no_answer_leaves_the_question_as_it_is(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder)) as desk:
            turn = asyncio.create_task(desk.turn())
            question = await desk.asked()
            for name, (body, status, message) in BAD.items():
                given = await desk.client.post(f"/approvals/{question['id']}", json=body, headers=desk.operator)
                assert (name, given.status_code, given.json()["error"]) == (name, status, message)
            assert (await desk.answer("0" * 32))[0] == 404
            assert (await desk.client.get("/approvals?wait=999", headers=desk.operator)).status_code == 400
            assert [one["id"] for one in (await desk.listed())["questions"]] == [question["id"]]
            await desk.answer(question["id"])
            assert (await turn)["text"] == "kept"

    asyncio.run(story())


def test_a_client_cannot_take_up_the_room_of_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "MAX_QUESTIONS_OF_CLIENT", 2)

    async def story() -> None:
        async with at(lay_out(folder, pause="0s")) as desk:
            assert [(await desk.turn())["status"] for _ in range(3)] == ["paused", "paused", "done"]
            other = Desk(desk.daemon, desk.client, desk.operator, token(folder / "daemon.toml", "bob"))
            assert (await other.turn())["status"] == "paused"
            assert len((await desk.listed())["questions"]) == 3
            notes = [line["data"].get("note") for line in lines(folder) if line["data"].get("outcome") == "nothing"]
            assert "the client has as many questions waiting as it may" in notes

    asyncio.run(story())


@pytest.mark.parametrize(
    ("bound", "size", "note"),
    [
        ("MAX_QUESTION_CHARACTERS", 50, "the question has more than 50 characters"),
        ("MAX_HELD_OF_CLIENT", 50, "the client has as many questions waiting as it may"),
        ("MAX_HELD_CHARACTERS", 50, "there are as many questions waiting as there may be"),
        ("MAX_QUESTIONS", 0, "there are as many questions waiting as there may be"),
    ],
)
def test_what_there_is_no_room_for_nobody_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, bound: str, size: int, note: str
) -> None:
    monkeypatch.setattr(approvals, bound, size)

    async def story() -> None:
        async with at(lay_out(folder, pause="0s")) as desk:
            assert (await desk.turn())["status"] == "done"
            notes = [one["data"]["note"] for one in lines(folder) if one["data"].get("outcome") == "nothing"]
            assert notes[0] == note

    asyncio.run(story())


def test_news_are_waited_for(folder: Path) -> None:
    async def story() -> None:
        async with at(lay_out(folder, pause="0s")) as desk:
            empty = await desk.listed()
            waiting = asyncio.create_task(desk.listed(wait=20))
            await desk.turn()
            found = await waiting
            assert len(found["questions"]) == 1
            assert found["revision"] > empty["revision"]
            now = await desk.listed()
            waiting = asyncio.create_task(desk.listed(wait=20, since=now["revision"]))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await desk.answer(found["questions"][0]["id"])
            assert (await waiting)["revision"] > now["revision"]

    asyncio.run(story())


def test_a_process_that_is_started_anew_has_no_question_and_no_turn(folder: Path) -> None:
    file = lay_out(folder, pause="0s")
    asker, operator = token(file, "ann"), token(file, "olga", "operator")
    with Process(file) as process, process.client() as client:
        first = client.post("/turn", json=TURN, headers=asker).json()
        assert first["status"] == "paused"
        question = client.get("/approvals?wait=10", headers=operator).json()["questions"][0]
        process.process.kill()
        process.process.wait()
    with Process(file) as process, process.client() as client:
        assert client.get("/approvals", headers=operator).json()["questions"] == []
        answer = client.post(f"/approvals/{question['id']}", json={"answer": "yes"}, headers=operator)
        assert answer.status_code == 404
        again = {"agent": "helper", "resume": True, "session": first["session"]}
        assert client.post("/turn", json=again, headers=asker).status_code == 404
        assert client.post("/turn", json=TURN, headers=asker).json()["status"] == "paused"  # asked about anew
        assert client.get("/status", headers=operator).json()["approvals"] == 1


def test_a_turn_that_waits_is_answered_while_the_daemon_drains(folder: Path) -> None:
    file = lay_out(folder)
    asker, operator = token(file, "ann"), token(file, "olga", "operator")
    found: list[dict[str, Any]] = []
    with Process(file) as process, process.client() as client:
        turn = Thread(target=lambda: found.append(client.post("/turn", json=TURN, headers=asker).json()))
        turn.start()
        with process.client() as other:
            question = other.get("/approvals?wait=10", headers=operator).json()["questions"][0]
            process.signal(SIGTERM)
            assert other.post("/turn", json=TURN, headers=asker).status_code == 503
            answer = other.post(f"/approvals/{question['id']}", json={"answer": "yes"}, headers=operator)
            assert answer.status_code == 200
            turn.join()
        assert process.ends() == 0
    assert found[0]["text"] == "kept"


# --- a ledger that waits, or cannot be reached --------------------------------------------------------------------------


def limited(folder: Path, limit: str, **more: Any) -> Path:
    """The desk, with a limit on what is asked about."""
    file = lay_out(folder, pause="0s", **more)
    policy = folder / "team.zcpolicy"
    policy.write_text(policy.read_text().replace("runtime {", f"limit {limit}; runtime {{", 1))
    return file


async def another_generation(desk: Desk, folder: Path) -> None:
    policy = folder / "team.zcpolicy"
    policy.write_text(policy.read_text() + "\nagent other { autonomy supervised; allow memory_recall }\n")
    assert (await desk.client.post("/reload", headers=desk.operator, json={})).json()["new"] is True


def test_a_ledger_that_waits_holds_up_nobody_and_drops_no_question(folder: Path, redis_server: RedisServer) -> None:
    async def story() -> None:
        file = limited(folder, "9 calls to memory_store per day")
        file.write_text(file.read_text().replace('folder = "var"', f'folder = "var"\nledger = "{redis_server.url}"'))
        async with at(file) as desk:
            session = (await desk.turn())["session"]
            question = await desk.paused()
            await another_generation(desk, folder)  # so that what is paused is decided anew as it is listed
            redis_server.hang()
            try:
                listed = asyncio.create_task(desk.listed())
                await asyncio.sleep(0.2)
                began = monotonic()
                assert (await desk.client.get("/healthz")).status_code == 200
                assert monotonic() - began < 1
                assert [one["id"] for one in (await listed)["questions"]] == [question["id"]]
                assert (await desk.answer(question["id"]))[0] == 503
            finally:
                redis_server.go_on()
            await asyncio.sleep(REST_SECONDS + 0.5)
            assert [one["id"] for one in (await desk.listed())["questions"]] == [question["id"]]
            assert (await desk.answer(question["id"]))[0] == 200
            assert (await desk.turn(resume=True, session=session))["text"] == "kept"

    asyncio.run(story())


def test_a_limit_that_has_no_room_for_now_drops_no_question(folder: Path) -> None:
    async def story() -> None:
        async with at(limited(folder, "1 calls to memory_store per 2s")) as desk:
            one, two = (await desk.turn())["session"], (await desk.turn())["session"]
            first, second = (await desk.listed())["questions"]
            assert (await desk.answer(first["id"]))[0] == 200
            assert (await desk.turn(resume=True, session=one))["text"] == "kept"
            await another_generation(desk, folder)
            assert [one["id"] for one in (await desk.listed())["questions"]] == [second["id"]]
            assert await desk.answer(second["id"]) == (
                503, {"error": "a limit has no room for the call now: answer again once it has"},
            )  # fmt: skip
            await asyncio.sleep(2.1)
            assert (await desk.answer(second["id"]))[0] == 200
            assert (await desk.turn(resume=True, session=two))["text"] == "kept"

    asyncio.run(story())
