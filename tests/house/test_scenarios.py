"""Each runtime scenario has a test that carries its number.

The scenarios are read from `tests/cases/runtime.md`; a new one without a test fails here. A test is a function
`test_NUMBER_…` (`test_31_32_…` has two) anywhere under `tests`; in `tests/runtime` its docstring is the scenario's own
sentence, so that test and page cannot drift apart.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from .blocks import ROOT

TESTS = ROOT / "tests"
SCENARIO = re.compile(r"^(?P<number>\d+[a-d]?)\. (?P<text>.+)$", re.MULTILINE)
NAMED = re.compile(r"^test((?:_\d+[a-d]?)+)_")


def scenarios() -> dict[str, str]:
    """The text of each, by number."""
    return {one["number"]: one["text"] for one in SCENARIO.finditer((TESTS / "cases/runtime.md").read_text("utf-8"))}


@cache
def functions() -> tuple[tuple[str, str, str], ...]:
    """The tests that carry numbers: file, name, docstring."""
    return tuple(
        (path.relative_to(TESTS).as_posix(), node.name, ast.get_docstring(node) or "")
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and NAMED.match(node.name)
    )


def numbers(name: str) -> Iterator[str]:
    """The scenarios that a test says it is of."""
    found = NAMED.match(name)
    return iter(found[1].split("_")[1:] if found else [])


def test_the_page_is_read_whole() -> None:
    found = list(scenarios())
    assert [int(re.sub(r"\D", "", one)) for one in found] == sorted(int(re.sub(r"\D", "", one)) for one in found)
    assert {str(number) for number in range(1, 43)} <= set(found)
    assert {"10a", "10b", "10c", "29a", "29b", "29c", "29d"} <= set(found)


@pytest.mark.parametrize("number", list(scenarios()))
def test_a_scenario_has_a_test(number: str) -> None:
    assert [name for _, name, _ in functions() if number in numbers(name)] != []


def test_no_test_carries_a_number_that_is_none() -> None:
    known = set(scenarios())
    files = ("approvals/", "budgets/", "daemon/", "runtime/")
    assert [
        name for file, name, _ in functions() if file.startswith(files) and not known.issuperset(numbers(name))
    ] == []


def test_what_a_test_of_a_scenario_says_is_what_the_page_says() -> None:
    page = scenarios()
    wrong = [
        f"{file}::{name}"
        for file, name, said in functions()
        if file.startswith("runtime/") and (said == "" or not any(said in page[one] for one in numbers(name)))
    ]
    assert wrong == []
