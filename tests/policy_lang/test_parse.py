"""What texts read as, and what is said of texts that cannot be read: `syntax/trees.txt`, `syntax/errors.txt`."""

import re
from pathlib import Path

import pytest

from policy_lang import ast, codes
from policy_lang.diagnostics import Fix, has_errors
from policy_lang.parse import parse
from policy_lang.source import Source
from tests.policy_lang.syntax_files import Chunk, chunks, finding, shape

CASES = Path(__file__).parent.parent / "cases"


def read(text: str) -> ast.File:
    """The file of a text that has no errors."""
    file, found = parse(Source("t", text))
    assert not found, [finding(one) for one in found]
    return file


@pytest.mark.parametrize("chunk", chunks("trees.txt"), ids=lambda chunk: chunk.name)
def test_tree(chunk: Chunk) -> None:
    edition = "" if chunk.text.startswith("zcpolicy") else "zcpolicy 1\n"
    declarations = read(edition + chunk.text).declarations
    assert "\n".join(f"> {shape(one)}" for one in declarations[bool(edition) :]) == chunk.expected


@pytest.mark.parametrize("chunk", chunks("errors.txt"), ids=lambda chunk: chunk.name)
def test_errors(chunk: Chunk) -> None:
    _, found = parse(Source("t", chunk.text))
    assert ("\n".join(map(finding, found)) or "> nothing") == chunk.expected


@pytest.mark.parametrize("chunk", chunks("errors.txt"), ids=lambda chunk: chunk.name)
def test_messages_are_short_lower_case_and_without_grammar(chunk: Chunk) -> None:
    for one in parse(Source("t", chunk.text))[1]:
        plain = one.message.partition("`")[0]
        assert not plain or plain[0] == plain[0].lower() or plain.startswith("U+")
        assert not one.message.endswith(".")
        for text in (one.message, one.help or ""):
            assert "SEP" not in text
            assert "__" not in text
        assert (one.help or "").count("`,") <= 6  # at most three expectations, or a listed form


@pytest.mark.parametrize("path", sorted((CASES / "accept").glob("*.zcpolicy")), ids=lambda path: path.stem)
def test_every_accepted_case_is_read(path: Path) -> None:
    assert read(path.read_text("utf-8")).declarations


# The shared cases that parse must refuse; the others it refuses as their first comment says, or not at all.
SYNTAX = {
    "commented_head", "cut_off_file", "empty_list", "independent_without_reason", "misspelt_statement", "no_edition",
}  # fmt: skip
EXPECTED = re.compile(r'# expect: error(?: on line (?P<line>[0-9]+))?(?: naming "(?P<text>[^"]*)")?')


@pytest.mark.parametrize("path", sorted((CASES / "reject").glob("*.zcpolicy")), ids=lambda path: path.stem)
def test_rejected_cases_have_one_syntax_error_or_none(path: Path) -> None:
    source = Source(path.name, path.read_text("utf-8"))
    _, found = parse(source)
    if path.stem not in SYNTAX and not found:
        return
    want = EXPECTED.match(source.text)
    (only,) = found
    assert want is not None
    assert only.severity == "error"
    assert source.position(only.span.start).line == int(want["line"] or source.position(only.span.start).line)
    edits = [edit.text for edit in only.fix.edits] if only.fix else []
    assert (want["text"] or "") in "\n".join((only.message, only.help or "", *edits))


