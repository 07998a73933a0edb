"""What is limited per turn is counted by the turn that is under way: nothing that starts meanwhile gives it room again."""

import asyncio
from typing import Any

import pytest

from tests.loop.stage import Stage, play, stage, told
from zcpolicy import Message, ResolvedAgentExecution, ResolveError
from zcpolicy.loop.access import ResolvedModelAccess
from zcpolicy.loop.loop import run_tool_call_loop
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.registry.sources import ToolContext, ToolResult

LOOK = ("look", {"at": "x"})


def test_a_second_turn_in_a_session_is_refused_while_one_is_under_way() -> None:
    on = stage("allow look; limit 2 calls to look per turn")
    said: list[str] = []

    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        before = on.session.turn
        other = on.resolver.resolve("a", session=on.session)
        registry = await on.assemble(other)
        try:
            model = ResolvedModelAccess(ScriptedModel(calls(LOOK, LOOK), "done"))
            await run_tool_call_loop(other, model, on.io, [Message("user", "go")])
        except ResolveError as error:
            said.append(str(error))
        await registry.close()
        assert on.session.turn == before
        return "looked"

    on.tools["look"] = look
    result, _ = play(on, calls(LOOK, LOOK, LOOK), "done")
    assert said == ["another turn of this session is under way"] * 2
    assert [one.startswith("A limit is reached.") for one in told(result)] == [False, False, True]


def test_when_it_is_over_however_it_ended_the_next_one_may_start() -> None:
    on = stage("allow look; limit 1 calls to look per turn")

    async def story() -> list[list[str]]:
        stuck = asyncio.create_task(on.turn(ScriptedModel(calls(LOOK), "done")))
        await asyncio.sleep(0)
        stuck.cancel()
        await asyncio.wait([stuck])
        failed = await on.turn(ScriptedModel())
        assert failed.status == "failed"
        return [told(await on.turn(ScriptedModel(calls(LOOK), "done"))) for _ in range(2)]

    assert asyncio.run(story()) == [["look is done"]] * 2


def test_turns_below_in_the_session_of_the_root_are_part_of_its_turn() -> None:
    """Also where an execution with a session of its own stands between."""
    on = stage(
        "allow look, hand_over; delegate to b, c; delegate depth 2; limit 1 calls to look per turn",
        above="agent b { allow look, hand_over; delegate to c }\nagent c { allow look }",
        hand_over=_hand_over,
    )
    steps = {
        "b": [calls(("hand_over", {"agent": "c", "task": "t"})), "handed on"],
        "c": [calls(LOOK, LOOK), "looked"],
    }

    answers: list[list[str]] = []

    async def delegate(above: ResolvedAgentExecution, agent: str, task: str, _independent: bool) -> ToolResult:
        session = on.session if agent == "c" else None
        run = above.resolver.resolve(agent, session=session, parent=above)
        registry = await on.assemble(run)
        model = ResolvedModelAccess(ScriptedModel(*steps[agent]))
        result = await run_tool_call_loop(run, model, on.io, [Message("user", task)])
        await registry.close()
        answers.append(told(result))
        return result.for_delegator()

    on.delegate = delegate
    result, _ = play(on, calls(("hand_over", {"agent": "b", "task": "t"}), LOOK), "done")
    assert [one[:19] for one in answers[0]] == ["look is done", "A limit is reached."]
    assert [one[:19] for one in told(result)] == ["handed on", "A limit is reached."]


async def _hand_over(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return await context.delegate(arguments["agent"], arguments["task"])


def resumed_with(on: Stage, messages: Any, resume: Any = None) -> str:
    with pytest.raises(TypeError) as raised:
        play(on, "done", messages=messages, resume=resume)
    return str(raised.value)


def test_what_is_no_message_and_no_state_is_told_at_once() -> None:
    on = stage("allow look")
    assert resumed_with(on, [{"role": "user", "text": "go"}]) == (
        "messages are `Message`, one is a `dict`: `Message.from_json` makes one of JSON"
    )
    assert resumed_with(on, [Message("user", "go")], {"turn": "t"}) == (
        "`resume` is a `TurnState`, no `dict`: `TurnState.from_json` makes one of JSON"
    )
    result, _ = play(on, "done")
    assert result.status == "done"
