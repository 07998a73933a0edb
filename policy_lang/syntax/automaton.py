"""What can be derived from the tables once: scanners, what can come next, where reading can go on.

In: the tables of the grammar. Out: `automaton()`, shared by all readings of the process.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from policy_lang.syntax.tables import Tables, tables

RESUMING: Final = frozenset({
    "declarations", "statements", "steps", "bundle_lines", "context_lines", "cap_lines", "approval_lines",
    "runtime_lines", "server_items",
})  # fmt: skip
"""What a sequence of statements or items is called in the grammar: reading goes on behind one."""


class Scanner(NamedTuple):
    """How to read the next token in a state: `match` finds it, its last group says which it is."""

    match: Callable[[str, int], re.Match[str] | None]
    terminals: tuple[str, ...]
    words: dict[str, str]


class Automaton:
    """The tables, with what can be derived from them once."""

    def __init__(self, found: Tables) -> None:
        self.tables = found
        self.reached_by: dict[int, str] = {}
        for row in found.actions:
            for symbol, action in row.items():
                if action >= 0:
                    self.reached_by[action] = symbol
        self._scanners: dict[int, Scanner] = {}
        self._by_terminals: dict[frozenset[str], Scanner] = {}

    def scanner(self, state: int) -> Scanner:
        """The scanner of a state, made when it is first needed."""
        found = self._scanners.get(state)
        if found is None:
            wanted = self.terminals(state)
            found = self._by_terminals.get(wanted)
            if found is None:
                found = self._by_terminals[wanted] = _scanner(self.tables, wanted)
            self._scanners[state] = found
        return found

    def terminals(self, state: int) -> frozenset[str]:
        """The terminals that a state does something with, without the end."""
        known = self.tables
        return frozenset(symbol for symbol in known.actions[state] if symbol in known.words or symbol in known.patterns)

    def accepts(self, states: tuple[int, ...], terminal: str) -> bool:
        """Whether the terminal can come next, given the whole stack."""
        stack = list(states)
        actions, rules = self.tables.actions, self.tables.rules
        while True:
            action = actions[stack[-1]].get(terminal)
            if action is None:
                return False
            if action >= 0:
                return True
            rule = rules[~action]
            if rule.size:
                del stack[-rule.size :]
            stack.append(actions[stack[-1]][rule.origin])

    def resumes(self, state: int) -> bool:
        """Whether a sequence of statements has been read up to this state, or begins in it."""
        if self.reached_by.get(state) in RESUMING:
            return True
        action = self.tables.actions[state].get("SEP")
        if action is None or action >= 0:
            return False
        rule = self.tables.rules[~action]
        return not rule.size and rule.origin in RESUMING

    def beginnings(self, *sequences: str) -> frozenset[str]:
        """The words that the statements of these sequences (as the grammar calls them) begin with."""
        words = self.tables.words
        return frozenset(
            words[name]
            for state, reached in self.reached_by.items()
            if reached in sequences
            for name in self.terminals(state)
            if name in words and words[name][0].isalpha()
        )


@cache
def automaton() -> Automaton:
    """The automaton of the grammar that ships with this package."""
    return Automaton(tables())


def _scanner(known: Tables, wanted: frozenset[str]) -> Scanner:
    """Literals first, the longest first; a word ends where a name would end."""
    literals = sorted(
        (known.words[name] for name in wanted if name in known.words), key=lambda text: (-len(text), text)
    )
    words = [re.escape(text) for text in literals if text[0].isalpha()]
    marks = [re.escape(text) for text in literals if not text[0].isalpha()]
    terminals = [""]
    parts: list[str] = []
    if words or marks:
        choices = ([rf"(?:{'|'.join(words)})(?![\w*/\-])"] if words else []) + marks
        parts.append(f"({'|'.join(choices)})")
        terminals.append("")
    for name, pattern in known.patterns.items():
        if name in wanted:
            parts.append(f"({pattern})")
            terminals.append(name)
    names = {known.words[name]: name for name in wanted if name in known.words}
    return Scanner(re.compile(rf"[ \t\r]*+(?:{'|'.join(parts)})").match, tuple(terminals), names)
