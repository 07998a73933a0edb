"""The grammar as tables: what each state of an LALR(1) automaton does with each terminal.

In: `zcpolicy.lark`, from the wheel or the source tree. Out: `tables()`, plain values that `parse` drives.
The only file that imports lark, and only when no stored tables fit: they are kept in the user's cache folder under a
key of the grammar, of lark's version and of this layout. A store that cannot be read, written or trusted is passed
over in silence, and the tables are made anew.
"""

import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Final, NamedTuple

LAYOUT: Final = 1
"""Raised when the shape of `Tables` or what `build` derives from the grammar changes."""

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
    """The tables of the grammar that ships with this package: stored ones if they fit, else made and stored."""
    grammar = grammar_text()
    about = (LAYOUT, sys.version_info[:2], metadata.version("lark"), grammar)
    key = hashlib.sha256(repr(about).encode()).hexdigest()
    place = cache_folder() / f"grammar-{key[:32]}.json"
    found = load(place, key)
    if found is None:
        found = build(grammar)
        store(place, key, found)
    return found


def grammar_text() -> str:
    """The grammar's text: beside this module in a wheel, in `grammar/` in the source tree."""
    shipped = resources.files("policy_lang") / "zcpolicy.lark"
    if shipped.is_file():
        return shipped.read_text("utf-8")
    return (Path(__file__).resolve().parents[2] / "grammar" / "zcpolicy.lark").read_text("utf-8")


def cache_folder() -> Path:
    """Where this user's caches lie; `ZCPOLICY_CACHE` moves it."""
    named = os.environ.get("ZCPOLICY_CACHE")
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir())) / "zcpolicy"
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
    return Tables(start, end, tuple(actions), tuple(rules), words, patterns)


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


def load(place: Path, key: str) -> Tables | None:
    """Stored tables, or None where there are none, they are not this user's own, or they do not carry this key."""
    try:
        with place.open("rb") as file:
            about = os.fstat(file.fileno())
            if not _is_own(about) or about.st_size > MAX_STORED_BYTES:
                return None
            data = json.loads(file.read(MAX_STORED_BYTES))
        body = data["tables"]
        if data["key"] != key or data["digest"] != _digest(body):
            return None
        start, end, actions, rules, words, patterns = body
        kept = tuple(Rule(origin, name, size, passing) for origin, name, size, passing in rules)
        return Tables(start, end, tuple(actions), kept, words, patterns)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def store(place: Path, key: str, found: Tables) -> None:
    """Write beside and rename, so that a reader or a second writer meets a whole file or none."""
    beside: str | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        number, beside = tempfile.mkstemp(dir=place.parent, prefix="grammar-", suffix=".part")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump({"key": key, "digest": _digest(found), "tables": found}, file, separators=(",", ":"))
        Path(beside).replace(place)
    except OSError:
        if beside is not None:
            Path(beside).unlink(missing_ok=True)


def _is_own(about: os.stat_result) -> bool:
    """Whether only this user could have written the file: tables decide what a policy's words mean."""
    if not hasattr(os, "getuid"):
        return True
    return about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _digest(body: object) -> str:
    return hashlib.sha256(json.dumps(body, separators=(",", ":"), sort_keys=True).encode()).hexdigest()
