"""A fault of the engine itself: the call does not run, and the decision says so."""

from typing import NoReturn

import pytest

import policy_lang
import zcpolicy
from zcpolicy.execution import ResolvedAgentExecution

IN_PRODUCTION = ResolvedAgentExecution.__dict__["_fault"]  # taken before the tests' own way of meeting faults


def broken(_run: object, _tool: object, _arguments: object) -> NoReturn:
    raise RecursionError


def test_a_fault_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    program = policy_lang.loads("zcpolicy 1\ntool read() risk read\nagent a { allow read }")
    run = zcpolicy.Resolver(program).resolve("a")
    monkeypatch.setattr(ResolvedAgentExecution, "_fault", IN_PRODUCTION)
    monkeypatch.setattr(ResolvedAgentExecution, "_first", broken)
    decision = run.decide("read", {})
    assert (decision.effect, decision.reason) == ("deny", "malformed")
    assert decision.note == "the call could not be judged: RecursionError"


def test_tests_meet_the_fault_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    program = policy_lang.loads("zcpolicy 1\ntool read() risk read\nagent a { allow read }")
    run = zcpolicy.Resolver(program).resolve("a")
    monkeypatch.setattr(ResolvedAgentExecution, "_first", broken)
    with pytest.raises(RecursionError):
        run.decide("read", {})
