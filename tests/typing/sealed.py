"""Sealed types cannot be made, filled or inherited from outside their one maker."""

from zcpolicy import Decision, Program, ResolvedAgentExecution, Resolver


def make_a_program() -> Program:
    return Program()  # error: Too few arguments for "Program" || Expected 1 more positional argument


def make_a_program_of(data: object) -> Program:
    return Program(data)  # error: expected "Never" || is not assignable to type "Never"


def make_an_execution(resolver: Resolver) -> ResolvedAgentExecution:
    return ResolvedAgentExecution(resolver)  # error: expected "Never" || is not assignable to type "Never"


def alter_a_program(program: Program) -> None:
    program.digest = "0" * 64  # error: Cannot assign to final attribute "digest" || "digest" is declared as Final


def misspell_an_answer(decision: Decision) -> None:
    decision.effect = "alow"  # error: Literal['alow'] || Type "Literal['alow']" is not assignable


def run_what_was_not_checked(text: str) -> Resolver:
    return Resolver(text)  # error: expected "Program" || "str" is not assignable to "Program"
