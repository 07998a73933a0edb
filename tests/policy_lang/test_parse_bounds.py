"""Hostile texts: a finding or a tree in time that grows with the text, and never an exception."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_lang.format import format_source
from policy_lang.parse import parse
from policy_lang.source import Source
from policy_lang.syntax.characters import MAX_REPORTED
from policy_lang.syntax.conditions import MAX_ITEMS
from policy_lang.syntax.driver import MAX_FAILURES
from policy_lang.syntax.layout import MAX_FINDINGS, MAX_TEXT
from policy_lang.syntax.tokens import MAX_FINDINGS as MAX_OF_STATEMENTS
from tests.policy_lang.test_format import TEXTS

HEAD = "zcpolicy 1\n"

# How a text of a size is made. Each is read at two sizes; what is worse than linear shows.
HOSTILE: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: HEAD + "agent a { allow x when " + "(" * n + "args.a" + ")" * n + " }",
    "brackets that close nothing": lambda n: ")" * n,
    "brackets that nobody closes": lambda n: "[" * n,
    "braces": lambda n: "{" * n,
    "blocks that nobody closes": lambda n: HEAD + "agent a {\n" * (n // 10),
    "nots": lambda n: HEAD + "agent a { allow x when " + "not " * (n // 4) + "args.a }",
    "nots with breaks between": lambda n: HEAD + ("not " * 100 + "x ") * (n // 400),
    "lists of lists": lambda n: HEAD + "tool x(a: " + "list<" * (n // 5) + "string",
    "objects": lambda n: HEAD + 'test "t" { agent a; call x(a: ' + '{"a":' * (n // 5),
    "quotes": lambda n: '"' * n,
    "strings that do not end": lambda n: '"\n' * (n // 2),
    "raw strings that do not end": lambda n: 'r"' * (n // 2),
    "backslashes": lambda n: '"' + "\\" * n + '"',
    "number signs": lambda n: "#" * n,
    "comments": lambda n: "#\n" * (n // 2),
    "comments before a continuation": lambda n: HEAD + "agent a { allow x\n" + "# c\n" * (n // 4) + "when args.a }",
    "commented statements before it": lambda n: HEAD + "agent a { allow x\n" + "# allow\n" * (n // 8) + "when args.a }",
    "newlines": lambda n: "\n" * n,
    "carriage returns": lambda n: "\r" * n,
    "CRLF": lambda n: "\r\n" * (n // 2),
    "blanks": lambda n: " " * n,
    "blanks before newlines": lambda n: (" " * 1000 + "\n") * (n // 1000),
    "NUL": lambda n: "\0" * n,
    "zero width": lambda n: "\u200b" * n,
    "lone surrogates": lambda n: "\ud800" * n,
    "one name": lambda n: "a" * n,
    "names": lambda n: "a " * (n // 2),
    "slashes": lambda n: HEAD + "agent a { allow " + "a/" * (n // 2) + " }",
    "a long operand": lambda n: HEAD + "agent a { allow x when args" + ".a" * (n // 2) + " }",
    "a long group": lambda n: HEAD + "agent a { allow @" + "a." * (n // 2) + "a }",
    "semicolons": lambda n: ";" * n,
    "commas": lambda n: "," * n,
    "stars": lambda n: HEAD + "agent a { allow " + "*" * n + " }",
    "a huge number": lambda n: HEAD + "let a = " + "9" * n,
    "a huge duration": lambda n: HEAD + 'test "t" { wait ' + "9" * n + "s }",
    "a long list": lambda n: HEAD + "let a = [" + "1," * (n // 2) + "]",
    "a long condition": lambda n: HEAD + "agent a { allow x when args.a" + "\nor args.a" * (n // 10) + " }",
    "operators at line ends": lambda n: HEAD + "agent a {" + "allow x when args.a in\n" * (n // 22) + "}",
    "and at line ends": lambda n: HEAD + "agent a {" + "allow x when args.a and\n" * (n // 23) + "}",
    "kinds at line ends": lambda n: HEAD + ("x list<" + " " * 300 + ">\n") * (n // 300),
    "misspelt statements": lambda n: HEAD + "agent a {\n" + "alow x\n" * (n // 7) + "}",
    "negative limits": lambda n: HEAD + "agent a {\n" + "limit -1 calls\n" * (n // 15) + "}",
    "names of two scripts": lambda n: HEAD + "label " + "аa," * (n // 3) + "b",
    "editions": lambda n: HEAD * (n // 11),
}

MOST = MAX_FAILURES + MAX_FINDINGS + MAX_OF_STATEMENTS + 2 * MAX_REPORTED


def seconds(text: str) -> float:
    begin = time.process_time()
    _, found = parse(Source("t", text))
    assert len(found) <= MOST
    return time.process_time() - begin


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "editions"])
def test_time_grows_with_the_text(name: str) -> None:
    make = HOSTILE[name]
    short = min(seconds(make(20_000)) for _ in range(2))
    # a collection of the whole process's garbage may fall into one measurement, but not into each
    assert any(seconds(make(160_000)) < 0.1 + 8 * 4 * short for _ in range(3))


def test_repeated_editions_are_many_findings_of_one_kind() -> None:
    _, found = parse(Source("t", HOSTILE["editions"](10_000)))
    assert {one.code.id for one in found} == {"ZC1022"}


def test_two_megabytes_of_nothing() -> None:
    assert seconds("x y\n" * 500_000) < 5


def test_a_text_over_the_bound() -> None:
    (found,) = parse(Source("t", "#" * (MAX_TEXT + 1)))[1]
    assert found.code.id == "ZC1008"


def test_a_list_over_the_bound() -> None:
    (found,) = parse(Source("t", HEAD + "let a = [" + "1," * (MAX_ITEMS + 1) + "]"))[1]
    assert (found.code.id, found.message) == ("ZC1008", f"a list has at most {MAX_ITEMS} items")


def test_after_too_many_errors_the_rest_is_not_read() -> None:
    _, found = parse(Source("t", HEAD + "alow x\n" * 1000))
    assert len(found) == MAX_FAILURES


SCRAPS = st.sampled_from([
    "{", "}", "(", ")", "[", "]", '"', 'r"', "\\", "#", "\n", "\r\n", ";", ",", "=", "=>", ":", "/", "*", "@", "-", ".", "<", ">", "?",
    "allow", "deny", "when ", "unless ", "and ", "not ", "except ", "with approval", "agent a {", "test", "args.a", "in", "any", "none",
    "1", "1.5", "10m", "usd", "\0", "\u200b", "\ud800", "é", "а", "😀", " ", "\t", "# allow x\n", '"\\ud800"', "zcpolicy 1\n",
])  # fmt: skip


@given(
    st.text() | st.lists(SCRAPS).map("".join) | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape"))
)
def test_any_text_is_read(text: str) -> None:
    source = Source("t", text)
    file, found = parse(source)
    assert file.source is source
    for one in found:
        assert 0 <= one.span.start <= one.span.end <= len(text)
    format_source(source)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A policy with pieces cut out and scraps put in."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.sampled_from([0, 0, 1, 2, 10, 100])))
        text = text[:begin] + draw(SCRAPS | st.just("")) + text[end:]
    return text


@given(damaged())
def test_any_damage_is_survived(text: str) -> None:
    source = Source("t", text)
    file, found = parse(source)
    keys = {(one.span, one.code.id) for one in found}
    assert len(keys) <= MOST
    laid_out, again = format_source(source)
    assert "ZC1090" not in {one.code.id for one in again}
    assert (laid_out is None) == any(one.severity == "error" for one in found)
    assert all(one.span.start <= one.span.end for one in file.declarations)
