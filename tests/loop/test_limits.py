"""Limits and reloads while a turn runs: where it stops, and what it says."""

import asyncio
from decimal import Decimal
from typing import Any

import policy_lang
from tests.loop.stage import TOOLS, play, stage, told
from zcpolicy import Session
from zcpolicy.approvals.question import Answer, Approve, Approvers, Later, Question
from zcpolicy.events import Event
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.loop import TurnResult, run_tool_call_loop
from zcpolicy.loop.messages import Message, Usage
from zcpolicy.loop.scripted import ScriptedModel, calls
from zcpolicy.prices import PriceTable
from zcpolicy.registry.sources import ToolContext, ToolResult

LOOK = ("look", {"at": "x"})


def prices(each: str) -> PriceTable:
    """So much for a million tokens, in and out."""
    return PriceTable({"scripted": Decimal(each)})


def test_money_is_spent_by_requests_and_the_turn_stops_before_the_one_that_has_no_room() -> None:
    on = stage("allow look; limit 1.00 usd per day")
    # a request reserves some 4 200 tokens, and uses 300: three of them leave too little for a fourth
    result, model = play(on, *[calls(LOOK, usage=Usage(200, 100))] * 9, prices=prices("200"), max_output_tokens=4_000)
    assert (result.status, result.reason) == ("stopped", "budget")
    assert len(model.requests) == 3
    assert result.retry_after is not None
    assert "limit 1.00 usd per day" in result.note


def test_a_model_without_a_price_is_not_asked_under_a_money_limit() -> None:
    result, model = play(stage("allow look; limit 1.00 usd per day"), "done")
    assert (result.status, result.reason, model.requests) == ("stopped", "budget", [])
    assert result.note == "model `scripted` has no price, and a limit in usd holds (limit 1.00 usd per day)"


def test_a_request_that_is_dearer_than_its_limit_says_so() -> None:
    result, _ = play(stage("allow look; limit 1.00 usd per day"), "done", prices=PriceTable({"scripted": (0, 500)}))
    assert (result.status, result.reason, result.retry_after) == ("stopped", "budget", None)
    assert result.note == (
        "one request reserves 2.048 usd, and the limit is 1.00 usd: lower `max_output_tokens`, or raise the limit "
        "(limit 1.00 usd per day)"
    )


def test_a_list_of_prices_that_fails_is_named_as_what_it_is() -> None:
    class Broken:
        def cost(self, model: str, input_tokens: int, output_tokens: int) -> None:
            raise KeyError(model, input_tokens, output_tokens)

    on = stage("allow look; limit 1.00 usd per day")
    result, model = play(on, "done", prices=Broken())
    assert model.requests == []
    assert "`scripted` has no price since the price function failed (KeyError), and a limit in usd holds" in result.note
    assert [event.data["note"] for event in on.events if event.kind == "stopped"] == [result.note]


def test_what_a_tool_says_it_cost_counts() -> None:
    async def dear(_arguments: dict[str, Any], _context: ToolContext) -> ToolResult:
        return ToolResult("done", cost={"usd": Decimal("0.75")})

    on = stage("allow look; limit 1.00 usd per day", look=dear)
    result, _ = play(on, *[calls(LOOK)] * 9, prices=prices("0.01"))
    assert on.names == ["look", "look"], "the second began with room, and is recorded whole"
    assert (result.status, result.reason) == ("stopped", "budget")


def test_an_answer_is_as_long_as_a_limit_on_tokens_leaves_room_for() -> None:
    on = stage("allow look; limit 1_000 tokens per turn")
    _, model = play(on, calls(LOOK), "done", max_output_tokens=4_000)
    first, second = (request.max_output_tokens for request in model.requests)
    assert first is not None
    assert second is not None
    assert 0 < second < first < 1_000
    result, _ = play(stage("allow look; limit 20 tokens per turn"), "done")
    assert (result.status, result.reason) == ("stopped", "budget")


def test_a_limit_on_time_cuts_a_call_off() -> None:
    async def slow(_arguments: dict[str, Any], _context: ToolContext) -> str:
        await asyncio.sleep(5)
        return "late"

    on = stage("allow look; limit 1s time per turn", look=slow)
    result, model = play(on, calls(LOOK), "done")
    assert told(result)[0].startswith("[failed] The tool did not answer within ")
    assert (result.status, len(model.requests)) == ("stopped", 1)
    assert result.reason == "budget"


def test_a_policy_that_is_tightened_holds_from_the_next_call_on() -> None:
    on = stage("allow look, mail")

    async def reload(_arguments: dict[str, Any], _context: ToolContext) -> str:
        on.resolver.publish(policy_lang.loads(f"zcpolicy 1\n{TOOLS}\nagent a {{ allow look }}"))
        return "reloaded"

    on.tools["look"] = reload
    result, model = play(on, calls(("mail", {"to": "1"}), LOOK, ("mail", {"to": "2"})), "done")
    assert on.ran == [("mail", {"to": "1", "body": "hello"}), ("look", {"at": "x"})]
    assert told(result)[2].startswith("This call is not permitted.")
    assert [[tool.wire for tool in request.tools] for request in model.requests] == [["look", "mail"], ["look"]]


