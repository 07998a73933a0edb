"""Every diagnostic has a page and an example, and they say the same."""

import re

import pytest

from policy_lang.codes import ALL
from policy_lang.compile import compile_text
from policy_lang.explain import explain, pages

from .error_examples import ERRORS, Example, examples

EXAMPLES = examples()
WITHOUT_EXAMPLE = {
    "ZC1090",  # the formatter refuses its own output: no text is known that makes it
    "ZC6010",  # a library that is missing: here they are all there
}
SECTIONS = re.compile(
    r"# (?P<code>ZC\d{4}): (?P<title>[^\n]+)\n"
    r"(?:\n(?P<what>[^#]+?)\n)?"
    r"(?:\n## Avoid\n\n(?P<avoid>.+?)\n)?"
    r"(?:\n## Prefer\n\n(?P<prefer>.+?)\n)?"
    r"\n## Why\n\n(?P<why>.+)\n",
    re.DOTALL,
)
POLICY = re.compile(r"```zcpolicy\n(.*?)```", re.DOTALL)


def test_every_code_has_an_example() -> None:
    assert sorted(example.code for example in EXAMPLES) == sorted(set(ALL) - WITHOUT_EXAMPLE)


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert sorted(path.stem for path in pages().glob("ZC*.md")) == sorted(ALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_shows_its_code_and_no_other(example: Example) -> None:
    assert {finding.code.id for finding in example.findings()} == {example.code}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_is_rendered_as_it_stands_beside_it(example: Example) -> None:
    assert example.rendered() == example.rendering.read_text(encoding="utf-8"), "python -m tests.house.error_examples"


def test_nothing_else_lies_among_the_examples() -> None:
    known = {example.rendering for example in EXAMPLES}
    assert [str(path.relative_to(ERRORS)) for path in ERRORS.rglob("*.txt") if path not in known] == []


@pytest.mark.parametrize("code", sorted(ALL))
def test_a_page_says_what_to_avoid_what_to_prefer_and_why(code: str) -> None:
    page = explain(code)
    assert page is not None
    found = SECTIONS.fullmatch(page.text)
    assert found, "the page has not the sections Avoid, Prefer, Why"
    assert (found["code"], found["title"]) == (code, ALL[code].title)


@pytest.mark.parametrize("example", [one for one in EXAMPLES if len(one.policy.parts) == 1], ids=lambda one: one.name)
def test_what_a_page_avoids_is_the_example(example: Example) -> None:
    page = explain(example.code)
    found = SECTIONS.fullmatch(page.text) if page else None
    assert found
    shown = POLICY.findall(found["avoid"] or "")
    text = (ERRORS / example.policy).read_bytes().decode("utf-8", "replace").partition("\n")[2]
    if shown and "…" not in shown[0] and "<U+" not in shown[0]:
        assert shown[0] == text


@pytest.mark.parametrize("code", sorted(ALL))
def test_what_a_page_prefers_does_not_have_the_finding(code: str) -> None:
    page = explain(code)
    found = SECTIONS.fullmatch(page.text) if page else None
    assert found
    for text in POLICY.findall(found["prefer"] or ""):
        if text.startswith("zcpolicy 1"):
            findings = compile_text(text, name="prefer", folder=ERRORS).diagnostics
            assert [
                f"{finding.code.id}: {finding.message}" for finding in findings if finding.severity == "error"
            ] == []
            assert code not in {finding.code.id for finding in findings}
