"""What `check --fix` writes decides as before, and is no more wrong than before.

Of texts that compile every call has the same answer with and without the safe fixes; of those that do not, one round of
fixes adds no error to those of reading the text.
"""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_lang.compile import compile_text
from policy_lang.diagnostics import Diagnostic, has_errors
from policy_lang.fixes import fixed_texts
from policy_lang.parse import parse
from policy_lang.source import Source
from policy_lang.testing import run_tests
from tests.properties.both import by_engine, compiled, program
from tests.strategies import Story, sketches, stories
from tests.strategies.variations import repeated

PROJECT = Path(__file__).parents[2]
CASES = sorted(
    path
    for folder in ("tests/cases/accept", "tests/cases/reject", "examples/errors")
    for path in (PROJECT / folder).glob("*.zcpolicy")
)
MAX_ROUNDS = 10
WORDS = (
    "deny", "dney", "alow", "ask", "aks", "only", "limit", "unless", "when", "wen", "if", "=", "=~", "&&", "!", "->", "{", "}", ",",
    ";", '"', "for", "before", "approval", "require", "any", "args.a", "\u200b", "\x07", "zcpolicy 1", "none", "connect",
)  # fmt: skip
"""What is put where it does not belong."""


def mended(found: tuple[Diagnostic, ...], text: str) -> str:
    """One round of safe fixes of the text that was named last."""
    return next((fixed.after for fixed in fixed_texts(found) if fixed.before == text), text)


@given(stories(sketches(), most=2), st.data())
def test_what_compiles_decides_as_before(story: Story, data: st.DataObject) -> None:
    sketch = data.draw(repeated(story.sketch))
    policy, text = program(sketch), sketch.text()
    for _ in range(MAX_ROUNDS):
        made = compiled(sketch, text)
        assert not has_errors(made.diagnostics)
        after = mended(made.diagnostics, text)
        if after == text:
            break
        text = after
    answers = [(one.effect, one.reason) for one in by_engine(story, program(sketch, text))]
    assert answers == [(one.effect, one.reason) for one in by_engine(story, policy)]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_tests_of_a_file_have_the_same_answers(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    made = compile_text(text, name=str(path), folder=path.parent)
    again = compile_text(mended(made.diagnostics, text), name=str(path), folder=path.parent)
    if made.program is not None:
        assert again.program is not None
        before, after = run_tests(made.program, made.tests), run_tests(again.program, again.tests)
        assert [[call.effect for call in one.calls] for one in after] == [
            [call.effect for call in one.calls] for one in before
        ]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_spoilt_text_is_no_more_wrong_after_a_round(path: Path) -> None:
    chance, whole = Random(path.stem), path.read_bytes().decode("utf-8", "replace")
    for _ in range(10):
        at = chance.choice([place for place, character in enumerate(whole) if character in " \n"] or [0])
        text = f"{whole[:at]} {chance.choice(WORDS)}{whole[at:]}"
        found = parse(Source("t", text))[1]
        again = parse(Source("t", mended(found, text)))[1]
        assert _errors(again) <= _errors(found), text[max(0, at - 100) : at + 100]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("agent a { allow t; deny t when args.a =~ 'x' }", "a sign of another language"),
        ("agent a { allow t; require approval for t }", "a word that only looks like another"),
        ("agent a { allow t; conect b }", "a grant of more"),
        ('agent a { allow t; deny t unles args.a == "x" }', "a condition"),
        ("agent a { permit t }", "a word of another language"),
        ("bundle b { server s }\nagent a { autonomy full; allow t, s/u }", "a bundle that nobody connects"),
        ("let x = 1\ngroup g = t\nagent a { autonomy full; allow t }", "names that are perhaps to be used"),
        ("agent a { autonomy full; allow\u200bt }", "what may part two words"),
        ("tool f_x()\nagent a { autonomy full; allow any; deny f_x; deny f_* }", "what covers tools that may come"),
        ("tool f_x()\nagent a { autonomy full; allow f_*; only f_x, t }", "what forbids tools that may come"),
    ],
)  # fmt: skip
def test_what_is_a_guess_is_left_alone(written: str, kept: str) -> None:
    text = f"zcpolicy 1\ntool t(a: string) risk low\ntool s/u()\n{written}\n"
    assert mended(compile_text(text, name="p").diagnostics, text) == text, kept


def test_what_another_file_covers_is_left_alone(tmp_path: Path) -> None:
    """The file may be read one day without the one that covers it."""
    shared = "zcpolicy 1\ntool t(a: string) risk low\nagent a {\n    autonomy supervised\n    allow t\n    limit 5 calls per day\n}\n"
    (tmp_path / "shared.zcpolicy").write_text(shared, "utf-8")
    root = 'zcpolicy 1\nimport "shared.zcpolicy"\nceiling { autonomy supervised; limit 5 calls per day }\n'
    found = compile_text(root, folder=tmp_path).diagnostics
    assert sorted(one.code.id for one in found) == ["ZC3108", "ZC3109"]
    assert fixed_texts(found) == ()


def _errors(found: tuple[Diagnostic, ...]) -> int:
    return sum(one.severity == "error" for one in found)
