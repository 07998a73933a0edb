"""While a call of a tree is under way nothing answers for that tree, in whatever thread; once its turn has paused, people do."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest

from tests.approvals.people import YES, says
from tests.loop.stage import Stage, stage, told
from tests.person import Person
from zcpolicy import Message, ResolvedAgentExecution, Session, TurnResult
from zcpolicy.approvals.outcome import Approved, Waiting
from zcpolicy.approvals.question import Approve, Approvers, Later, Question
from zcpolicy.loop.access import ResolvedModelAccess
from zcpolicy.loop.gate import Admitted, admit
from zcpolicy.loop.loop import run_tool_call_loop
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.refusals import PermitError
from zcpolicy.registry.sources import ToolContext, ToolResult

UNDER_WAY = "a call of these agents is under way: answer once their turn has paused"
MAIL = {"to": "bob"}
LOOK = calls(("look", {"at": "x"}))
Answers = Callable[[], str]


async def waits(on: Stage, key: str = "k1") -> Question:
    """The question of a call that somebody answers later."""
    found = await on.run.approvals.settle(on.run.decide("mail", MAIL), Approvers(says(Later())), key)
    assert isinstance(found, Waiting)
    return found.questions[0]


async def approved(on: Stage, key: str = "k1") -> bool:
    """Whether the answer is on record."""
    return isinstance(
        await on.run.approvals.settle(on.run.decide("mail", MAIL), Approvers(says(Later())), key), Approved
    )


def answer(on: Stage, question: Question) -> str:
    """What comes of an answer in an event loop of its own, as in a thread that knows of no other."""
    try:
        asyncio.run(on.run.approvals.answer(question, YES))
    except PermitError as error:
        return str(error)
    return "taken"


async def in_an_executor(answers: Answers) -> str:
    return await asyncio.get_running_loop().run_in_executor(None, answers)


async def in_a_pool(answers: Answers) -> str:
    with ThreadPoolExecutor() as pool:
        return await asyncio.wrap_future(pool.submit(answers))


async def in_a_thread(answers: Answers) -> str:
    loop = asyncio.get_running_loop()
    said: asyncio.Future[str] = loop.create_future()
    Thread(target=lambda: loop.call_soon_threadsafe(said.set_result, answers())).start()
    return await said


WHERE: dict[str, Callable[[Answers], Awaitable[str]]] = {
    "an executor": in_an_executor,
    "a pool of its own": in_a_pool,
    "a thread": in_a_thread,
}


@pytest.mark.parametrize("where", WHERE)
def test_a_tool_answers_for_its_tree_in_no_thread_either(where: str) -> None:
    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        return await WHERE[where](lambda: answer(on, question[0]))

    on = stage("allow look, mail\nask mail", look=look)
    question: list[Question] = []

    async def story() -> tuple[TurnResult, bool, str, bool]:
        question.append(await waits(on))
        result = await on.turn(ScriptedModel(LOOK, "done"))
        before = await approved(on)
        afterwards = await WHERE[where](lambda: answer(on, question[0]))
        return result, before, afterwards, await approved(on)

    result, before, afterwards, after = asyncio.run(story())
    assert told(result) == [UNDER_WAY]
    assert (before, afterwards, after) == (False, "taken", True)


def test_a_person_answers_once_the_turn_has_paused() -> None:
    """One of two parallel calls waits; while the other still runs, the button does nothing but say so."""
    runs, pressed = asyncio.Event(), asyncio.Event()
    asked: list[Question] = []

    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        runs.set()
        await pressed.wait()
        return "seen"

    async def later(question: Question) -> Later:
        asked.append(question)
        return Later()

    on = stage("allow look, mail\nask mail\nruntime { parallel_tools on }", look=look)
    on.approvers = Approvers(later)

    async def story() -> TurnResult:
        both = ScriptedModel(calls(("look", {"at": "x"}), ("mail", MAIL)))
        turn = asyncio.create_task(on.turn(both))
        await runs.wait()
        with pytest.raises(PermitError, match=UNDER_WAY):
            await on.run.approvals.answer(asked[0], YES)
        pressed.set()
        paused = await turn
        assert paused.status == "paused"
        await on.run.approvals.answer(paused.questions[0], YES)
        return await on.turn(ScriptedModel("done"), messages=paused.messages, resume=paused.state)

    assert asyncio.run(story()).status == "done"
    assert on.names == ["look", "mail"]


def test_who_answers_at_once_is_heard_beside_a_call_that_runs() -> None:
    asked = asyncio.Event()

    async def person(_question: Question) -> Approve:
        asked.set()
        return YES

    on = stage("allow look, mail\nask mail")
    on.approvers = Approvers(person)

    async def story() -> bool:
        running = await admit(on.run, "look", {"at": "x"}, on.io)
        assert isinstance(running, Admitted)
        async with running:
            await running.start()
            mail = await admit(on.run, "mail", MAIL, on.io)
        assert isinstance(mail, Admitted)
        await mail.abandon()
        return asked.is_set()

    assert asyncio.run(story())


def test_who_answers_at_once_is_heard_by_a_child_while_its_delegators_call_runs() -> None:
    async def hand_over(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await context.delegate(arguments["agent"], arguments["task"])

    async def delegate(above: ResolvedAgentExecution, agent: str, task: str, _independent: bool) -> ToolResult:
        run = above.resolver.resolve(agent, session=Session(interactive=True, client="c", id="t"), parent=above)
        registry = await on.assemble(run)
        model = ResolvedModelAccess(ScriptedModel(calls(("mail", MAIL)), "mailed"))
        result = await run_tool_call_loop(run, model, on.io, [Message("user", task)])
        await registry.close()
        return result.for_delegator()

    rules = "allow hand_over, mail; delegate to b"
    on = stage(rules, above="agent b { allow mail; ask mail }", hand_over=hand_over)
    on.delegate, on.approvers = delegate, Approvers(person := Person(YES))
    handed = calls(("hand_over", {"agent": "b", "task": "t"}))
    assert told(asyncio.run(on.turn(ScriptedModel(handed, "done")))) == ["mailed"]
    assert (on.names, len(person.asked)) == (["hand_over", "mail"], 1)


async def started(on: Stage) -> Admitted:
    call = await admit(on.run, "look", {"at": "x"}, on.io)
    assert isinstance(call, Admitted)
    await call.start()
    return call


def test_a_call_that_nobody_holds_any_more_keeps_nobody_from_answering() -> None:
    on = stage("allow look, mail\nask mail")

    async def story() -> tuple[str, str]:
        question = await waits(on)
        call = await asyncio.create_task(started(on))
        held = await in_an_executor(lambda: answer(on, question))
        del call
        gc.collect()
        return held, await in_an_executor(lambda: answer(on, question))

    assert asyncio.run(story()) == (UNDER_WAY, "taken")


def test_the_calls_of_another_tree_keep_nobody_from_answering() -> None:
    on = stage("allow look, mail\nask mail")
    other = stage("allow look", session=Session(client="c", id="another"))

    async def story() -> bool:
        question = await waits(on)
        call = await asyncio.create_task(started(other))
        await on.run.approvals.answer(question, YES)
        await call.finish(ok=True)
        return await approved(on)

    assert asyncio.run(story())


def test_a_call_of_a_child_is_one_of_its_tree() -> None:
    on = stage("allow look, mail; ask mail; delegate to b", above="agent b { allow look }")

    async def story() -> str:
        question = await waits(on)
        run = on.resolver.resolve("b", session=Session(client="c", id="t"), parent=on.run)
        call = await admit(run, "look", {"at": "x"}, on.io)
        assert isinstance(call, Admitted)
        async with call:
            await call.start()
            return await in_an_executor(lambda: answer(on, question))

    assert asyncio.run(story()) == UNDER_WAY
