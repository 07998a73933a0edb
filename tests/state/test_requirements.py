"""Each requirement on shared state has tests that carry its number, R1 to R18; docs/state.md says what each demands."""

import ast
import re
from pathlib import Path

import pytest

TESTS = [
    node.name
    for path in sorted(Path(__file__).parent.rglob("test_*.py"))
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef)
]


@pytest.mark.parametrize("number", range(1, 19))
def test_a_requirement_has_a_test(number: int) -> None:
    assert [name for name in TESTS if f"_r{number:02}_" in name] != []


def test_no_test_carries_a_number_that_is_none() -> None:
    assert {int(one) for name in TESTS for one in re.findall(r"_r(\d\d)(?=_)", name)} <= set(range(1, 19))
