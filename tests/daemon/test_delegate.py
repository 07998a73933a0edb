"""Delegation on a running host: what a child has, what bounds it, and what comes back with its answer."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.daemon.world import GIVEN, World
from zcpolicy import Narrowing
from zcpolicy.approvals.question import Answer, Approve, Approvers, Later, Question
from zcpolicy.daemon.order import Order
from zcpolicy.daemon.paths.run import run_once
from zcpolicy.loop.messages import ModelResponse
from zcpolicy.loop.scripted import calls
from zcpolicy.loop.turn import TurnResult

Story = Callable[[World], Awaitable[None]]


def run(policy: str, folder: Path, story: Story) -> World:
    world = World(policy, folder)
    asyncio.run(asyncio.wait_for(story(world), 30))
    return world


def hand_over(agent: str, task: str = "do it", **more: Any) -> ModelResponse:
    return calls(("delegate", {"agent": agent, "task": task, **more}))


def everything() -> ModelResponse:
    return calls(*((name, given) for name, given in GIVEN.items() if isinstance(name, str)))


ONE_BELOW = """
agent worker { allow file_read, shell, fetch, delegate; mark untrusted on fetch; delegate to free independent because "it may more" }
agent free { allow shell, send_mail, fetch; mark untrusted on fetch; deny send_mail when marked untrusted }
"""


def test_a_bounded_child_is_the_least_of_both(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", hand_over("free"), "done")
        world.script("free", everything(), "done below")
        await run_once(world.host, "worker", "have it done")
        assert world.ran == [("free", "shell"), ("free", "fetch")]
        assert world.told("worker") == ["done below"]

    run(ONE_BELOW, tmp_path, story)


def test_an_independent_child_has_what_is_its_own(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", hand_over("free", independent=True), "done")
        world.script("free", calls(("send_mail", {"to": "ann"}), ("file_read", {"path": "/w/a"})), "done below")
        await run_once(world.host, "worker", "have it done")
        assert world.ran == [("free", "send_mail")]

    run(ONE_BELOW, tmp_path, story)


def test_29b_an_independent_child_under_a_narrowing_can_call_nothing_else(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", hand_over("free", independent=True), "done")
        world.script("free", everything(), "done below")
        await run_once(world.host, "worker", "x", narrowing=Narrowing(only=["delegate", "shell"]))
        assert world.ran == [("free", "shell")]

    run(ONE_BELOW, tmp_path, story)


NOT_HERE = "[failed] The task was not handed over: it cannot be handed to this agent here."


def test_a_model_is_not_told_what_agents_there_are_and_who_may_reach_whom(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script(
            "worker", calls(*(("delegate", {"agent": one, "task": "x"}) for one in ("free", "nobody"))), "done"
        )
        await run_once(world.host, "worker", "x")
        assert world.told("worker") == [NOT_HERE, NOT_HERE]
        assert [one.data["refused"] for one in world.of_kind("failed")] == [
            "agent `worker` may not delegate to `free`", "there is no agent `nobody`",
        ]  # fmt: skip

    run("agent worker { allow any }\nagent free { allow any }\n", tmp_path, story)


def test_a_model_is_not_told_which_limit_ended_its_child(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", hand_over("free"), "done")
        world.script("free", calls(("shell", {"command": "ls"})), "never")
        await run_once(world.host, "worker", "x")
        assert world.told("worker") == ["[failed] There is no answer (iterations)."]

    run(
        "agent worker { allow any; delegate to free }\nagent free { allow any; limit 1 iterations per turn }\n",
        tmp_path,
        story,
    )


CHAIN = """
agent worker { allow any; delegate to helper; delegate depth 3 }
agent helper { allow any; delegate to free independent because "it may more"; delegate depth 2 }
agent free { allow any }
"""


def test_29b_whom_the_first_may_not_reach_nobody_below_it_reaches(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", hand_over("helper"), "done")
        world.script("helper", hand_over("free", independent=True), "it was refused")
        world.script("free", everything(), "never")
        await run_once(world.host, "worker", "x")
        assert world.told("worker") == ["it was refused"]
        assert world.told("helper") == [NOT_HERE]
        assert world.models["free"].requests == []
        assert world.of_kind("failed")

    run(CHAIN, tmp_path, story)


def test_29c_what_a_child_has_read_marks_its_delegator(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", hand_over("free"), "done")
        world.script("free", calls(("fetch", {"url": "x"})), "what a stranger wrote")
        seat = world.host.sessions.open("client")
        await world.host.turn(Order("worker", "x", "run", seat))
        assert seat.session.labels == {"untrusted"}

    run(ONE_BELOW, tmp_path, story)


def test_29d_also_when_the_child_fails(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.fails.add("fetch")
        world.script("worker", hand_over("free"), "done")
        world.script("free", calls(("fetch", {"url": "x"})))  # and then its model says no more
        seat = world.host.sessions.open("client")
        await world.host.turn(Order("worker", "x", "run", seat))
        assert world.told("worker")[0].startswith("[failed]")
        assert seat.session.labels == {"untrusted"}

    run(ONE_BELOW, tmp_path, story)


def test_29d_in_one_batch_the_mail_is_decided_under_the_mark_of_the_fetch(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.fails.add("fetch")
        world.script("worker", hand_over("free", independent=True), "done")
        world.script("free", calls(("fetch", {"url": "x"}), ("send_mail", {"to": "ann"})), "done below")
        await run_once(world.host, "worker", "x")
        assert world.ran == [("free", "fetch")]

    run(ONE_BELOW, tmp_path, story)


def test_what_the_delegator_has_said_never_reaches_the_child(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", hand_over("free", "only this"), "done")
        child = world.script("free", "done below")
        await run_once(world.host, "worker", "the secret is 7")
        assert [(one.role, one.text) for one in child.requests[0].messages] == [("user", "only this")]
        assert child.name == "model of free"

    run(ONE_BELOW, tmp_path, story)


def test_17_fan_out_spends_one_budget(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", calls(*[("delegate", {"agent": "free", "task": "x"})] * 5), "done")
        steps: list[ModelResponse | str] = []
        for _ in range(5):
            steps += [calls(("shell", {"command": "ls"}), ("shell", {"command": "ls"})), "done below"]
        world.script("free", *steps)
        await run_once(world.host, "worker", "x")
        assert world.ran == [("free", "shell")] * 3

    limited = ONE_BELOW.replace("delegate to free", "limit 3 calls to shell per session; delegate to free")
    run(limited, tmp_path, story)


def test_delegations_are_counted_and_depth_is_bounded(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", calls(*[("delegate", {"agent": "free", "task": "x"})] * 3), "done")
        world.script("free", hand_over("worker"), *["done below"] * 5)
        await run_once(world.host, "worker", "x")
        assert [one.startswith("[failed]") for one in world.told("worker")] == [False, False, True]
        assert "no delegation to `free` is left" in world.of_kind("failed")[-1].data["refused"]

    limited = ONE_BELOW.replace("delegate to free", "limit 2 delegations per session; delegate to free")
    run(limited, tmp_path, story)


def test_whoever_is_asked_for_the_delegator_is_asked_for_the_child(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def person(question: Question) -> Answer:
        asked.append(question)
        return Approve()

    async def story(world: World) -> None:
        for interactive in (True, False):
            world.script("worker", hand_over("free"), "done")
            world.script("free", calls(("shell", {"command": "ls"})), "done below")
            seat = world.host.sessions.open("client", interactive=interactive)
            await world.host.turn(Order("worker", "x", "channel", seat, approvers=Approvers(person)))
        assert world.ran == [("free", "shell")]  # a person who is not at the session is not asked
        assert [one.agent for one in asked] == ["free"]

    asking = ONE_BELOW.replace("agent free { allow shell,", "agent free { allow shell with approval; allow")
    run(asking, tmp_path, story)


def test_a_child_knows_the_directory_of_its_delegator(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", hand_over("free"), "done")
        world.script("free", calls(("file_read", {"path": "a"}), ("file_read", {"path": "../b"})), "done below")
        await run_once(world.host, "worker", "x")
        assert world.ran == [("free", "file_read")]

    here = 'allow file_read when args.path under "/w"; allow delegate'
    run(f"agent worker {{ {here}; delegate to free }}\nagent free {{ {here} }}", tmp_path, story)


def test_a_policy_tightened_while_a_child_runs_bounds_it(tmp_path: Path) -> None:
    import policy_lang
    from tests.daemon.world import TOOLS

    async def story(world: World) -> None:
        def tighten(_request: object) -> ModelResponse:
            world.host.publish(
                policy_lang.loads(TOOLS + ONE_BELOW.replace("allow file_read, shell,", "allow file_read,"))
            )
            return calls(("shell", {"command": "ls"}))

        world.script("worker", hand_over("free"), "done")
        world.script("free", calls(("shell", {"command": "ls"})), tighten, "done below")
        await run_once(world.host, "worker", "x")
        assert world.ran == [("free", "shell")]

    run(ONE_BELOW, tmp_path, story)


def test_a_delegator_that_is_cancelled_leaves_no_session_behind(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        waiting = asyncio.Event()

        async def person(_question: Question) -> Answer:
            waiting.set()
            await asyncio.Event().wait()
            return Approve()

        world.script("worker", hand_over("free"), "done")
        world.script("free", calls(("shell", {"command": "ls"})), "done below")
        seat = world.host.sessions.open("client", interactive=True)
        turn: asyncio.Task[TurnResult] = asyncio.create_task(
            world.host.turn(Order("worker", "x", "channel", seat, approvers=Approvers(person)))
        )
        await waiting.wait()
        assert len(world.host.sessions._seats) == 2
        turn.cancel()
        await asyncio.wait([turn])
        assert turn.cancelled()
        assert list(world.host.sessions._seats) == [seat.session.id]
        assert world.ran == []

    asking = ONE_BELOW.replace("agent free { allow shell,", "agent free { allow shell with approval; allow")
    run(asking, tmp_path, story)


LATER = ONE_BELOW.replace("agent free { allow shell,", "agent free { allow shell with approval; allow")
NO_ONE = "This call needs somebody's approval, and nobody can be asked. Go on without it."


def test_a_child_that_would_have_to_wait_for_an_answer_is_told_that_there_is_nobody(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("worker", hand_over("free"), "done")
        world.script("free", calls(("shell", {"command": "ls"})), "I may not")
        seat = world.host.sessions.open("client", interactive=True)
        order = Order("worker", "x", "channel", seat, approvers=Approvers(lambda _question: Later()))
        result = await world.host.turn(order)
        assert (result.status, seat.paused) == ("done", None)
        assert (world.told("free"), world.told("worker")) == ([NO_ONE], ["I may not"])

    run(LATER, tmp_path, story)


def test_a_run_that_nobody_attends_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.script("free", calls(("shell", {"command": "ls"})), "I may not")
        world.host.approvers["run"] = Approvers(routes={"ops": lambda _question: Later()})
        result = await run_once(world.host, "free", "x")
        assert (result.status, world.told("free")) == ("done", [NO_ONE])

    run(
        'agent worker { allow fetch }\nagent free { allow shell with approval; approval { route "ops" } }',
        tmp_path,
        story,
    )
