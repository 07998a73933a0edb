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
    return decision.effect == "alow"  # error: x


def a_joined_name_of_three(run: zcpolicy.ResolvedAgentExecution) -> None:
    run.decide(("github", "get", "me"), {})  # error: x


def a_narrowing(run: zcpolicy.ResolvedAgentExecution) -> zcpolicy.Narrowing:
    return zcpolicy.Narrowing(only=["file_read", ("github", "get_me")], autonomy="fulll")  # error: x
