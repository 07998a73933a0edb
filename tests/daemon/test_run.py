"""Runs that nobody attends, and runs that a call starts later."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import policy_lang
from tests.daemon.world import GIVEN, NOON, TOOLS, World
from zcpolicy import Narrowing
from zcpolicy.approvals.question import Approve, Approvers, Question
from zcpolicy.daemon.order import Order, TurnRefused
from zcpolicy.daemon.paths.run import later, run_due, run_once
from zcpolicy.daemon.schedule import Job, Origin, Schedule, ScheduleError, origin_of
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.site import Site
from zcpolicy.registry.sources import HostTool, ToolContext
from zcpolicy.tickets import Ticket, ticket_for

ASKS = "agent worker { allow file_read; allow shell with approval }\nagent free { allow file_read }"


def everything() -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return tuple((name, given) for name, given in GIVEN.items() if isinstance(name, str))


def test_29_what_asks_is_denied_and_on_record(tmp_path: Path) -> None:
    async def story() -> None:
        yes = Approvers(person=lambda _question: Approve())  # who is at the host is not at this run
        world = World(ASKS, tmp_path, approvers={"": yes})
        world.script("worker", calls(("shell", {"command": "ls"})), "done")
        await run_once(world.host, "worker", "look around")
        assert world.ran == []
        refused = [one.data for one in world.of_kind("call") if one.data["phase"] == "refused"]
        assert [one["reason"] for one in refused] == ["no-approver"]

    asyncio.run(story())


def test_a_route_answers_for_an_unattended_run(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def ops(question: Question) -> Approve:
        asked.append(question)
        return Approve(by="ops")

    async def story() -> None:
        world = World(
            ASKS.replace("approval }", 'approval; approval { route "ops" } }'), tmp_path,
            approvers={"run": Approvers(routes={"ops": ops})},
        )  # fmt: skip
        world.script("worker", calls(("shell", {"command": "ls"})), "done")
        await run_once(world.host, "worker", "look around")
        assert world.ran == [("worker", "shell")]
        assert [one.route for one in asked] == ["ops"]

    asyncio.run(story())


def test_runs_know_nothing_of_each_other_but_count_together(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(
            "agent worker { allow file_read; limit 1 calls to file_read per day }\nagent free { allow shell }", tmp_path
        )
        for _ in range(2):
            world.script("worker", calls(("file_read", {"path": "/w/a"})), "done")
            await run_once(world.host, "worker", "read")
            assert len(world.models["worker"].requests[0].messages) == 1
        assert world.ran == [("worker", "file_read")]

    asyncio.run(story())


LATER = """
agent worker {
    allow any except delegate
    limit 3 calls to cron_add per day
    mark untrusted on fetch
    deny send_mail when marked untrusted
    delegate to free
}
agent free { allow any; delegate to worker }
"""


async def scheduled(world: World, *before: tuple[str, Mapping[str, Any]], agent: str = "", **how: Any) -> None:
    """A turn whose last call has a run start later."""
    world.script("worker", calls(*before, ("schedule", {"agent": agent, "text": "all of it"})), "done")
    await run_once(world.host, "worker", "plan it", **how)
    world.ran.clear()


def offered(world: World, tool: HostTool) -> None:
    """The host has one tool more."""
    sources = world.host.sources
    world.host.sources = replace(sources, builtins=(*sources.builtins, tool))


def test_29a_a_later_run_has_the_narrowing_the_limits_and_the_labels_of_the_call(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(LATER, tmp_path)
        only = Narrowing(only=["cron_add", "send_mail", "fetch", "schedule"])
        await scheduled(world, ("cron_add", {"text": "1"}), ("fetch", {"url": "x"}), narrowing=only)
        world.script(
            "worker", calls(*everything(), ("cron_add", {"text": "2"}), ("cron_add", {"text": "3"})), "later is done"
        )
        (ran,) = await run_due(world.host, world.schedule, NOON)
        assert ran.result is not None
        assert ran.result.text == "later is done"
        assert world.shown("worker") == {"cron_add", "fetch", "schedule"}  # under the label, nothing can send mail
        assert world.ran == [("worker", "fetch"), ("worker", "cron_add"), ("worker", "cron_add")]
        mine = [one.identity for one in world.events if one.identity.surface == "scheduled"]
        assert {tuple(agent for agent, _ in one.line) for one in mine} == {("worker",)}

    asyncio.run(story())


def test_29a_also_after_the_host_has_started_anew(tmp_path: Path) -> None:
    async def story() -> None:
        first = World(LATER, tmp_path)
        await scheduled(first, ("fetch", {"url": "x"}), narrowing=Narrowing(deny=["shell"]))
        world = World(LATER, tmp_path)
        world.script("worker", calls(*everything()), "later is done")
        (ran,) = await run_due(world.host, world.schedule, NOON)
        assert ran.refused == ""
        assert ("worker", "shell") not in world.ran
        assert ("worker", "send_mail") not in world.ran  # the label outlived the process
        assert ("worker", "cron_add") in world.ran

    asyncio.run(story())


def test_29a_what_the_site_of_the_call_withheld_is_withheld_later(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(LATER, tmp_path)
        await scheduled(world, site=Site(caller_allowed=frozenset({"cron_add", "schedule"})))
        world.script("worker", calls(*everything()), "done")
        await run_due(world.host, world.schedule, NOON)
        assert world.ran == [("worker", "cron_add")]

    asyncio.run(story())


def test_24_what_the_site_of_later_runs_withholds(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(LATER, tmp_path)
        await scheduled(world)
        world.schedule.add(Job(NOON, "worker", "by the operator"))
        world.script("worker", *[calls(*everything()), "done"] * 2)
        await run_due(world.host, world.schedule, NOON, site=Site(caller_allowed=frozenset({"cron_add"})))
        assert world.ran == [("worker", "cron_add")] * 2

    asyncio.run(story())


TAMPERING = ("cat {}", "echo x > {}", "cd {folder} && cp /tmp/x jobs.json", "tee {}.new < x")


def test_41_no_tool_writes_the_schedule(tmp_path: Path) -> None:
    async def story() -> None:
        world = World("agent worker { allow shell }\nagent free { allow file_read }", tmp_path)
        tries = [one.format(tmp_path / "jobs.json", folder=tmp_path) for one in TAMPERING]
        world.script("worker", calls(*(("shell", {"command": text}) for text in tries)), "done")
        await run_once(world.host, "worker", "widen it")
        assert world.ran == []
        refused = [one.data["reason"] for one in world.of_kind("call") if one.data["phase"] == "refused"]
        assert refused == ["protected"] * len(tries)

    asyncio.run(story())


def test_29a_another_agent_that_runs_later_is_bounded_by_who_started_it(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(LATER.replace("except delegate", "except delegate, shell"), tmp_path)
        await scheduled(world, agent="free")
        world.script("free", calls(*everything()), "later is done")
        (ran,) = await run_due(world.host, world.schedule, NOON)
        assert ran.refused == ""
        assert ("free", "shell") not in world.ran
        assert ("free", "file_read") in world.ran

    asyncio.run(story())


def test_28_a_later_run_of_an_agent_that_may_not_be_reached_runs_nothing_and_is_on_record(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(LATER, tmp_path)
        await scheduled(world, agent="boss")
        world.script("boss", calls(*everything()), "done")
        (ran,) = await run_due(world.host, world.schedule, NOON)
        assert ran.refused == "agent `worker` may not delegate to `boss`"
        assert world.models["boss"].requests == []
        assert [one.data for one in world.of_kind("failed")] == [{"refused": ran.refused}]

    asyncio.run(story())


def test_a_policy_that_was_tightened_meanwhile_holds(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(LATER, tmp_path)
        await scheduled(world)
        world.host.publish(policy_lang.loads(TOOLS + LATER.replace("except delegate", "except delegate, shell")))
        world.script("worker", calls(*everything()), "done")
        await run_due(world.host, world.schedule, NOON)
        assert ("worker", "shell") not in world.ran
        assert ("worker", "file_read") in world.ran

    asyncio.run(story())


def test_what_is_due_runs_once_soonest_first_and_one_failure_stops_no_other(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(ASKS, tmp_path)
        schedule = Schedule(str(tmp_path / "jobs.json"))
        world.script("worker", "first", "second")
        schedule.add(Job(NOON + 1, "worker", "b"))
        schedule.add(Job(NOON, "nobody", "a"))
        schedule.add(Job(NOON - 1, "worker", "beat", every=60.0, surface="heartbeat"))
        schedule.add(Job(NOON + 60, "worker", "c"))
        ran = await run_due(world.host, schedule, NOON + 1)
        assert [(one.job.text, one.result.text if one.result is not None else one.refused) for one in ran] == [
            ("beat", "first"), ("a", "there is no agent `nobody`"), ("b", "second"),
        ]  # fmt: skip
        assert [(job.text, job.at) for job in schedule.jobs] == [("c", NOON + 60), ("beat", NOON + 61)]
        assert await run_due(world.host, schedule, NOON + 1) == []
        assert {one.identity.surface for one in world.events} == {"heartbeat", "scheduled"}

    asyncio.run(story())


def test_a_turn_that_cannot_be_raises(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(ASKS, tmp_path)
        with pytest.raises(TurnRefused, match="there is no agent `nobody`"):
            await run_once(world.host, "nobody", "x")

    asyncio.run(story())


FORGED: dict[str, Any] = {
    "nothing": None,
    "the ticket of an execution": {"line": [], "agent": "worker"},
    "an object of the type": object.__new__(Ticket),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_ticket_that_no_call_was_given(case: str, tmp_path: Path) -> None:
    world = World(ASKS, tmp_path)
    with pytest.raises(ScheduleError, match="no ticket that a call was given"):
        later(world.host, world.schedule, FORGED[case], "x", NOON)
    assert world.schedule.jobs == ()


def test_a_ticket_ends_with_its_call(tmp_path: Path) -> None:
    async def story() -> None:
        world = World("agent worker { allow keep }\nagent free { allow file_read }\ntool keep() risk low\n", tmp_path)
        tickets: list[Ticket] = []

        async def keep(_arguments: dict[str, Any], context: ToolContext) -> str:
            tickets.append(context.later())
            return "kept"

        offered(world, HostTool("keep", "Keeps its ticket.", {"type": "object"}, keep))
        world.script("worker", calls(("keep", {})), "done")
        await run_once(world.host, "worker", "x")
        with pytest.raises(ScheduleError, match="the call is over"):
            later(world.host, world.schedule, tickets[0], "x", NOON)
        assert world.schedule.jobs == ()

    asyncio.run(story())


def test_a_call_that_is_of_no_turn_of_this_host_leaves_nothing_behind(tmp_path: Path) -> None:
    world, other = World(ASKS, tmp_path), World(ASKS, tmp_path)
    seat = other.host.sessions.open("c")
    run = other.host.execution(Order("worker", "x", "run", seat))
    for host in (world.host, other.host):
        with pytest.raises(ScheduleError, match="none of a turn of this host"):
            later(host, world.schedule, ticket_for(run.renewed, "worker"), "x", NOON)


def test_what_a_job_stands_below_is_not_altered_by_whoever_is_shown_it(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(LATER, tmp_path)
        await scheduled(world, narrowing=Narrowing(only=["schedule", "cron_add"]))
        (job,) = world.schedule.jobs
        assert all(type(getattr(job, one.name)) in (str, float, tuple, type(None)) for one in fields(job))
        origin_of(job.origin).ticket["line"].clear()  # of a copy
        world.script("worker", calls(*everything()), "done")
        await run_due(world.host, world.schedule, NOON)
        assert world.ran == [("worker", "cron_add")]

    asyncio.run(story())


WITHHELD: dict[str, tuple[Site, str]] = {
    "an allow list": (Site(caller_allowed=frozenset({"schedule", "send_mail"})), "post"),
    "servers": (Site(connect_mcp=False), "forge__get_issue"),
    "hardware": (Site(connect_peripherals=False), "lamp"),
    "memory": (Site(exclude_memory=True), "memory_recall"),
    "delivery": (Site(exclude_delivery=True), "post"),
}
"""What a site withholds, and a tool that is withheld with it."""


@pytest.mark.parametrize("case", WITHHELD)
def test_29a_what_is_withheld_from_a_call_is_withheld_from_the_run_of_the_run_that_it_starts(
    case: str, tmp_path: Path
) -> None:
    async def story() -> None:
        site, name = WITHHELD[case]
        await scheduled(World(DEEP, tmp_path), site=site)
        world = World(DEEP, tmp_path, servers=case == "servers")  # the host has started anew
        world.script("worker", calls(("schedule", {"agent": "", "text": "all of it"})), "done")
        await run_due(world.host, world.schedule, NOON)
        world.script("worker", "done")
        (ran,) = await run_due(world.host, world.schedule, NOON)
        assert ran.refused == ""
        assert name not in world.shown("worker")
        assert "send_mail" in world.shown("worker")

    asyncio.run(story())


DEEP = """
agent worker {
    allow any
    connect all_of_forge
    memory read own
    delegate to free
    delegate depth 3
}
agent free { allow any }
"""


def test_a_deferred_listing_stays_one(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(DEEP, tmp_path, servers=True)
        assert origin_of(Origin({}, Site(deferred=True)).text()).site == Site(deferred=True)
        await scheduled(world, site=Site(deferred=True))
        world.script("worker", "done")
        await run_due(world.host, world.schedule, NOON)
        assert "forge__get_issue" not in world.shown("worker")

    asyncio.run(story())


REMEMBERS = """
agent worker { allow any; mark untrusted on fetch; deny send_mail when marked untrusted }
agent free { allow any }
"""
READS = calls(("fetch", {"url": "x"})), "it is read"
MAILS = calls(("send_mail", {"to": "zoe"})), "it is done"
PLANS = calls(("schedule", {"agent": "", "text": "as ever"})), "it will be done"


def test_29a_what_one_night_has_read_the_next_one_knows(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(REMEMBERS, tmp_path)
        world.every = 60.0
        world.script("worker", *PLANS, *READS, *MAILS)
        await run_once(world.host, "worker", "plan it")
        await run_due(world.host, world.schedule, NOON)
        await run_due(world.host, world.schedule, NOON + 60)
        assert world.ran == [("worker", "fetch")]

    asyncio.run(story())


def test_29a_also_when_the_host_has_started_anew_between_the_nights(tmp_path: Path) -> None:
    async def story() -> None:
        for script, now in ((PLANS, None), (READS, NOON), (MAILS, NOON + 60)):
            world = World(REMEMBERS, tmp_path)
            world.every = 60.0
            world.script("worker", *script)
            if now is None:
                await run_once(world.host, "worker", "plan it")
            else:
                (ran,) = await run_due(world.host, world.schedule, now)
                assert ran.refused == ""
        assert world.ran == []

    asyncio.run(story())


def test_29a_what_one_run_has_read_the_others_of_the_same_call_know(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(REMEMBERS, tmp_path)
        twice = calls(*[("schedule", {"agent": "", "text": "as ever"})] * 2)
        world.script("worker", twice, "it will be done", *READS, *MAILS)
        await run_once(world.host, "worker", "plan it")
        assert len(await run_due(world.host, world.schedule, NOON)) == 2
        assert world.ran == [("worker", "fetch")]

    asyncio.run(story())


def test_29a_what_the_session_has_read_since_the_call_is_known(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(REMEMBERS, tmp_path)
        world.script("worker", PLANS[0], *READS, *MAILS)
        await run_once(world.host, "worker", "plan it, then read")
        await run_due(world.host, world.schedule, NOON)
        assert world.ran == [("worker", "fetch")]

    asyncio.run(story())


def test_sessions_are_kept_once_and_no_longer_than_a_job_needs_them(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(REMEMBERS, tmp_path)
        world.script("worker", calls(*[("schedule", {"agent": "", "text": "as ever"})] * 3), "planned", *["done"] * 3)
        await run_once(world.host, "worker", "plan it")
        assert len(json.loads((tmp_path / "jobs.json").read_text("utf-8"))["sessions"]) == 1
        await run_due(world.host, world.schedule, NOON)
        assert json.loads((tmp_path / "jobs.json").read_text("utf-8")) == {"jobs": [], "sessions": {}}

    asyncio.run(story())
