"""The cases: every policy of `accept` compiles and its tests hold, every one of `reject` is refused as it says.

`accept` is asked twice: the compiled policy, and the oracle alone. `reject`: the first comment of each file says on
which line the error stands and what its message, help or fix must name; no second error may stand there.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from policy_lang.compile import Compiled, compile_policy
from policy_lang.diagnostics import Diagnostic
from policy_lang.testing import run_tests
from tests.reference import Policy
from tests.reference.blocks import missed

CASES = Path(__file__).parent / "cases"
ACCEPTED = sorted((CASES / "accept").glob("*.zcpolicy"))
REJECTED = sorted((CASES / "reject").glob("*.zcpolicy"))
EXPECTED = re.compile(r'# expect: error(?: on line (?P<line>[0-9]+))?(?: naming "(?P<text>[^"]*)")?')


def test_there_are_cases_of_both_kinds() -> None:
    assert ACCEPTED
    assert REJECTED


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_an_accepted_policy_compiles_and_its_tests_hold(path: Path) -> None:
    compiled = compile_policy(path)
    assert compiled.program is not None, [one.message for one in compiled.diagnostics]
    results = list(run_tests(compiled.program, compiled.tests))
    assert results
    failed = [
        (one.block.name.value, one.problem, [call.complaint for call in one.calls]) for one in results if not one.passed
    ]
    assert failed == []


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_the_oracle_alone_agrees_with_an_accepted_policy(path: Path) -> None:
    policy = Policy.read(path)
    assert missed(policy, policy.world.root.tree) == []


@dataclass(frozen=True)
class Expected:
    """What the first comment of a rejected policy says."""

    line: int | None
    text: str


def expected(path: Path) -> Expected:
    """The expectation of a rejected policy."""
    found = EXPECTED.fullmatch(path.read_text("utf-8").splitlines()[0])
    assert found is not None, f"{path.name} does not say what is expected"
    return Expected(int(found["line"]) if found["line"] else None, found["text"] or "")


def errors(compiled: Compiled) -> list[Diagnostic]:
    """The errors among the diagnostics."""
    return [one for one in compiled.diagnostics if one.severity == "error"]


def words(one: Diagnostic) -> str:
    """Message, help and fix of a diagnostic."""
    edits = [edit.text for edit in one.fix.edits] if one.fix else []
    return "\n".join([one.message, one.help or "", *edits])


@pytest.mark.parametrize("path", REJECTED, ids=lambda path: path.stem)
def test_a_rejected_policy_is_refused_where_and_as_it_says(path: Path) -> None:
    compiled, want = compile_policy(path), expected(path)
    assert compiled.program is None
    found = errors(compiled)
    assert len(found) == 1, [one.message for one in found]
    if want.line is not None:
        assert found[0].source.position(found[0].span.start).line == want.line
    assert want.text in words(found[0])
