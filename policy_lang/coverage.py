"""Which rules, and which outcomes of their tests, no test of a policy reached.

In: a compiled policy and the results of its tests. Out: the rules with what is missing. A rule counts as reached
where a decision of its body read it; each test of its condition should have come out both ways.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from policy_lang.testing import TestResult
from zcpolicy.program import Program, agent_of, head_of, origins_of
from zcpolicy.shapes import Body, BodyOrigins

Key = tuple[str, int, str]
"""File, line, text: a rule as it was written."""
LeafText = Callable[[dict[str, Any]], str]


@dataclass(slots=True)
class Reached:
    """A rule: how often a call read it and it held; for each of its tests, as the language writes it, its outcomes."""

    file: str
    line: int
    text: str
    calls: int = 0
    held: int = 0
    tests: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    @property
    def missing(self) -> list[str]:
        """What no test reached, in words."""
        if not self.calls:
            return ["no call reached it"]
        found = [
            f"`{test}` was never {truth}"
            for test, seen in self.tests.items()
            for truth in ("true", "false")
            if truth not in seen
        ]
        return found if found or self.held else ["it never held"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """`rules`: every rule of the policy, by place."""

    rules: tuple[Reached, ...]

    @property
    def reached(self) -> int:
        """Rules that held in some call."""
        return sum(rule.held > 0 for rule in self.rules)


def coverage(program: Program, results: Iterable[TestResult], leaf_text: LeafText) -> Coverage:
    """What the tests reached; `leaf_text` writes a compiled test in the language."""
    rules = {key: Reached(*key) for key in _all_rules(program)}
    for result in results:
        for call in result.calls:
            for body in call.decision.trace() if call.decision is not None else ():
                for rule in body["rules"]:
                    reached = rules.get((rule["file"] or "", rule["line"] or 0, rule["text"] or ""))
                    if reached is not None:
                        _note(reached, rule, leaf_text)
    return Coverage(tuple(rules[key] for key in sorted(rules)))


def _note(reached: Reached, rule: dict[str, Any], leaf_text: LeafText) -> None:
    reached.calls += 1
    reached.held += rule["truth"] == "true"
    for test, truth in _leaves(rule["condition"], leaf_text) if rule["condition"] else ():
        reached.tests.setdefault(test, set()).add(truth)


def _leaves(node: dict[str, Any], leaf_text: LeafText) -> Iterator[tuple[str, str]]:
    if "test" in node:
        yield leaf_text(node["test"]), node["truth"]
    for part in [*node.get("all", []), *node.get("any", []), *([node["not"]] if "not" in node else [])]:
        yield from _leaves(part, leaf_text)


def _all_rules(program: Program) -> Iterator[Key]:
    head = head_of(program)
    for name in program.agents:
        agent = agent_of(program, name)
        if agent is not None:
            yield from _rules_of(agent["body"], origins_of(program, "agent", name))
    yield from _rules_of(head["ceiling"], origins_of(program, "ceiling", ""))
    for name, body in head["skills"].items():
        yield from _rules_of(body, origins_of(program, "skill", name))


def _rules_of(body: Body, origins: BodyOrigins) -> Iterator[Key]:
    places = origins.get("rules", [])
    for index in range(min(len(body.get("rules", [])), len(places))):
        for file, line, text in places[index][:1]:
            yield file, int(line), text