def test_an_agent_that_is_gone_stops() -> None:
    on = stage("allow look")

    async def reload(_arguments: dict[str, Any], _context: ToolContext) -> str:
        on.resolver.publish(policy_lang.loads(f"zcpolicy 1\n{TOOLS}\nagent b {{ allow look }}"))
        return "reloaded"

    on.tools["look"] = reload
    result, _ = play(on, calls(LOOK, LOOK), "done")
    assert on.names == ["look"]
    assert (result.status, result.reason) == ("stopped", "stale-policy")
    assert told(result)[1] == "This agent is not known here. Do not retry."


def test_a_limit_per_turn_begins_anew_with_each_turn_and_a_child_in_the_session_has_none_of_its_own() -> None:
    on = stage("allow look; limit 1 calls to look per turn; delegate to b", above="agent b { allow look }")
    for _ in range(2):
        play(on, calls(LOOK, LOOK), "done")
    assert on.names == ["look", "look"]

    async def child() -> TurnResult:
        run = on.resolver.resolve("b", session=on.session, parent=on.run)
        registry = await on.assemble(run)
        try:
            model = ResolvedModelAccess(ScriptedModel(calls(LOOK), "done"))
            return await run_tool_call_loop(run, model, on.io, [Message("user", "go")])
        finally:
            await registry.close()

    assert told(asyncio.run(child()))[0].startswith("A limit is reached.")
    assert on.names == ["look", "look"]


def test_a_record_that_fails_while_calls_run_at_once_does_not_hide_what_was_made() -> None:
    finished: list[str] = []

    def record(event: Event) -> None:
        if event.data.get("phase") == "finished":
            finished.append(event.data["key"])
            if len(finished) == 2:
                raise OSError("the disk is full")

    async def steps(arguments: dict[str, Any], _context: ToolContext) -> str:
        for _ in range(int(arguments["at"])):
            await asyncio.sleep(0)
        return f"looked at {arguments['at']}"

    on = stage("allow look; runtime { parallel_tools on }", look=steps)

    async def turn() -> TurnResult:
        registry = await on.assemble()
        try:
            model = ResolvedModelAccess(ScriptedModel(calls(*[("look", {"at": at}) for at in "159"])))
            return await run_tool_call_loop(on.run, model, ResolvedIo(record=record), [Message("user", "go")])
        finally:
            await registry.close()

    result = asyncio.run(turn())
    assert (result.status, result.reason, type(result.error)) == ("failed", "host-failed", OSError)
    unknown = "What came of this call is not known: the turn ended while it was made. Look before you make it again."
    assert told(result) == ["looked at 1", unknown, unknown]


def test_usage_that_is_not_known_counts_as_it_was_reserved() -> None:
    on = stage("allow look; limit 1_000_000 tokens", session=Session(client="c", id="s"))
    play(on, calls(LOOK), calls(LOOK, usage=Usage()), "done")
    charged = [int(entry.charge.amount) for entry in on.resolver.ledger.entries() if entry.charge.unit == "tokens"]
    assert charged[0] == charged[2] == 15
    assert charged[1] > 4_096


# --- a newer policy, between admission and sending -------------------------------------------------------------------


def reloading(rules: str, then: str, answers: list[Answer]) -> tuple[TurnResult, list[str]]:
    """Two calls that run at once: while a person thinks about the second, the policy becomes another."""
    on = stage(f"{rules}; runtime {{ parallel_tools on }}")

    async def person(_question: Question) -> Answer:
        if on.resolver.newest is on.resolver:
            on.resolver.publish(
                policy_lang.loads(f"zcpolicy 1\n{TOOLS}\nagent a {{ {then}; runtime {{ parallel_tools on }} }}")
            )
        return answers.pop(0)

    on.approvers = Approvers(person)
    result, _ = play(on, calls(LOOK, ("mail", {"to": "x"})), "done")
    assert on.open_reservations() == []
    return result, on.names


def test_what_was_admitted_before_a_reload_is_decided_again() -> None:
    result, ran = reloading("allow look, mail; ask mail", "allow mail; ask mail", [Approve(), Approve()])
    assert ran == ["mail"]
    assert told(result)[0].startswith("This call is not permitted.")


def test_what_was_admitted_before_a_reload_and_is_still_allowed_runs_once() -> None:
    result, ran = reloading(
        "allow look, mail; ask mail; limit 1 calls to look", "allow look, mail; limit 1 calls to look", [Approve()]
    )
    assert sorted(ran) == ["look", "mail"]
    assert told(result) == ["look is done", "mail is done"]


def test_what_has_to_be_asked_since_a_reload_is_asked_when_the_call_is_made_again() -> None:
    result, ran = reloading("allow look, mail; ask mail", "allow look, mail; ask look", [Approve(), Later(), Later()])
    assert ran == ["mail"]
    assert result.status == "done"
    assert told(result)[0] == (
        "The call was not made: the rules or the session changed before it was sent. Make it again if it is still of use."
    )


def test_a_host_that_asks_the_budgets_itself_has_a_text_for_its_model() -> None:
    on = stage("allow look; limit 1 iterations per hour")
    assert on.run.budgets.iteration("1") is None
    denied = on.run.budgets.iteration("2")
    assert denied is not None
    assert denied.for_model.startswith("A limit is reached. Go on without this call, or call again in ")
