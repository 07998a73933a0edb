"""No tool begins once the host has heard of what withholds it: tried at every step of the event loop."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import policy_lang
from tests.loop.stage import TOOLS, Stage, stage
from zcpolicy.loop.access import ResolvedModelAccess
from zcpolicy.loop.loop import run_tool_call_loop
from zcpolicy.loop.messages import Message
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.registry.sources import InnerCall, ToolContext

RULES = "allow any; skills calm; deny shell when marked untrusted"
ABOVE = "skill calm { deny shell }"
SHELL = {"command": "ls"}
MAX_STEPS = 1_000


def tighter(on: Stage) -> None:
    on.resolver.publish(policy_lang.loads(f"zcpolicy 1\n{TOOLS}\nagent a {{ allow any; deny shell }}\n"))


def gone(on: Stage) -> None:
    on.resolver.publish(policy_lang.loads(f"zcpolicy 1\n{TOOLS}\nagent other {{ allow any }}\n"))


CHANGES: dict[str, Callable[[Stage], object]] = {
    "a tighter policy is published": tighter,
    "one without the agent is published": gone,
    "the policy is suspended": lambda on: on.resolver.suspend("it is old"),
    "a skill is loaded": lambda on: on.run.load_skill("calm"),
    "the session is marked": lambda on: on.session.mark(["untrusted"]),
    "drift is heard": lambda on: on.session.drifted("shell", "schema"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_begins_after(change: str) -> None:
    asyncio.run(story(CHANGES[change]))


async def story(change: Callable[[Stage], object]) -> None:
    for steps in range(MAX_STEPS):
        ran, finished, in_time = await turn(change, steps)
        assert ran == in_time, f"after {steps} steps"
        if finished:
            assert ran == 4
            return
    pytest.fail("the turn never ended")


async def turn(change: Callable[[Stage], object], steps: int) -> tuple[int, bool, int]:
    """How often `shell` ran, whether the turn was over before the change, how often it ran until then."""

    async def both(_arguments: dict[str, Any], context: ToolContext) -> str:
        return str(await context.run([InnerCall("shell", SHELL), InnerCall("shell", SHELL)]))

    on = stage(RULES, above=ABOVE, pipeline=both)
    model = ScriptedModel(calls(("pipeline", {"steps": []}), ("shell", SHELL)), calls(("shell", SHELL)), "done")
    await on.assemble()
    task = asyncio.create_task(run_tool_call_loop(on.run, ResolvedModelAccess(model), on.io, (Message("user", "go"),)))
    for _ in range(steps):
        await asyncio.sleep(0)
    finished, in_time = task.done(), on.names.count("shell")
    change(on)
    await task
    assert on.open_reservations() == []
    return on.names.count("shell"), finished, in_time
