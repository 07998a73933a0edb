"""A small tokeniser of TextMate grammars: what an editor colours, told to tests.

In: a grammar as parsed JSON, a text. Out: pieces of the text, each with the innermost scope that it has. Of the format
it knows what our grammar uses: `match`, `captures`, `begin`/`end` with `patterns`, `include` of the repository.
"""

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRAMMAR = Path(__file__).resolve().parents[2] / "grammar/zcpolicy.tmLanguage.json"


@dataclass(frozen=True)
class Piece:
    text: str
    scope: str


def grammar() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(GRAMMAR.read_text("utf-8"))
    return loaded


def flattened(patterns: list[dict[str, Any]], repository: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The patterns with what they include."""
    for pattern in patterns:
        if "include" in pattern:
            yield from flattened([repository[pattern["include"][1:]]], repository)
        elif "match" not in pattern and "begin" not in pattern:
            yield from flattened(pattern["patterns"], repository)
        else:
            yield pattern


def coloured(text: str) -> list[Piece]:
    """The pieces of a text that have a scope, without blanks; lines one by one, as editors do."""
    loaded = grammar()
    rules = list(flattened(loaded["patterns"], loaded["repository"]))
    return [piece for line in text.split("\n") for piece in line_of(line, rules) if piece.text.strip()]


def line_of(line: str, rules: list[dict[str, Any]]) -> Iterator[Piece]:
    at: int = 0
    while at < len(line):
        found: list[tuple[int, int, re.Match[str]]] = []
        for number, rule in enumerate(rules):
            match = first(rule, line, at)
            if match is not None:
                found.append((match.start(), number, match))
        if not found:
            return
        _, number, match = min(found, key=lambda one: (one[0], one[1]))
        rule = rules[number]
        if "begin" in rule:
            at = yield from string_of(line, match, rule)
            continue
        yield from captured(match, rule)
        at = max(match.end(), at + 1)


def first(rule: dict[str, Any], line: str, at: int) -> re.Match[str] | None:
    return re.compile(rule.get("match", rule.get("begin", ""))).search(line, at)


def string_of(line: str, begin: re.Match[str], rule: dict[str, Any]) -> Generator[Piece, None, int]:
    """A piece with a begin and an end, and what is coloured inside it; returns where it ends."""
    at = begin.end()
    start = begin.start()
    end = re.compile(rule["end"])
    while True:
        last = end.search(line, at)
        assert last is not None
        inner = [(match.start(), one) for one in rule["patterns"] if (match := first(one, line, at))]
        if not inner or min(inner, key=lambda pair: pair[0])[0] >= last.start():
            yield Piece(line[start : last.end()], rule["name"])
            return last.end()
        _, one = min(inner, key=lambda pair: pair[0])
        match = first(one, line, at)
        assert match is not None
        yield Piece(match[0], one["name"])
        at = match.end()


def captured(match: re.Match[str], rule: dict[str, Any]) -> Iterator[Piece]:
    captures: dict[str, Any] = rule.get("captures", {})
    if "name" in rule:
        yield Piece(match[0].strip(), rule["name"])
    for number, capture in captures.items():
        if match[int(number)]:
            yield Piece(match[int(number)], capture["name"])
