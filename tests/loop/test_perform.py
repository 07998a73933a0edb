"""A registry's tool in a loop of a host's own: `perform` runs it as our loop does, and says what it cannot."""

import asyncio
from typing import Any

import pytest

from tests.loop.stage import Stage, stage
from zcpolicy import Admitted, Lapsed, PermitError, ResolveError, ToolContext, ToolResult, admit, perform
from zcpolicy.registry.sources import InnerCall

RULES = "allow look, mail, pipeline, load_skill"


async def slow(_arguments: dict[str, Any], _context: ToolContext) -> str:
    await asyncio.sleep(60)
    return "done"


async def admitted(on: Stage, tool: str, **arguments: Any) -> Admitted:
    found = await admit(on.run, tool, arguments, on.io)
    assert isinstance(found, Admitted)
    return found


def performed(on: Stage, tool: str, within: float | None = None, **arguments: Any) -> ToolResult:
    async def story() -> ToolResult:
        registry = await on.assemble()
        try:
            return await perform(await admitted(on, tool, **arguments), on.io, within=within)
        finally:
            await registry.close()

    return asyncio.run(story())


def phases(on: Stage) -> list[str]:
    return [event.data["phase"] for event in on.events if event.kind == "call"]


def test_it_starts_runs_and_finishes() -> None:
    on = stage(RULES)
    assert performed(on, "look", at="x").ok
    assert on.ran == [("look", {"at": "x"})]
    assert phases(on) == ["admitted", "started", "finished"]
    assert on.open_reservations() == []


def test_the_tool_can_run_others_through_the_gate() -> None:
    async def both(_arguments: dict[str, Any], context: ToolContext) -> str:
        return (await context.run([InnerCall("look", {"at": "y"})]))[0].text

    on = stage(RULES, pipeline=both)
    assert performed(on, "pipeline", steps=[]).ok
    assert [name for name, _ in on.ran] == ["pipeline", "look"]


def test_it_is_cut_off_when_the_time_of_the_turn_is_over() -> None:
    on = stage(RULES, look=slow)
    assert not performed(on, "look", 0.05, at="x").ok
    assert phases(on)[-1] == "finished"


def test_what_cannot_be_performed() -> None:
    async def story() -> None:
        on = stage(RULES)
        with pytest.raises(ResolveError, match="no registry was assembled"):
            await perform(await admitted(on, "look", at="x"), on.io)
        registry = await on.assemble()
        call = await admitted(on, "look", at="x")
        for wrong in (-1.0, float("nan")):
            with pytest.raises(ValueError, match="`within` is a number of seconds, 0 or more"):
                await perform(call, on.io, within=wrong)
        made_up: Any = object()
        with pytest.raises(TypeError, match="takes a call that `admit` admitted, and a `ResolvedIo`"):
            await perform(made_up, on.io)
        assert (await perform(call, on.io)).ok
        with pytest.raises(PermitError, match=r"before|over"):
            await perform(call, on.io)
        stale = await admitted(on, "look", at="x")
        on.session.mark(["untrusted"])
        with pytest.raises(Lapsed):
            await perform(stale, on.io)
        assert on.ran == [("look", {"at": "x"})]
        assert (await perform(await admitted(on, "look", at="z"), on.io)).ok
        await registry.close()

    asyncio.run(story())
