"""What an embedding host writes has exact types; a misspelt answer is found."""

from typing import Literal, assert_type

import policy_lang
import zcpolicy


def five_lines(path: str) -> bool:
    program = policy_lang.load(path)
    assert_type(program, zcpolicy.Program)
    run = zcpolicy.Resolver(program).resolve("coder", session=zcpolicy.Session(cwd="/repo"))
    decision = run.decide(("github", "get_me"), {})
    assert_type(decision.effect, Literal["allow", "ask", "deny"])
    return decision.effect == "alow"  # error: Non-overlapping equality check || Condition will always evaluate to False


def a_name_of_three_parts(run: zcpolicy.ResolvedAgentExecution) -> None:
    run.decide(("github", "get", "me"), {})  # error: "tuple[str, str, str]" || Tuple size mismatch


async def a_call_of_a_loop(run: zcpolicy.ResolvedAgentExecution, io: zcpolicy.ResolvedIo) -> str:
    call = await zcpolicy.admit(run, "shell", {"command": "git status"}, io)
    if not isinstance(call, zcpolicy.Admitted):
        return "waits" if isinstance(call, zcpolicy.Paused) else call.text
    assert_type(call.wire, str)
    return zcpolicy.SqliteLeger  # error: has no attribute "SqliteLeger" || "SqliteLeger" is not a known attribute


def a_deny_is_no_no(run: zcpolicy.ResolvedAgentExecution) -> str:
    if run.decide("shell", {}):  # error: could always be true || Invalid conditional operand
        return "runs"
    denied = run.budgets.iteration("k")
    if denied:  # None, or a deny
        return denied.note
    return run.decide("shell", {}).effect


async def a_refusal_is_no_no(run: zcpolicy.ResolvedAgentExecution, io: zcpolicy.ResolvedIo) -> None:
    if await zcpolicy.admit(run, "shell", {}, io):  # error: could always be true || Invalid conditional operand
        print("runs")


class OnlyAName:
    name = "mine"


def a_loop_of_its_own(run: zcpolicy.ResolvedAgentExecution) -> zcpolicy.Verdict | None:
    access = zcpolicy.ResolvedModelAccess(OnlyAName(), max_output_tokens=100)
    assert_type(access, zcpolicy.ResolvedModelAccess[OnlyAName])
    run.budgets.model_done("k", access, zcpolicy.Usage(1, 1))
    return run.budgets.model_call("k", access, 50)


async def our_loop_needs_more(run: zcpolicy.ResolvedAgentExecution, io: zcpolicy.ResolvedIo) -> None:
    access = zcpolicy.ResolvedModelAccess(OnlyAName())
    await zcpolicy.run_tool_call_loop(run, access, io, [])  # error: expected "ResolvedModelAccess[Model]" || is not assignable to "ResolvedModelAccess[Model]"


def an_access_by_default(access: zcpolicy.ResolvedModelAccess) -> zcpolicy.Model:
    return access.model


def limits_in_words() -> zcpolicy.Narrowing:
    return zcpolicy.Narrowing(limits=["3 calls per hour"])