def fixed(text: str) -> str:
    """The text with the fix of its only finding."""
    (only,) = parse(Source("t", text))[1]
    assert isinstance(only.fix, Fix)
    for edit in sorted(only.fix.edits, key=lambda edit: edit.span, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


HEAD = "zcpolicy 1\n"


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        pytest.param("agent a { alow x }", "agent a { allow x }", id="a misspelt statement"),
        pytest.param("agnt a { allow x }", "agent a { allow x }", id="a misspelt declaration"),
        pytest.param("agent a { deny x wen args.a }", "agent a { deny x when args.a }", id="a misspelt clause"),
        pytest.param("agent a { forbid x }", "agent a { deny x }", id="a word of another language"),
        pytest.param("agent a { deny x when args.a = 1 }", "agent a { deny x when args.a == 1 }", id="a single ="),
        pytest.param("agent a { deny x when args.a && args.b }", "agent a { deny x when args.a and args.b }", id="&&"),
        pytest.param('test "t" { agent a; call x() -> deny }', 'test "t" { agent a; call x() => deny }', id="->"),
        pytest.param(r'let a = "\d"', r'let a = "\\d"', id="an escape that does not exist"),
        pytest.param("agent a { allow x }}", "agent a { allow x }", id="a stray brace"),
        pytest.param("agent a { allow\u200b x }", "agent a { allow x }", id="an invisible character"),
    ],
)
def test_fixes_mend(broken: str, mended: str) -> None:
    assert fixed(HEAD + broken) == HEAD + mended
    read(HEAD + mended)


def test_the_edition_is_written_by_its_fix() -> None:
    assert fixed("agent a { allow x }") == "zcpolicy 1\nagent a { allow x }"
    assert fixed("\ufeffzcpolicy 1\n") == "zcpolicy 1\n"


def test_fixes_that_may_grant_are_not_applied_unasked() -> None:
    for broken in ("alow x", "conect b", "deny x unles args.a", "forbid x"):
        (found,) = parse(Source("t", f"{HEAD}agent a {{ {broken} }}"))[1]
        assert found.fix is not None
        assert not found.fix.safe
    (found,) = parse(Source("t", HEAD + "agent a { dney x }"))[1]
    assert found.fix is not None
    assert found.fix.safe


def test_what_is_whole_is_kept_beside_what_is_broken() -> None:
    file, found = parse(Source("t", HEAD + "agent a { allow x; alow y; deny z }\nagnt b {}\nagent c { allow z w }"))
    assert has_errors(found)
    assert len(found) == 3
    a, c = file.declarations[1:]
    assert isinstance(a, ast.Agent)
    assert isinstance(c, ast.Agent)
    assert [shape(one)[:22] for one in a.body.statements] == ["Rule(effect='allow', t", "Rule(effect='deny', to"]
    assert c.body.statements == ()


def test_a_lone_surrogate_is_data_in_a_test_and_an_error_elsewhere() -> None:
    read(HEAD + r'test "t" { agent a; call x(a: "\ud800") => deny malformed }')
    (found,) = parse(Source("t", HEAD + r'agent a { deny x because "\ud800" }'))[1]
    assert found.code is codes.BAD_ESCAPE


def test_spans_cover_what_was_written() -> None:
    text = HEAD + 'agent a {\n  deny x, y  when args.a == [1,\n 2] because "no"  # c\n}\n'
    file = read(text)
    agent = file.declarations[1]
    assert isinstance(agent, ast.Agent)
    (rule,) = agent.body.statements
    assert isinstance(rule, ast.Rule)
    assert rule.when is not None
    assert text[slice(*agent.span)] == text[len(HEAD) : -1]
    assert text[slice(*rule.span)] == 'deny x, y  when args.a == [1,\n 2] because "no"'
    assert text[slice(*rule.tools.span)] == "x, y"
    assert text[slice(*rule.when.span)] == "args.a == [1,\n 2]"
    assert [text[slice(*one.span)] for one in file.comments] == ["# c"]


MOST_CUTS = 300
"""Places at which one file is cut: each costs a reading of all before it."""


@pytest.mark.parametrize("path", sorted((CASES / "accept").glob("*.zcpolicy")), ids=lambda path: path.stem)
def test_a_file_cut_off_anywhere_is_one_error_at_most(path: Path) -> None:
    text = path.read_text("utf-8")
    for end in range(0, len(text), max(11, len(text) // MOST_CUTS)):
        found = parse(Source("t", text[:end]))[1]
        assert len(found) <= 1, (text[:end][-60:], [finding(one) for one in found])
