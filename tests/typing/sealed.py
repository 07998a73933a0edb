"""Sealed types cannot be made, filled or inherited from outside their one maker."""

import zcpolicy
from zcpolicy import Program, ResolvedAgentExecution, Resolver


def make_a_program() -> Program:
    return Program()  # error: x


def make_a_program_of(data: object) -> Program:
    return Program(data)  # error: x


def make_an_execution(resolver: Resolver) -> ResolvedAgentExecution:
    return ResolvedAgentExecution(resolver)  # error: x


def make_a_decision() -> zcpolicy.Decision:
    return zcpolicy.Decision()  # error: x


def alter_a_program(program: Program) -> None:
    program.digest = "0" * 64  # error: x


def alter_a_decision(decision: zcpolicy.Decision) -> None:
    decision.effect = "allow"  # error: x


def run_what_was_not_checked(text: str) -> Resolver:
    return Resolver(text)  # error: x
