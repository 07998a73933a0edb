"""An answer that comes later inside a child's turn: nobody would take that turn up, so it is no yes, and never a success."""

import asyncio
from typing import Any

import pytest

from tests.loop.stage import Stage, play, stage, told
from zcpolicy import Message, ResolvedAgentExecution, Session, TurnResult, admit
from zcpolicy.approvals.question import Approvers, Later, Question
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.gate import Refused
from zcpolicy.loop.loop import run_tool_call_loop
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.loop.turn import Status
from zcpolicy.registry.sources import ToolContext, ToolResult

NO_ONE = "This call needs somebody's approval, and nobody can be asked. Go on without it."
RULES = "allow hand_over, mail; delegate to b"
HANDED = calls(("hand_over", {"agent": "b", "task": "t"}))


async def _hand_over(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return await context.delegate(arguments["agent"], arguments["task"])


def below(child: TurnResult | None = None) -> tuple[Stage, list[TurnResult], list[Question]]:
    """A stage whose child mails, which asks; whoever is asked answers later. `child`: how its turn ends instead."""
    on = stage(RULES, above="agent b { allow mail; ask mail }", hand_over=_hand_over)
    ended: list[TurnResult] = []
    asked: list[Question] = []

    async def person(question: Question) -> Later:
        asked.append(question)
        return Later()

    async def delegate(above: ResolvedAgentExecution, agent: str, task: str, _independent: bool) -> ToolResult:
        run = above.resolver.resolve(agent, session=Session(interactive=True, client="c", id="t"), parent=above)
        registry = await on.assemble(run)
        model = ResolvedModelAccess(ScriptedModel(calls(("mail", {"to": "x"})), "I could not mail"))
        done = child if child is not None else await run_tool_call_loop(run, model, on.io, [Message("user", task)])
        ended.append(done)
        await registry.close()
        return ended[-1].for_delegator()

    on.delegate = delegate
    on.approvers = Approvers(person)
    return on, ended, asked


def test_a_childs_call_is_refused_and_its_turn_goes_on() -> None:
    on, (ended, asked) = (parts := below())[0], parts[1:]
    result, _ = play(on, HANDED, "done")
    assert told(ended[0]) == [NO_ONE]
    assert told(result) == ["I could not mail"]
    assert on.names == ["hand_over"]
    assert len(asked) == 1
    notes = [event.data["note"] for event in on.events if event.kind == "approval" and "note" in event.data]
    assert notes == ["an answer that comes later cannot be waited for here"]
    reasons = [event.data["reason"] for event in on.events if event.data.get("phase") == "refused"]
    assert reasons == ["no-approver"]


def test_nobody_is_told_that_such_an_answer_is_still_of_use() -> None:
    on, _, asked = below()
    play(on, HANDED, "done")
    assert [entry for entry in on.resolver.ledger.entries() if entry.state == "reserved"] == []
    assert not [event for event in on.events if event.data.get("phase") == "waiting"]
    assert asked[0].agent == "b"


@pytest.mark.parametrize(
    ("status", "text", "told_above"),
    [
        ("done", "it is done", "it is done"),
        ("paused", "", "[failed] There is no answer (why)."),
        ("stopped", "half of it", "[failed] There is no answer (why)."),
        ("failed", "half of it", "[failed] There is no answer (why)."),
    ],
)
def test_only_a_turn_that_is_done_is_a_success_above(status: Status, text: str, told_above: str) -> None:
    on, _, _ = below(TurnResult(status, text, "why", ()))
    result, _ = play(on, HANDED, "done")
    assert told(result) == [told_above]


def test_a_host_that_takes_no_turn_up_says_so() -> None:
    on = stage("allow mail; ask mail")
    io = ResolvedIo(Approvers(lambda _question: Later()), waits=False)
    found = asyncio.run(admit(on.run, "mail", {"to": "x"}, io))
    assert isinstance(found, Refused)
    assert (found.reason, found.text) == ("no-approver", NO_ONE)
