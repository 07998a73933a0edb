"""The grammar file beside the tree, the README, the stored tables and the colours for editors."""

import json
import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import lark
import pytest

from policy_lang import ast
from policy_lang.compile import compile_text
from policy_lang.diagnostics import has_errors
from policy_lang.parse import parse
from policy_lang.source import Source
from policy_lang.syntax.automaton import RESUMING, automaton
from policy_lang.syntax.declarations import Declarations, Make
from policy_lang.syntax.driver import Driver
from policy_lang.syntax.layout import CONTINUATION_WORDS, layout
from policy_lang.syntax.tables import (
    END,
    GRAMMAR_DIGEST,
    TABLES_DIGEST,
    build,
    digest,
    grammar_text,
    load,
    store,
    stored_form,
    tables,
)  # fmt: skip
from tests.house.blocks import Block, blocks
from tests.policy_lang.syntax_files import chunks
from tests.policy_lang.textmate import coloured, flattened, grammar

README = Path(__file__).resolve().parents[2] / "grammar/README.md"
EXAMPLES = [block for block in blocks(README) if block.lang == "zcpolicy"]
WORDS = {text for text in tables().words.values() if text[0].isalpha()}


# --- the grammar and the tree -------------------------------------------------------------------------


def test_every_rule_has_a_method() -> None:
    make = Declarations(Source("t", ""))
    for rule in tables().rules:
        assert rule.passing or make.of_rule(rule.name)


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="lark"):
        lark.Lark(grammar_text(), parser="lalr", debug=True)
    assert [record.message for record in caplog.records if "onflict" in record.message] == []


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def symbols(rule: str) -> set[str]:
    """The symbols on the right of a rule of the grammar file."""
    found = re.search(rf"^[?!]?{rule}:((?:.+\n)(?:    .+\n)*)", grammar_text(), re.MULTILINE)
    assert found is not None
    return set(re.findall(r"[a-z_]+", found[1]))


SAME_NODE = {
    "delegate_depth": "delegate", "delegate_none": "delegate", "autonomy_table": "autonomy", "approval_none": "approval",
    "test_block": "test", "agents_allowed": "agents_allowed",
}  # fmt: skip


def test_the_statements_of_the_grammar_are_those_of_the_tree() -> None:
    of_grammar = {SAME_NODE.get(name, name) for name in symbols("statement") | symbols("block_statement")}
    assert {
        SAME_NODE.get(name, name) for name in (snake(one.__name__) for one in get_args(ast.Statement))
    } == of_grammar


def test_the_declarations_of_the_grammar_are_those_of_the_tree() -> None:
    of_grammar = symbols("declaration") | symbols("block_declaration")
    assert {
        SAME_NODE.get(name, name) for name in (snake(one.__name__) for one in get_args(ast.Declaration))
    } == of_grammar


def test_the_steps_of_tests_are_those_of_the_tree() -> None:
    assert {snake(one.__name__) for one in get_args(ast.TestStep)} == symbols("step")


def test_the_operators_of_the_grammar_are_those_of_the_tree() -> None:
    found = re.search(r"^!operator:((?:.+\n)(?:    .+\n)*)", grammar_text(), re.MULTILINE)
    assert found is not None
    written = {" ".join(re.findall(r'"([^"]+)"', one)) for one in found[1].split("|")}
    assert written == set(get_args(ast.Operator))


@pytest.mark.parametrize(
    ("rule", "type_"),
    [("risk_class", ast.RiskClass), ("level", ast.Level), ("answer", ast.Answer), ("drift", ast.Drift)],
)
def test_the_words_of_the_grammar_are_those_of_the_tree(rule: str, type_: object) -> None:
    found = re.search(rf"^!{rule}:(.+)$", grammar_text(), re.MULTILINE)
    assert found is not None
    assert set(re.findall(r'"([^"]+)"', found[1])) == set(get_args(type_))


def test_words_that_continue_a_line_are_words_of_the_grammar_and_begin_no_statement() -> None:
    assert set(CONTINUATION_WORDS) <= WORDS
    assert not set(CONTINUATION_WORDS) & automaton().beginnings(*RESUMING)


def test_reading_goes_on_behind_sequences_that_exist() -> None:
    assert {rule.origin for rule in tables().rules} >= RESUMING


# --- the README -----------------------------------------------------------------------------------------


def story(folder: Path) -> None:
    """The files that the README shows, in a folder."""
    for block in blocks(README):
        if block.title is not None:
            (folder / block.title).write_text(block.text, "utf-8")


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: block.where)
def test_an_example_compiles(block: Block, tmp_path: Path) -> None:
    story(tmp_path)
    compiled = compile_text(block.text, folder=tmp_path)
    assert not has_errors(compiled.diagnostics), compiled.diagnostics


class Recording(Declarations):
    """Notes which rules a text uses."""

    used: set[str]

    def of_rule(self, name: str) -> Make:
        make = super().of_rule(name)

        def record(parts: list[object], start: int, end: int) -> object:
            self.used.add(name)
            return make(parts, start, end)

        return record


LOCK = {"lock_file"}  # a catalogue without `as` is the lock file of a later edition of the tools: an error so far


@pytest.mark.parametrize(
    "texts", [[one.text for one in EXAMPLES], ["zcpolicy 1\n", *(one.text for one in chunks("trees.txt"))]]
)
def test_every_rule_has_an_example(texts: list[str]) -> None:
    used: set[str] = set()
    for text in texts:
        source = Source("t", text)
        make = Recording(source)
        make.used = used
        Driver(layout(source).flat, make).run()
    plain = Declarations(Source("t", ""))
    making = {rule.name for rule in tables().rules if not rule.passing and plain.of_rule(rule.name) != plain.first}
    assert making - used - LOCK == set()


