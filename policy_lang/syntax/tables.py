"""The grammar as tables: what each state of an LALR(1) automaton does with each terminal.

In: `zcpolicy.lark`, from the wheel or the source tree. Out: `tables()`, plain values that `parse` drives.
The only file that imports lark, and only when no stored tables are found. They are kept in the user's cache folder; what
is read there is used only if it is, to the byte, what this package expects: a cache cannot change what policies mean.
"""

import hashlib
import json
import os
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

GRAMMAR_DIGEST: Final = "aabe603e1b44c941d73a4d403b1667e71fd2cf9568d361e5dfda49e3243a748c"
TABLES_DIGEST: Final = "5a7b9e7439079ade37329734c8b6486ad2a328206dd12df7b27ef882db78e213"
"""SHA-256 of the grammar's text, and of the stored tables that are made of it. A test holds both."""

MAX_STORED_BYTES: Final = 4_000_000
"""Bytes of stored tables that are read."""

END: Final = "$END"


class Rule(NamedTuple):
    """`origin` becomes of `size` symbols; `name` is its alias, or `origin`; a `passing` rule adds nothing of its own."""

    origin: str
    name: str
    size: int
    passing: bool


class Tables(NamedTuple):
    """An automaton. `actions[state][symbol]`: `n` goes to state n (for a terminal: takes it), `~n` applies rule n.

    `words`: terminal → its literal text; `patterns`: terminal → its regular expression, in order of precedence.
    """

    start: int
    end: int
    actions: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    words: dict[str, str]
    patterns: dict[str, str]


@cache
def tables() -> Tables:
    """The tables of the grammar that ships with this package: stored ones if there are, else made and stored."""
    grammar = grammar_text()
    if digest(grammar.encode()) != GRAMMAR_DIGEST:
        return build(grammar)
    place = cache_folder() / f"grammar-{TABLES_DIGEST[:32]}.json"
    found = load(place, TABLES_DIGEST)
    if found is None:
        found = build(grammar)
        store(place, stored_form(found))
    return found


def digest(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def grammar_text() -> str:
    """The grammar's text: beside this module in a wheel, in `grammar/` in the source tree."""
    try:
        data = pkgutil.get_data("policy_lang", "zcpolicy.lark")
    except OSError:
        data = None
    if data is None:
        data = (Path(__file__).resolve().parents[2] / "grammar" / "zcpolicy.lark").read_bytes()
    return data.decode().replace("\r\n", "\n")


def cache_folder() -> Path:
    """Where this user's caches lie."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "zcpolicy"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "zcpolicy"


# --- made from the grammar --------------------------------------------------------------------------------


def build(grammar: str) -> Tables:
    """Tables of a grammar text. Raises lark's own errors for a text that is no LALR(1) grammar."""
    import lark
    from lark.grammar import Rule as LarkRule
    from lark.lexer import TerminalDef

    made: Any = lark.Lark(grammar, parser="lalr", maybe_placeholders=False)
    data: dict[str, Any]
    memo: dict[int, dict[str, Any]]
    data, memo = made.memo_serialize([TerminalDef, LarkRule])
    automaton: dict[str, Any] = data["parser"]["parser"]
    rows: dict[int, dict[int, tuple[int, Any]]] = automaton["states"]
    symbols: dict[int, str] = automaton["tokens"]
    numbers: dict[int, int] = {}
    rules: list[Rule] = []
    for number, item in memo.items():
        if item["__type__"] == "Rule":
            numbers[number] = len(rules)
            rules.append(_rule(item))
    actions = [dict[str, int]() for _ in rows]
    for state, row in rows.items():
        for token, (reduces, target) in row.items():
            actions[state][symbols[token]] = ~numbers[target["@"]] if reduces else target
    terminals = [item for item in memo.values() if item["__type__"] == "TerminalDef"]
    words, patterns = _terminals(terminals)
    start, end = automaton["start_states"]["start"], automaton["end_states"]["start"]
    return _in_order(Tables(start, end, tuple(actions), tuple(rules), words, patterns))


def _in_order(made: Tables) -> Tables:
    """The same automaton with states and rules numbered by what they are, whatever order lark met them in."""
    rules = sorted(set(made.rules))
    number_of_rule = {rule: number for number, rule in enumerate(rules)}
    states = [made.start]
    numbers = {made.start: 0}
    for state in states:
        for symbol in sorted(made.actions[state]):
            action = made.actions[state][symbol]
            if action >= 0 and action not in numbers:
                numbers[action] = len(states)
                states.append(action)
    actions = tuple(
        {
            symbol: numbers[action] if action >= 0 else ~number_of_rule[made.rules[~action]]
            for symbol, action in sorted(made.actions[state].items())
        }
        for state in states
    )
    words = dict(sorted(made.words.items()))
    return Tables(0, numbers[made.end], actions, tuple(rules), words, made.patterns)


def _rule(item: Mapping[str, Any]) -> Rule:
    size = len(item["expansion"])
    passing = item["alias"] is None and bool(item["options"]["expand1"]) and size == 1
    return Rule(item["origin"]["name"], item["alias"] or item["origin"]["name"], size, passing)


def _terminals(items: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str], dict[str, str]]:
    words: dict[str, str] = {}
    expressions: list[tuple[int, str, str]] = []
    for item in items:
        pattern = item["pattern"]
        if pattern["__type__"] == "PatternStr":
            words[item["name"]] = pattern["value"]
        else:
            expressions.append((-item["priority"], item["name"], pattern["value"]))
    return words, {name: value for _, name, value in sorted(expressions)}


# --- stored -------------------------------------------------------------------------------------------------


def stored_form(found: Tables) -> bytes:
    """Tables as they are stored: the same bytes for the same grammar."""
    return json.dumps(found, separators=(",", ":")).encode()


def load(place: Path, expected: str) -> Tables | None:
    """Stored tables whose bytes have the digest that is expected; None where there are none."""
    try:
        with place.open("rb") as file:
            data = file.read(MAX_STORED_BYTES)
    except OSError:
        return None
    if digest(data) != expected:
        return None
    start, end, actions, rules, words, patterns = json.loads(data)
    kept = tuple(Rule(origin, name, size, passing) for origin, name, size, passing in rules)
    return Tables(start, end, tuple(actions), kept, words, patterns)


def store(place: Path, data: bytes) -> None:
    """Write beside and rename, so that a reader or a second writer meets a whole file or none. A failure is no matter."""
    import tempfile  # a start that finds the tables stored has no use for it

    beside: str | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        number, beside = tempfile.mkstemp(dir=place.parent, prefix="grammar-", suffix=".part")
        with os.fdopen(number, "wb") as file:
            file.write(data)
        Path(beside).replace(place)
    except OSError:
        if beside is not None:
            Path(beside).unlink(missing_ok=True)
