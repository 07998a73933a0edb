"""Rules over `paths` and `urls` where what they see is only a lower bound (SPEC 7).

In: `Survey`. Out: ZC4009 (`every`, or `not some`, over what a command touches: never TRUE), ZC4008 (the unreviewed strings
that a `paths` or `urls` rule meets, once per rule).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from policy_lang import ast, codes
from policy_lang.bound import Bound
from policy_lang.checks.literals import parts_of
from policy_lang.checks.parameters import runs_text
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import RuleAt, text_of, tool_names
from policy_lang.conditions import leaves, stands_for_granting
from policy_lang.diagnostics import Diagnostic
from zcpolicy.program import Schema

Param = tuple[int, str]
"""A tool and one of its parameters."""

_NAMED_SO = re.compile(r"(?i)path|file|folder|dir|ur[il]|href|link")

MAX_LISTED = 8
"""The most parameters that a message lists."""


@dataclass(slots=True)
class _Params:
    """The unreviewed parameters of each tool, and of each set of tools."""

    bound: Bound
    shells: frozenset[int]
    _of_tool: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    _of_set: dict[frozenset[int], list[Param]] = field(default_factory=dict["frozenset[int]", "list[Param]"])

    def of_set(self, ids: frozenset[int]) -> list[Param]:
        """Each tool and parameter; those named like paths or urls first, then in the order of the catalogue."""
        if ids not in self._of_set:
            found = [(number, name) for number in sorted(ids) for name in self.of_tool(number)]
            self._of_set[ids] = sorted(found, key=lambda param: not _NAMED_SO.search(param[1]))
        return self._of_set[ids]

    def show(self, param: Param) -> str:
        """`github/get_issue(owner)`."""
        return f"`{self.bound.catalogue.tools[param[0]].shown}({param[1]})`"

    def statement(self, param: Param, kind: str) -> str | None:
        """The kind that a `tool` statement could give the parameter; `None` where none can say it."""
        schema = self.bound.catalogue.tools[param[0]].schema.get("fields", {})[param[1]]
        if schema["kind"] == "list":
            return f"list<{kind}>" if schema.get("item", {}).get("kind") in (None, "string", "any") else None
        return kind if schema["kind"] in ("string", "any") else None

    def of_tool(self, number: int) -> tuple[str, ...]:
        if number not in self._of_tool:
            fields = self.bound.catalogue.tools[number].schema.get("fields", {})
            self._of_tool[number] = tuple(name for name, schema in fields.items() if _unreviewed(schema))
        return self._of_tool[number]


def _unreviewed(schema: Schema) -> bool:
    """Whether a value may hold strings whose kind nobody gave."""
    if schema.get("unreviewed") or schema.get("extra") == "allow":
        return "enum" not in schema
    inner = [*schema.get("fields", {}).values()]
    if "item" in schema:
        inner.append(schema["item"])
    return any(_unreviewed(each) for each in inner)


def check(reach: Reach) -> Iterator[Diagnostic]:
    """Every rule that looks at `paths` or `urls`, once."""
    survey = reach.survey
    tools = survey.bound.catalogue.tools
    params = _Params(survey.bound, frozenset(number for number, tool in enumerate(tools) if runs_text(tool)))
    granted: frozenset[int] | None = None
    for view, rule in survey.written_in():
        if rule.always or not rule.ids:
            continue
        tests = [
            leaf for leaf, _ in leaves(rule.node) if isinstance(leaf, ast.Test) and leaf.left.root in ("paths", "urls")
        ]
        if tests:
            signs = _signs(rule)
            whole = [test for test in tests if _needs_all(rule, test, positive=signs[id(test)])]
            for test in whole:
                yield from _over_commands(params, rule, test)
            if view.body.name in survey.agents:
                met = rule.ids & reach.granted(view.body.name)
            else:
                granted = reach.granted_by_any() if granted is None else granted
                met = rule.ids & granted
            yield from _unreviewed_met(params, (rule, met), tests[0], unsure=bool(whole))


def _needs_all(rule: RuleAt, test: ast.Test, *, positive: bool) -> bool:
    """Whether a test, where it stands, has to know every path: `every` for granting, or that there is none."""
    grants = stands_for_granting(rule.node.effect)
    if test.each == "every":
        return grants == positive
    return grants and not positive


def _over_commands(params: _Params, rule: RuleAt, test: ast.Test) -> Iterator[Diagnostic]:
    shells = rule.ids & params.shells
    if not shells:
        return
    written = text_of(rule.source, test.span)
    message = f"`{written}` is never sure on {tool_names(params.bound, shells)}: a command may touch what its text does not show"
    help_text = f"{_effect(rule)} there: grant commands with `runs only`, and withhold with `deny … when some {test.left.root} …`"
    yield Diagnostic(codes.EVERY_ON_SHELL, message, rule.source, test.span, (), help_text)


def _effect(rule: RuleAt) -> str:
    grants = stands_for_granting(rule.node.effect)
    return f"this `{rule.node.effect}` grants nothing" if grants else f"this `{rule.node.effect}` makes no exception"


def _signs(rule: RuleAt) -> dict[int, bool]:
    """For each leaf, by id, whether it stands under an even number of negations; `unless` is one."""
    out: dict[int, bool] = {}
    todo = parts_of(rule.node)
    while todo:
        node, holds = todo.pop()
        match node:
            case ast.Not(inner=inner):
                todo.append((inner, not holds))
            case ast.And(items=items) | ast.Or(items=items):
                todo.extend((item, holds) for item in items)
            case _:
                out[id(node)] = holds
    return out


def _unreviewed_met(
    params: _Params, at: tuple[RuleAt, frozenset[int]], test: ast.Test, *, unsure: bool
) -> Iterator[Diagnostic]:
    """`at`: the rule, and those of its tools that somebody can call."""
    rule, ids = at
    met = params.of_set(ids)
    if not met:
        return
    shown = ", ".join(map(params.show, met[:MAX_LISTED])) + (
        f" and {len(met) - MAX_LISTED} more" if len(met) > MAX_LISTED else ""
    )
    message = f"`{test.left.root}` reads strings whose kind nobody has given: {shown}"
    kind = "path" if test.left.root == "paths" else "url"
    help_text = (
        f"{_effect(rule)} there, since any of them may be a {kind}"
        if unsure
        else f"each is taken for a possible {kind}"
    )
    example = next((param for param in met if params.statement(param, kind) is not None), None)
    if example is not None:
        tool, name = params.bound.catalogue.tools[example[0]].shown, example[1]
        given, text = params.statement(example, kind), params.statement(example, "string")
        help_text += f"; once reviewed, write `tool {tool}({name}: {given})`, or `{name}: {text}`"
    yield Diagnostic(codes.UNREVIEWED_MET, message, rule.source, test.left.span, (), help_text)