# --- stored tables ----------------------------------------------------------------------------------------


def test_the_tables_are_the_ones_that_are_expected() -> None:
    stored = stored_form(build(grammar_text()))
    assert (digest(grammar_text().encode()), digest(stored)) == (GRAMMAR_DIGEST, TABLES_DIGEST)


def test_stored_tables_are_those_that_were_built(tmp_path: Path) -> None:
    store(tmp_path / "t.json", stored_form(build(grammar_text())))
    assert load(tmp_path / "t.json", TABLES_DIGEST) == build(grammar_text()) == tables()


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: data[:0],
    "cut off": lambda data: data[: len(data) // 2],
    "zeros": lambda data: b"\0" * len(data),
    "deep": lambda data: b"[" * 100_000 + data,
    "another shape": lambda data: b"[]" + data[:0],
    "another word": lambda data: data.replace(b'"allow"', b'"a110w"'),
    "too large": lambda data: data + b" " * 5_000_000,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_stores_are_passed_over(damage: str, tmp_path: Path) -> None:
    place = tmp_path / "t.json"
    store(place, DAMAGE[damage](stored_form(tables())))
    assert load(place, TABLES_DIGEST) is None


def test_folders_that_cannot_be_used_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store(tmp_path / "file" / "t.json", stored_form(tables()))
    assert load(tmp_path / "file" / "t.json", TABLES_DIGEST) is None
    assert load(tmp_path, TABLES_DIGEST) is None


def test_writers_and_readers_at_once(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "t.json"
    seen: list[bool] = []

    def work() -> None:
        for _ in range(3):
            store(place, stored_form(tables()))
            seen.append(load(place, TABLES_DIGEST) == tables())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 12
    assert [path.name for path in place.parent.iterdir()] == ["t.json"]


def test_the_end_is_no_terminal_of_the_grammar() -> None:
    assert END not in {*tables().words, *tables().patterns}


# --- colours ------------------------------------------------------------------------------------------------


def alternatives(expression: str) -> set[str]:
    """The words that a regular expression lists."""
    return {word for listed in re.findall(r"\(((?:[a-z_]+\|)*[a-z_]+)\)", expression) for word in listed.split("|")}


def test_the_words_of_the_colours_are_those_of_the_grammar() -> None:
    loaded = grammar()
    expressions = [one["match"] for one in flattened(loaded["patterns"], loaded["repository"]) if "match" in one]
    listed = {word for expression in expressions for word in alternatives(expression)} - {
        "args",
        "session",
        "tool",
        "agent",
        "paths",
        "urls",
        "r",
    }
    assert listed | {"tool", "agent", "session"} == WORDS
    json.dumps(loaded)


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: block.where)
def test_nothing_in_the_examples_is_coloured_as_an_error(block: Block) -> None:
    scopes = {piece.scope for piece in coloured(block.text)}
    assert "storage.type.zcpolicy" in scopes
    assert not [scope for scope in scopes if scope.startswith("invalid")]


COLOURS = {
    "zcpolicy 1": "storage.type zcpolicy|constant.numeric 1",
    "# note": "comment.line.number-sign # note|punctuation.definition.comment #",
    "agent a narrows b {": "storage.type agent|entity.name.type a|keyword.other narrows",
    "tool github/x(path: path, n?: list<integer>) risk high": (
        "storage.type tool|entity.name.function github/x|variable.parameter path|support.type path|variable.parameter n"
        "|keyword.operator.optional ?|support.type list|keyword.operator <|support.type integer|keyword.operator >"
        "|keyword.other risk|keyword.other high"
    ),
    "    allow @readers, github/get_*, allow": (
        "keyword.control.statement allow|variable.other.group @readers|entity.name.namespace github"
        "|punctuation.separator.namespace /|entity.name.function get_*|keyword.other allow"
    ),
    "deny any when some paths glob secrets": (
        "keyword.control.statement deny|constant.language any|keyword.other.clause when|keyword.operator.logical some"
        "|variable.language paths|keyword.operator.word glob"
    ),
    'ask x unless args.a."b c" == r"\\d"': (
        'keyword.control.statement ask|keyword.other.clause unless|variable.language args|variable.other.member .a."b c"'
        '|keyword.operator ==|string.quoted.other.raw r"\\d"'
    ),
    "x when args.c runs only [": "keyword.other.clause when|variable.language args|variable.other.member .c|keyword.operator.word runs only",
    '"a\\n\\q"': 'constant.character.escape \\n|invalid.illegal.escape \\q|string.quoted.double "a\\n\\q"',
    "{ limit 5.00 usd per day; limit 10m time": (
        "keyword.control.statement limit|constant.numeric 5.00|keyword.other.unit.currency usd|keyword.other per|keyword.other.unit day"
        "|keyword.control.statement limit|constant.numeric.duration 10m|keyword.other.unit time"
    ),
    "call x(a: true) => deny because": (
        "storage.type call|entity.name.function x|variable.parameter a|constant.language true|keyword.operator.arrow =>"
        "|keyword.control.effect deny|keyword.other.clause because"
    ),
    "when-x allow_y": "",
}


@pytest.mark.parametrize("text", COLOURS)
def test_colours(text: str) -> None:
    assert "|".join(f"{one.scope.removesuffix('.zcpolicy')} {one.text}" for one in coloured(text)) == COLOURS[text]


def test_a_parsed_file_is_made_of_every_declaration() -> None:
    file, _ = parse(Source("t", "zcpolicy 1\n" + "\n".join(one.text for one in chunks("trees.txt")[1:])))
    assert {type(one) for one in file.declarations} == set(get_args(ast.Declaration))
