"""Tools that run tools, load skills, hand work over: all of it within the execution that called them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.loop.stage import TOOLS, Stage, play, stage, told
from zcpolicy import PermitError, ResolvedAgentExecution, ResolveError, Session
from zcpolicy.approvals.question import Answer, Approve, Approvers, Later, Question
from zcpolicy.loop.access import ResolvedModelAccess
from zcpolicy.loop.loop import run_tool_call_loop
from zcpolicy.loop.messages import Message
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.registry.host_tools import load_skill_tool, pipeline_tool
from zcpolicy.registry.sources import SkillSource, ToolContext, ToolResult
from zcpolicy.tickets import Ticket, redeemed

FETCH = {"tool": "fetch", "arguments": {"url": "https://x.org/"}}
MAIL = {"tool": "mail", "arguments": {"to": "x"}}
SHELL = {"tool": "shell", "arguments": {"command": "ls"}}


def piped(rules: str, *steps: dict[str, Any], **tools: Any) -> tuple[Stage, list[str]]:
    on = stage(rules, pipeline=pipeline_tool().run, **tools)
    result, _ = play(on, calls(("pipeline", {"steps": list(steps)})), "done")
    assert on.open_reservations() == []
    return on, told(result)


def test_the_steps_of_a_pipeline_run_in_order() -> None:
    on, answers = piped("allow pipeline, fetch, mail", FETCH, MAIL)
    assert on.names == ["pipeline", "fetch", "mail"]
    assert answers == ["1. fetch is done\n2. mail is done"]


@pytest.mark.parametrize(
    ("rules", "steps", "why"),
    {
        "a tool that is denied": ("allow pipeline, fetch", [FETCH, SHELL], "no step ran: step 2 names no tool"),
        "arguments that are denied": (
            'allow pipeline, fetch, mail; deny mail when args.to == "x"',
            [FETCH, MAIL],
            "Nothing was run, because of mail: This call is not permitted.",
        ),
        "a label of an earlier step": (
            "allow pipeline, fetch, mail; mark untrusted on fetch; deny mail when marked untrusted",
            [FETCH, MAIL],
            "Nothing was run, because of mail: This call is not permitted.",
        ),
        "a limit that has room for one": (
            "allow pipeline, fetch, mail; limit 1 calls to mail",
            [MAIL, FETCH, MAIL],
            "Nothing was run, because of mail: A limit is reached.",
        ),
        "nobody to ask": (
            "allow pipeline, fetch, mail; ask mail",
            [FETCH, MAIL],
            "Nothing was run, because of mail: This call needs somebody's approval",
        ),
    }.values(),
)
def test_a_pipeline_with_one_refused_step_runs_none(rules: str, steps: list[dict[str, Any]], why: str) -> None:
    on, answers = piped(rules, *steps)
    assert on.names == ["pipeline"]
    assert answers[0].startswith(f"[failed] {why}")


def test_a_refused_pipeline_spends_nothing_but_its_own_call() -> None:
    on, _ = piped("allow pipeline, fetch, mail; limit 1 calls to fetch; deny mail", FETCH, MAIL)
    play(on, calls(("fetch", {"url": "https://x.org/"})), "done")
    assert on.names == ["pipeline", "fetch"]


def test_a_step_is_asked_about_and_a_later_answer_is_none() -> None:
    for answer, ran in ((Approve(), ["pipeline", "mail"]), (Later(), ["pipeline"])):

        async def person(_question: Question, given: Answer = answer) -> Answer:
            return given

        on = stage("allow pipeline, mail; ask mail", pipeline=pipeline_tool().run)
        on.approvers = Approvers(person)
        play(on, calls(("pipeline", {"steps": [MAIL]})), "done")
        assert on.names == ran


def test_a_step_that_fails_counts_and_the_next_one_runs() -> None:
    async def breaks(_arguments: dict[str, Any], _context: ToolContext) -> str:
        raise RuntimeError("inside")

    on, answers = piped("allow pipeline, fetch, mail", FETCH, MAIL, fetch=breaks)
    assert on.names == ["pipeline", "fetch", "mail"]
    assert answers == ["[failed] 1. failed: The tool failed.\n2. mail is done"]


def nested(levels: int, width: int) -> dict[str, Any]:
    """Pipelines of pipelines; at the bottom they look."""
    if levels == 0:
        return {"tool": "look", "arguments": {"at": "x"}}
    return {"tool": "pipeline", "arguments": {"steps": [nested(levels - 1, width)] * width}}


def test_all_calls_that_one_call_leads_to_are_counted_together() -> None:
    on, answers = piped("allow pipeline, look", *[nested(1, 40)] * 40)
    assert on.names.count("look") == 24 * 40  # with the 40 pipelines that is as many whole ones as 1,000 has room for
    assert answers[0].count("this is more than one call may lead to") == 16


def test_tools_that_run_tools_are_bounded_in_depth() -> None:
    on, answers = piped("allow pipeline, look", nested(20, 1))
    assert (on.names.count("pipeline"), on.names.count("look")) == (17, 0)
    assert "this is more than one call may lead to" in answers[0]


def test_other_turns_go_on_while_a_tool_makes_many_calls() -> None:
    on = stage("allow pipeline, look", pipeline=pipeline_tool().run)

    async def story() -> float:
        longest = 0.0

        async def beats() -> None:
            nonlocal longest
            while True:
                before = asyncio.get_running_loop().time()
                await asyncio.sleep(0)
                longest = max(longest, asyncio.get_running_loop().time() - before)

        heart = asyncio.create_task(beats())
        await on.turn(ScriptedModel(calls(("pipeline", {"steps": [nested(1, 99)] * 9})), "done"))
        heart.cancel()
        return longest

    assert asyncio.run(story()) < 0.3
    assert on.names.count("look") == 9 * 99


def test_steps_whose_time_is_over_are_not_made() -> None:
    async def slow(_arguments: dict[str, Any], _context: ToolContext) -> str:
        await asyncio.sleep(0.4)
        return "late"

    on = stage(
        "allow pipeline, look; runtime { turn_timeout 1s, call_timeout 60s }", pipeline=pipeline_tool().run, look=slow
    )
    result, _ = play(on, calls(("pipeline", {"steps": [nested(0, 1)] * 20})), "done")
    assert (result.status, on.names.count("look") <= 4) == ("stopped", True)
    assert on.open_reservations() == []


# --- skills --------------------------------------------------------------------------------------------------------

SKILL = {"deploy": SkillSource("how to deploy", "First look, then leap.")}


def test_a_loaded_skill_holds_from_then_on_and_for_the_session() -> None:
    on = stage(
        "skills deploy; allow load_skill, look, mail",
        above="skill deploy { only look, load_skill }",
        skills=SKILL,
        load_skill=load_skill_tool().run,
    )
    batch = calls(("mail", {"to": "x"}), ("load_skill", {"skill": "deploy"}), ("mail", {"to": "x"}))
    result, model = play(on, batch, "done")
    assert on.names == ["mail", "load_skill"]
    assert told(result)[1] == "First look, then leap."
    assert [tool.wire for tool in model.requests[1].tools] == ["load_skill", "look"]
    assert "First look, then leap." in model.requests[1].system
    again, _ = play(on, calls(("mail", {"to": "x"})), "done")
    assert told(again) == ["This tool is not part of this task. Use another tool."]


def test_a_skill_holds_for_calls_that_were_admitted_and_not_yet_sent() -> None:
    on = stage(
        "skills deploy; allow load_skill, look, mail; runtime { parallel_tools on }",
        above="skill deploy { only look, load_skill }",
        skills=SKILL,
        load_skill=load_skill_tool().run,
    )
    result, _ = play(
        on, calls(("load_skill", {"skill": "deploy"}), ("look", {"at": "x"}), ("mail", {"to": "x"})), "done"
    )
    assert on.names == ["load_skill", "look"]
    assert told(result)[2] == "This tool is not part of this task. Use another tool."


def test_a_skill_that_is_not_the_agents_is_not_loaded_and_the_model_cannot_tell_it_from_none() -> None:
    on = stage("allow load_skill", above="skill deploy { only look }", load_skill=load_skill_tool().run, skills=SKILL)
    result, _ = play(on, calls(("load_skill", {"skill": "deploy"}), ("load_skill", {"skill": "ghost"})), "done")
    assert told(result) == ["[failed] The skill was not loaded: this skill cannot be loaded here."] * 2
    assert on.session.skills == frozenset()
    assert [event.data["refused"] for event in on.events if event.kind == "skill"] == [
        "agent `a` may not load skill `deploy`",
        "there is no skill `ghost`",
    ]


# --- delegation ----------------------------------------------------------------------------------------------------


async def _hand_over(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return await context.delegate(arguments["agent"], arguments["task"])


def with_child(rules: str, child: str, script: Sequence[Any], **more: Any) -> Stage:
    """A stage whose `hand_over` runs the loop for a child, as a host does."""
    on = stage(rules, above=f"agent b {{ {child} }}", hand_over=_hand_over, **more)

    async def delegate(above: ResolvedAgentExecution, agent: str, task: str, independent: bool) -> ToolResult:
        session = Session(interactive=True, client="c", id=f"{task}", above=above.session)
        run = above.resolver.resolve(agent, session=session, parent=above, surface="delegate", independent=independent)
        registry = await on.assemble(run)
        try:
            model = ResolvedModelAccess(ScriptedModel(*script))
            result = await run_tool_call_loop(run, model, on.io, [Message("user", task)])
        finally:
            await registry.close()
        return ToolResult(result.text, ok=result.status == "done")

    on.delegate = delegate
    return on


HANDED = calls(("hand_over", {"agent": "b", "task": "t"}), ("mail", {"to": "x"}))


def test_a_childs_answer_brings_its_labels() -> None:
    on = with_child(
        "allow hand_over, mail, fetch; delegate to b; deny mail when marked untrusted",
        "allow fetch; mark untrusted on fetch",
        [calls(("fetch", {"url": "https://x.org/"})), "read it"],
    )
    result, _ = play(on, HANDED, "done")
    assert on.names == ["hand_over", "fetch"]
    assert told(result)[0] == "read it"
    assert on.session.labels == {"untrusted"}


def test_a_child_that_fails_brings_its_labels_all_the_same() -> None:
    on = with_child(
        "allow hand_over, mail, fetch; delegate to b; deny mail when marked untrusted",
        "allow fetch; mark untrusted on fetch",
        [calls(("fetch", {"url": "https://x.org/"}))],  # and then the model has nothing more to say
    )
    result, _ = play(on, HANDED, "done")
    assert on.names == ["hand_over", "fetch"]
    assert told(result)[0].startswith("[failed]")


def test_a_bounded_child_can_do_no_more_than_its_delegator() -> None:
    on = with_child(
        "allow hand_over, look; delegate to b",
        "allow look, shell",
        [calls(("shell", {"command": "ls"}), ("look", {"at": "x"})), "looked"],
    )
    play(on, calls(("hand_over", {"agent": "b", "task": "t"})), "done")
    assert on.names == ["hand_over", "look"]


def test_a_child_that_cannot_be_is_a_failed_result_and_the_model_cannot_tell_it_from_none() -> None:
    on = with_child("allow hand_over, look; delegate to b", "allow look }\nagent boss { allow look", ["hi"])
    tried = [("hand_over", {"agent": agent, "task": "t"}) for agent in ("ghost", "boss")]
    result, _ = play(on, calls(*tried), "done")
    assert told(result) == ["[failed] The task was not handed over: it cannot be handed to this agent here."] * 2
    assert [event.data["refused"] for event in on.events if "refused" in event.data and event.kind == "delegation"] == [
        "there is no agent `ghost`",
        "agent `a` may not delegate to `boss`",
    ]


def test_a_host_that_does_not_delegate_says_so() -> None:
    on = stage("allow hand_over, look; delegate to b", above="agent b { allow look }", hand_over=_hand_over)
    result, _ = play(on, calls(("hand_over", {"agent": "b", "task": "t"})), "done")
    assert told(result) == ["[failed] this host does not delegate"]


def test_what_a_child_spends_counts_above() -> None:
    on = with_child(
        "allow hand_over, look; delegate to b; limit 1 calls to look",
        "allow look",
        [calls(("look", {"at": "x"}), ("look", {"at": "y"})), "looked"],
    )
    play(on, calls(("hand_over", {"agent": "b", "task": "t"}), ("look", {"at": "z"})), "done")
    assert on.names == ["hand_over", "look"]


def test_a_child_of_a_child_is_bounded_by_both() -> None:
    on = stage("allow look; delegate to b", above="agent b { allow look }")
    run = on.resolver.resolve("b", session=on.session, parent=on.run)
    with pytest.raises(ResolveError):
        on.resolver.resolve("a", session=on.session, parent=run)


def test_a_ticket_for_later_is_of_the_execution_of_the_call_and_worth_nothing_after_it() -> None:
    async def plan(_arguments: dict[str, Any], context: ToolContext) -> str:
        tickets.extend([context.later(), context.later("b")])
        found.extend(map(redeemed, tickets))
        return "planned"

    tickets: list[Ticket] = []
    found: list[object] = []
    on = stage("allow look", look=plan)
    play(on, calls(("look", {"at": "x"})), "done")
    assert found == [(on.run, "a"), (on.run, "b")]
    for ticket in tickets:
        with pytest.raises(PermitError, match="the call is over"):
            redeemed(ticket)


def test_a_tool_sees_who_acts_and_what_may_be_called() -> None:
    async def who(_arguments: dict[str, Any], context: ToolContext) -> str:
        return f"{context.identity.agent} {context.identity.client} {sorted(map(str, context.registry.names()))}"

    on = stage("allow look, mail", look=who)
    result, _ = play(on, calls(("look", {"at": "x"})), "done")
    assert told(result) == ["a c ['look', 'mail']"]


def test_an_approver_cannot_set_the_agent_to_work_that_it_is_asked_about() -> None:
    on = stage("allow look, mail; ask mail")
    raised: list[str] = []

    async def eager(_question: Question) -> Answer:
        model = ResolvedModelAccess(ScriptedModel("done"))
        try:
            await run_tool_call_loop(on.run, model, on.io, [Message("user", "go")])
        except ResolveError as error:
            raised.append(str(error))
        return Approve()

    on.approvers = Approvers(eager)
    play(on, calls(("mail", {"to": "x"})), "done")
    assert raised == ["an approver cannot set the agents to work that it is asked about"]


def test_the_loop_takes_an_execution_and_nothing_else() -> None:
    on = stage("allow look")
    model = ResolvedModelAccess(ScriptedModel("done"))
    stranger: Any
    for stranger in ([on.tool("look")], object.__new__(ResolvedAgentExecution), None, TOOLS):
        with pytest.raises(TypeError):
            asyncio.run(run_tool_call_loop(stranger, model, on.io, []))
    assert on.events == []
