"""Each word of the language has a test that fails without it.

The words are read from the grammar, the codes of the reasons from the engine; nothing is listed twice, so that a new
word without a test fails here. A word has a test where it stands in a statement of the tables of `test_lower` (each is
compared with what it compiles to) or in a policy of `tests/cases/accept` (whose `test` blocks hold). That such a test
does fail without the word was tried by altering the code, branch by branch.
"""

import re
from pathlib import Path

import pytest

from tests.policy_lang import test_lower
from zcpolicy.combine import REASONS

ROOT = Path(__file__).parents[2]
GRAMMAR = (ROOT / "grammar" / "zcpolicy.lark").read_text("utf-8")
ACCEPTED = "\n".join(
    path.read_text("utf-8") for path in sorted((ROOT / "tests" / "cases" / "accept").glob("*.zcpolicy"))
)
TABLES = "\n".join([test_lower.HEAD, *test_lower.STATEMENTS, *test_lower.SETTINGS, *test_lower.CONDITIONS])
RULE = re.compile(r"^[!?]?(?P<name>[a-z_]+):(?P<body>.*(?:\n\s+\|.*)*)", re.MULTILINE)

FILES = {"catalog", "import", "as", "agents", "allowed", "trust", "hints", "runs tools"}
"""Words that need other files, or hints: `test_layers`, `test_names` and `test_small_print` have them."""

NOT_YET = {"stale-policy"}
"""Reasons that nothing gives before there is a host that reloads."""


def alternatives(rule: str) -> list[str]:
    """The ways to write a rule that consist of words only."""
    body = next(found["body"] for found in RULE.finditer(GRAMMAR) if found["name"] == rule)
    ways = (way.split("->")[0].strip() for way in re.split(r"\n?\s*\| ", body))
    return [way.replace('"', "") for way in ways if re.fullmatch(r'"[^"]+"(?: "[^"]+")*', way)]


def words() -> list[str]:
    """Every word between quotation marks."""
    return sorted(set(re.findall(r'"([a-z_]+)"', GRAMMAR)) - FILES - {"tools"})


def stands(text: str, where: str) -> bool:
    """Whether these words stand there, one after the other."""
    inner = r"\s+".join(map(re.escape, text.split()))
    return re.search(rf"(?<![\w-]){inner}(?![\w-])", where) is not None


@pytest.mark.parametrize("word", words())
def test_every_word_stands_in_a_test(word: str) -> None:
    assert stands(word, TABLES) or stands(word, ACCEPTED)


@pytest.mark.parametrize("way", ["count", "window", "calendar_unit", "pot", "level", "memory_of_answers", "drift"])
def test_every_unit_window_and_option_stands_in_a_table(way: str) -> None:
    assert [text for text in alternatives(way) if not stands(text, TABLES)] == []


@pytest.mark.parametrize("operator", alternatives("operator"))
def test_every_operator_stands_in_a_case_on_each_side(operator: str) -> None:
    spelled = r"\s+".join(map(re.escape, operator.split()))
    rules = [line for line in ACCEPTED.splitlines() if re.search(rf"(?<=\s){spelled}(?=\s)", line)]
    grants = any(re.search(r"\ballow \S+ when\b", line) for line in rules)
    withholds = any(re.search(r"\bdeny\b.* when\b", line) for line in rules)
    assert (grants or operator == "runs any", withholds or operator == "runs only") == (True, True)


@pytest.mark.parametrize("kind", alternatives("kind_name"))
def test_every_kind_stands_in_a_case(kind: str) -> None:
    assert re.search(rf"[:<]\s*{kind}\b", ACCEPTED + TABLES)


@pytest.mark.parametrize("reason", sorted(set(REASONS) - NOT_YET))
def test_every_reason_is_asserted_by_name(reason: str) -> None:
    tests = [*(ROOT / "tests" / "engine").glob("*.py"), *(ROOT / "tests" / "policy_lang").glob("*.py")]
    assert any(f'"{reason}"' in path.read_text("utf-8") for path in tests) or stands(f"deny {reason}", ACCEPTED)
