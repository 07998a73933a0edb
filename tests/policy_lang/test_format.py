"""The canonical layout: what it looks like, that it is stable, that it keeps every comment and never lies."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_lang import ast, codes
from policy_lang.format import format_file, format_source, is_same
from policy_lang.parse import parse
from policy_lang.pretty.files import Files
from policy_lang.source import Source
from tests.policy_lang.syntax_files import Chunk, chunks

ROOT = Path(__file__).resolve().parents[2]
POLICIES = [
    path
    for pattern in ("tests/cases/accept/*.zcpolicy", "examples/**/*.zcpolicy")
    for path in sorted(ROOT.glob(pattern))
    if path.is_file()
]


def text_of(path: Path) -> str:
    """A policy's text; one of the examples of errors is no text."""
    return path.read_bytes().decode("utf-8", "replace")


def formatted(text: str) -> str:
    """The layout of a text, which is its own layout."""
    once, found = format_source(Source("t", text))
    assert once is not None, found
    twice, _ = format_source(Source("t", once))
    assert twice == once
    return once


HEAD = "zcpolicy 1\n\n"


@pytest.mark.parametrize("chunk", chunks("layouts.txt"), ids=lambda chunk: chunk.name)
def test_layout(chunk: Chunk) -> None:
    expected = "".join(f"{line[2:]}\n" for line in chunk.expected.split("\n"))
    assert formatted(HEAD + chunk.text) == HEAD + expected


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_policies_are_laid_out_without_loss(path: Path) -> None:
    source = Source(path.name, text_of(path))
    file, found = parse(source)
    if any(one.severity == "error" for one in found):
        assert format_source(source) == (None, found)
        return
    again, _ = parse(Source("t", formatted(source.text)))
    assert is_same(file, again)


@pytest.mark.parametrize("chunk", chunks("trees.txt"), ids=lambda chunk: chunk.name)
def test_every_construct_is_laid_out_without_loss(chunk: Chunk) -> None:
    edition = "" if chunk.text.startswith("zcpolicy") else HEAD
    file, _ = parse(Source("t", edition + chunk.text))
    assert is_same(file, parse(Source("t", formatted(edition + chunk.text)))[0])


def test_a_file_with_an_error_has_no_layout() -> None:
    text, found = format_source(Source("t", "zcpolicy 1\nagent a { alow x }"))
    assert text is None
    assert [one.code for one in found] == [codes.UNKNOWN_STATEMENT]


@pytest.mark.parametrize(
    "lie",
    [
        pytest.param("zcpolicy 1\nagent a { allow y }  # c\n", id="another meaning"),
        pytest.param("zcpolicy 1\nagent a { allow x; allow x }  # c\n", id="a statement more"),
        pytest.param("zcpolicy 1\nagent a { allow x }\n", id="a comment less"),
        pytest.param("zcpolicy 1\nagent a { allow x }  # d\n", id="another comment"),
        pytest.param("zcpolicy 1\nagent a { alow x }  # c\n", id="an error"),
    ],
)
def test_it_refuses_to_lie(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def liar(_made: Files, _file: ast.File) -> str:
        return lie

    monkeypatch.setattr(Files, "text", liar)
    text, found = format_source(Source("t", "zcpolicy 1\nagent a { allow x }  # c\n"))
    assert text is None
    assert [one.code for one in found] == [codes.FORMAT_FAILED]


def test_carriage_returns_and_blanks_at_line_ends_go() -> None:
    assert (
        formatted("zcpolicy 1 \r\n\r\n\r\n\r\nagent a {\r\n  allow x\t\r\n}")
        == "zcpolicy 1\n\nagent a {\n    allow x\n}\n"
    )


def test_of_an_edition_alone() -> None:
    assert formatted("\n\n\nzcpolicy   1") == "zcpolicy 1\n"


def test_long_lines_break_at_a_hundred_columns() -> None:
    names = ", ".join(f"tool_{number}" for number in range(200))
    text = formatted(f"{HEAD}agent a {{ allow {names} when args.a in [{', '.join(map(str, range(300)))}] }}")
    assert max(map(len, text.split("\n"))) <= 100
    assert text.count("\n") < 50


# --- comments anywhere, blanks anywhere -----------------------------------------------------------------

TEXTS = [text_of(path) for path in POLICIES if "errors" not in path.parts] + [
    HEAD + chunk.text for chunk in chunks("trees.txt") if not chunk.text.startswith("zcpolicy")
]
PIECES = st.sampled_from(
    ["# c\n", "\n", " # d\n", "\n\n", "\n# note\n\n", "  ", "\n# e\n# f\n", ";", "\n\n\n", " # allow\n", "\t"]
)


@st.composite
def sprinkled(draw: st.DrawFn) -> str:
    """A policy with comments, newlines and blanks put in where blanks and brackets are: many are still policies."""
    text = draw(st.sampled_from(TEXTS))
    places = [place for place, character in enumerate(text, 1) if character in " \n,([{"]
    for place in sorted(draw(st.lists(st.sampled_from(places or [0]), max_size=3)), reverse=True):
        text = text[:place] + draw(PIECES) + text[place:]
    return text


@given(sprinkled())
def test_comments_and_newlines_anywhere(text: str) -> None:
    once, found = format_source(Source("t", text))
    assert codes.FORMAT_FAILED not in [one.code for one in found]
    if once is not None:
        assert formatted(text) == once


def test_a_tree_without_places_is_laid_out() -> None:
    file, _ = parse(Source("t", HEAD + "agent a { allow x; deny y when args.a }"))
    bare = type(file)(Source("made", ""), file.declarations, ())
    assert format_file(bare).endswith("agent a { allow x; deny y when args.a }\n")
