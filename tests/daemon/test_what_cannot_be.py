"""What cannot be assembled, resumed or kept: nothing runs, and it is told why."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.world import NOON, WAYS, World, turn
from zcpolicy.daemon import sessions
from zcpolicy.daemon.order import Order, TurnRefused
from zcpolicy.daemon.paths.channel import Channel
from zcpolicy.daemon.paths.run import run_due, run_once
from zcpolicy.daemon.paths.step import StepResult, Workflow, WorkflowStep, run_workflow
from zcpolicy.daemon.schedule import Job, Origin, Schedule
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.site import OPEN

POLICY = "agent worker { allow file_read, schedule, memory_store }\nagent free { allow file_read }"


@pytest.mark.parametrize("way", WAYS)
def test_two_tools_of_one_name(way: str, tmp_path: Path) -> None:
    async def story() -> None:
        world = World(POLICY, tmp_path)
        tools = world.host.sources.builtins
        world.host.sources = replace(world.host.sources, builtins=(*tools, tools[0]))
        world.script("worker", calls(("file_read", {"path": "/w/a"})), "done")
        world.script("boss", "never")
        with suppress(TurnRefused, IndexError):  # a run has nobody else to tell; `boss` never gets to delegate
            await turn(way, world)
        assert world.ran == []
        assert world.models["worker"].requests == []
        assert world.of_kind("failed")

    asyncio.run(story())


def test_no_room_for_another_sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        world = World(POLICY, tmp_path)
        world.script("worker", "hello", "again")
        said: list[tuple[str, str]] = []

        async def send(sender: str, text: str) -> None:
            said.append((sender, text))

        channel = Channel(world.host, "worker", send)
        await channel.receive("ann", "hello")
        monkeypatch.setattr(sessions, "MAX_SEATS", 1)
        await channel.receive("ben", "hello")
        await channel.receive("ann", "still there?")
        assert said == [("ann", "hello"), ("ben", "there are as many open sessions as there may be"), ("ann", "again")]

    asyncio.run(story())


def test_no_room_for_a_child_or_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        world = World(POLICY, tmp_path)
        world.script("boss", calls(("delegate", {"agent": "worker", "task": "x"})), "done")
        world.script("worker", "never")
        seat = world.host.sessions.open("client")
        monkeypatch.setattr(sessions, "MAX_SEATS", 1)
        await world.host.turn(Order("boss", "x", "run", seat))
        assert world.told("boss") == ["[failed] The task was not handed over: it cannot be handed to this agent here."]
        went = await run_workflow(
            world.host, Workflow("boss", (WorkflowStep("x", "worker"),)), Order("", "", "run", seat)
        )
        assert went == [StepResult("worker", "failed", "there are as many open sessions as there may be")]
        assert world.models["worker"].requests == []

    asyncio.run(story())


FORGED: dict[str, dict[str, Any]] = {
    "no ticket": {"agent": "worker"},
    "of a session that was not kept": {"agent": "worker", "line": [{"agent": "worker", "session": "x", "surface": "run", "narrowing": None, "skills": [], "independent": False, "later": False}]},
}  # fmt: skip


@pytest.mark.parametrize("case", FORGED)
def test_a_job_whose_ticket_leads_nowhere(case: str, tmp_path: Path) -> None:
    async def story() -> None:
        world = World(POLICY, tmp_path)
        world.script("worker", "never")
        world.schedule.add(Job(NOON, "worker", "x", origin=Origin(FORGED[case], OPEN).text()))
        (ran,) = await run_due(world.host, world.schedule, NOON)
        assert ran.result is None
        assert ran.refused
        assert [one.data for one in world.of_kind("failed")] == [{"refused": ran.refused}]
        assert world.models["worker"].requests == []

    asyncio.run(story())


def test_a_job_whose_sessions_are_not_what_was_kept(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(POLICY, tmp_path)
        world.script("worker", calls(("schedule", {"agent": "", "text": "later"})), "done")
        await run_once(world.host, "worker", "x")
        file = tmp_path / "jobs.json"
        file.write_text(file.read_text("utf-8").replace('"labels": []', '"labels": "untrusted"'), "utf-8")
        (ran,) = await run_due(world.host, Schedule(str(file)), NOON)
        assert ran.refused == "`labels` of a saved session is not what was saved"
        assert len(world.models["worker"].requests) == 2

    asyncio.run(story())


def test_a_job_at_which_the_host_fails_stops_no_other(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(POLICY, tmp_path)
        access = world.access

        def broken(agent: str) -> Any:
            if not world.of_kind("turn"):
                world.script("worker", "done")
                world.host.models = access
                raise RuntimeError("the key is under the mat")
            return access(agent)

        world.host.models = broken
        world.schedule.add(Job(NOON, "worker", "a"))
        world.schedule.add(Job(NOON + 1, "worker", "b"))
        first, second = await run_due(world.host, world.schedule, NOON + 1)
        assert first.refused == "the host failed"
        assert second.result is not None
        assert second.result.text == "done"

    asyncio.run(story())


def test_memory_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(
            POLICY.replace("agent free", "agent scribe { memory write own; allow memory_store }\nagent free"), tmp_path
        )
        world.script(
            "scribe", calls(("memory_store", {"text": "x", "scope": "worker"}), ("memory_store", {"text": "y"})), "done"
        )
        await run_once(world.host, "scribe", "x")
        assert world.told("scribe") == ["[failed] agent `scribe` may not write memory `worker`", "it is remembered"]

    asyncio.run(story())
