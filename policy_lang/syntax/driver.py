"""Drive the tables over a text: one token at a time, nodes made as soon as a rule is complete.

In: a flat text (`layout`), the tables, what makes nodes. Out: the declarations; `Failure`s, after each of which
reading goes on at the next statement. Linear in the text; no recursion.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from policy_lang.source import Span
from policy_lang.syntax.declarations import Declarations
from policy_lang.syntax.tables import END, Tables, tables

MAX_FAILURES: Final = 50
"""Syntax errors after which the rest of a file is not read."""

RESUMING: Final = frozenset(
    "declarations statements steps bundle_lines context_lines cap_lines approval_lines runtime_lines server_items".split()
)
"""What a sequence of statements or items is called in the grammar: reading goes on behind one."""

_BLANKS = re.compile(r"[ \t\r]*+")
_STRUCTURE = re.compile(r"""[^"r\n;(){}\[\]]++|(?<![\w\-])r"[^"\n]*+"|"(?:[^"\\\n]|\\.)*+"|(?P<mark>[\n;(){}\[\]])|.""", re.DOTALL)


class Scanner(NamedTuple):
    """How to read the next token in a state: `match` finds it, its last group says which it is."""

    match: Callable[[str, int], re.Match[str] | None]
    terminals: tuple[str, ...]
    words: dict[str, str]


class Failure(NamedTuple):
    """A place where the text stops making sense. `states` is the stack; `statement` covers what is passed over."""

    at: int
    states: tuple[int, ...]
    statement: Span


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
        return frozenset(
            symbol for symbol in known.actions[state] if symbol in known.words or symbol in known.patterns
        )

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
        return action is not None and action < 0 and not (rule := self.tables.rules[~action]).size and rule.origin in RESUMING


@cache
def automaton() -> Automaton:
    """The automaton of the grammar that ships with this package."""
    return Automaton(tables())


def _scanner(known: Tables, wanted: frozenset[str]) -> Scanner:
    """Literals first, the longest first; a word ends where a name would end."""
    literals = sorted((known.words[name] for name in wanted if name in known.words), key=lambda text: (-len(text), text))
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


class Driver:
    """One reading of one text."""

    def __init__(self, text: str, make: Declarations) -> None:
        self.text = text
        self.automaton = automaton()
        self.failures: list[Failure] = []
        known = self.automaton.tables
        self._rules = [
            (rule.origin, rule.size, None if rule.passing else make.of_rule(rule.name)) for rule in known.rules
        ]
        self._makers = {name: make.of_terminal(name) for name in (*known.patterns, *known.words)}
        self._scanners: list[Scanner | None] = [None] * len(known.actions)
        self.at = 0
        self.states = [known.start]
        self.values: list[Any] = [None]
        self.starts = [0]
        self.ends = [0]

    def run(self) -> list[Any]:
        """Read the text to its end and return the declarations."""
        at = 0
        while not self._read(at):
            at = self._resume()
            if len(self.failures) >= MAX_FAILURES:
                break
        declarations: list[Any] = self.values[1] if len(self.values) > 1 else []
        return declarations

    def _read(self, at: int) -> bool:
        """Read until the end (True), or until no token fits (False): then `at` is its place."""
        text, states, values, starts, ends = self.text, self.states, self.values, self.starts, self.ends
        actions, rules, makers, scanners = self.automaton.tables.actions, self._rules, self._makers, self._scanners
        while True:
            state = states[-1]
            scanner = scanners[state] or self._scanner(state)
            found = scanner.match(text, at)
            if found is None:
                return self._stopped(at)
            group = found.lastindex or 0
            start, at = found.span(group)
            piece = text[start:at]
            terminal = scanner.terminals[group] or scanner.words[piece]
            while (action := actions[state].get(terminal)) is None or action < 0:
                if action is None:
                    return self._stopped(start)
                origin, size, make = rules[~action]
                if make is None:
                    states.pop()
                elif size:
                    begin, end = starts[-size], ends[-1]
                    value = make(values[-size:], begin, end)
                    del states[-size:], values[-size:], starts[-size:], ends[-size:]
                    values.append(value)
                    starts.append(begin)
                    ends.append(end)
                else:
                    values.append(make([], start, start))
                    starts.append(start)
                    ends.append(ends[-1])
                state = actions[states[-1]][origin]
                states.append(state)
            maker = makers[terminal]
            states.append(action)
            values.append(maker(piece, start, at) if maker else piece)
            starts.append(start)
            ends.append(at)

    def _scanner(self, state: int) -> Scanner:
        found = self._scanners[state] = self.automaton.scanner(state)
        return found

    def _stopped(self, at: int) -> bool:
        """Whether the text ends here as a whole; else its next token does not fit."""
        blanks = _BLANKS.match(self.text, at)
        self.at = blanks.end() if blanks else at
        return self.at == len(self.text) and self._finish()

    def _finish(self) -> bool:
        """Apply the rules that the end of the text completes."""
        known = self.automaton.tables
        while self.states[-1] != known.end:
            action = known.actions[self.states[-1]].get(END)
            if action is None:
                return False
            origin, size, make = self._rules[~action]
            keep = len(self.states) - size
            if make is not None:
                self.values[keep:] = [make(self.values[keep:], self.at, self.at)]
            self.starts[keep:] = self.ends[keep:] = [self.at]
            del self.states[keep:]
            self.states.append(known.actions[self.states[-1]][origin])
        return True

    def _resume(self) -> int:
        """Note a failure, go back to the sequence it lies in, and return the place behind the broken statement."""
        states = tuple(self.states)
        place = len(states) - 1
        while place and not self.automaton.resumes(states[place]):
            place -= 1
        begin = self.starts[place + 1] if place + 1 < len(states) else self.at
        end = self._statement_end(begin)
        self.failures.append(Failure(self.at, states, Span(begin, end)))
        for stack in (self.states, self.values, self.starts, self.ends):
            del stack[place + 1 :]
        return end

    def _statement_end(self, begin: int) -> int:
        """Where the statement that begins there and failed ends: a separator, a block's end or what closes it."""
        depth = 0
        for found in _STRUCTURE.finditer(self.text, begin):
            mark = found["mark"]
            if mark is None:
                continue
            start, end = found.span()
            if mark in "([{":
                depth += 1
            elif mark in ")]}":
                if mark == "}" and not depth and start >= self.at:
                    return start
                depth = max(depth - 1, 0)
                if mark == "}" and not depth and start >= self.at:
                    return end
            elif not depth and start >= self.at:
                return start
        return len(self.text)
