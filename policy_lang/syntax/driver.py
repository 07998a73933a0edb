"""Drive the tables over a text: one token at a time, nodes made as soon as a rule is complete.

In: a flat text (`layout`), the tables, what makes nodes. Out: the declarations; `Failure`s, after each of which
reading goes on at the next statement. Linear in the text; no recursion.
"""

import re
from typing import Any, Final, NamedTuple

from policy_lang.source import Span
from policy_lang.syntax.automaton import Scanner, automaton
from policy_lang.syntax.declarations import Declarations, Make
from policy_lang.syntax.tables import END, Rule

MAX_FAILURES: Final = 50
"""Syntax errors after which the rest of a file is not read."""

_ENDERS: Final = frozenset({"\n", ";", "}"})
"""After one of them a statement is whole, and what follows is another."""

_BLANKS = re.compile(r"[ \t\r]*+")
_STRUCTURE = re.compile(
    r"""[^"r\n;(){}\[\]]++|(?<![\w\-])r"[^"\n]*+"|"(?:[^"\\\n]|\\.)*+"|(?P<mark>[\n;(){}\[\]])|.""", re.DOTALL
)


class Failure(NamedTuple):
    """A place where the text stops making sense; the token before it ended at `end`.

    `states` is the stack there; `statement` covers what is passed over.
    """

    at: int
    end: int
    states: tuple[int, ...]
    statement: Span


class Driver:
    """One reading of one text."""

    def __init__(self, text: str, make: Declarations) -> None:
        self.text = text
        self.automaton = automaton()
        self.failures: list[Failure] = []
        known = self.automaton.tables
        self._rules = [(rule.origin, rule.size, _maker(rule, make)) for rule in known.rules]
        self._makers = {name: make.of_terminal(name) for name in (*known.patterns, *known.words)}
        self._scanners: list[Scanner | None] = [None] * len(known.actions)
        self.at = 0
        self.states = [known.start]
        self.values: list[Any] = [None]
        self.starts = [0]
        self.end = 0

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
        text, states, values, starts, end = self.text, self.states, self.values, self.starts, self.end
        actions, rules, makers, scanners = self.automaton.tables.actions, self._rules, self._makers, self._scanners
        while True:
            state = states[-1]
            scanner = scanners[state] or self._scanner(state)
            found = scanner.match(text, at)
            if found is None:
                return self._stopped(at, end)
            group = found.lastindex or 0
            start, at = found.span(group)
            piece = text[start:at]
            terminal = scanner.terminals[group] or scanner.words[piece]
            while (action := actions[state].get(terminal)) is None or action < 0:
                if action is None:
                    return self._stopped(start, end)
                origin, size, make = rules[~action]
                if make is None:
                    states.pop()
                elif size:
                    begin = starts[-size]
                    value = make(values[-size:], begin, end)
                    del states[-size:], values[-size:], starts[-size:]
                    values.append(value)
                    starts.append(begin)
                else:
                    values.append(make([], start, start))
                    starts.append(start)
                state = actions[states[-1]][origin]
                states.append(state)
            maker = makers[terminal]
            states.append(action)
            values.append(maker(piece, start, at) if maker else piece)
            starts.append(start)
            end = at

    def _scanner(self, state: int) -> Scanner:
        found = self._scanners[state] = self.automaton.scanner(state)
        return found

    def _stopped(self, at: int, end: int) -> bool:
        """Whether the text ends here as a whole; else its next token does not fit. `end`: where the last one ended."""
        self.end = end
        blanks = _BLANKS.match(self.text, at)
        self.at = blanks.end() if blanks else at
        return self.at == len(self.text) and self._finish()

    def _finish(self) -> bool:
        """Apply the rules that the end of the text completes; whether it is a whole file then."""
        self._complete(END)
        return self.states[-1] == self.automaton.tables.end

    def _complete(self, terminal: str = "SEP") -> None:
        """Apply the rules that are complete before a terminal."""
        actions = self.automaton.tables.actions
        while (action := actions[self.states[-1]].get(terminal, 0)) < 0:
            origin, size, make = self._rules[~action]
            keep = len(self.states) - size
            if make is not None:
                begin = self.starts[keep] if size else self.at
                self.values[keep:] = [make(self.values[keep:], begin, max(begin, self.end))]
                self.starts[keep:] = [begin]
            del self.states[keep:]
            self.states.append(actions[self.states[-1]][origin])

    def _resume(self) -> int:
        """Note a failure, go back to the sequence it lies in, and return the place behind the broken statement."""
        if self.text[self.end - 1 : self.end] in _ENDERS:
            self._complete()
        states = tuple(self.states)
        place = len(states) - 1
        while place and not self.automaton.resumes(states[place]):
            place -= 1
        begin = self.starts[place + 1] if place + 1 < len(states) else self.at
        end = self._statement_end(begin)
        self.failures.append(Failure(self.at, self.end, states, Span(begin, end)))
        for stack in (self.states, self.values, self.starts):
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


def _maker(rule: Rule, make: Declarations) -> Make | None:
    """The method that makes a rule's node; None where its one part is its value."""
    if rule.passing:
        return None
    found = make.of_rule(rule.name)
    return None if rule.size == 1 and found == make.first else found
