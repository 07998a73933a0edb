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
