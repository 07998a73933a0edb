"""Calls that show a finding, confirmed by the evaluator.

In: a `Survey`, an agent, a tool, arguments. Out: `call shell(command: "id") => allow` where the evaluator decides so, else
nothing. The evaluator is asked about a small policy: the agent with what it narrows and the ceilings, without what needs
other agents.
"""

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from policy_lang import ast
from policy_lang.bound import BoundBody
from policy_lang.checks.survey import RuleAt, Survey, View
from policy_lang.lower.program import lower
from policy_lang.tools import quote
from zcpolicy.program import CompiledError, Program, Schema

if TYPE_CHECKING:
    from zcpolicy.resolver import ResolvedAgentExecution

MAX_WITNESSES: Final = 8
"""So many calls are tried per check; later findings have no witness."""

MAX_DEPTH: Final = 8
"""A sample argument is nested at most so deep."""

Json = str | int | bool | None | list["Json"] | dict[str, "Json"]

SAMPLES: Final[dict[str, Json]] = {
    "string": "x", "path": "/srv/x", "url": "https://example.org/", "shell": "id", "command": "dir",
    "integer": 1, "number": 1, "boolean": True, "list": [], "any": "x",
}  # fmt: skip
"""An argument of each kind that hardly any rule is about."""

_OF_OTHERS: Final = (ast.Skills, ast.Memory, ast.Delegate, ast.DelegateDepth, ast.DelegateNone)
"""What names others, and decides no call; all else is kept: a `require`, a limit of none, nobody to ask."""


@dataclass(slots=True)
class Witnesses:
    """Executions of agents of one policy, built when first asked."""

    survey: Survey
    tried: int = 0
    _runs: dict[str, "ResolvedAgentExecution | None"] = field(
        default_factory=dict[str, "ResolvedAgentExecution | None"]
    )

    def of(
        self, agent: str, tool: int, wanted: str, arguments: dict[str, Json] | None = None, reason: str | None = None
    ) -> str | None:
        """The call, with sample arguments where none are given, if it is decided as wanted (and for the reason named)."""
        info = self.survey.bound.catalogue.tools[tool]
        sent = arguments if arguments is not None else sample(info.schema)
        if self.tried >= MAX_WITNESSES or sent is None:
            return None
        self.tried += 1
        run = self._run(agent)
        name = info.key[1] if info.key[0] is None else (info.key[0], info.key[1])
        if run is None:
            return None
        decision = run.decide(name, sent)
        if decision.effect != wanted or reason not in (None, decision.reason):
            return None
        written = ", ".join(f"{_key(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in sent.items())
        return f"call {info.shown}({written}) => {wanted}"

    def any_of(self, agent: str, tools: frozenset[int], wanted: str) -> str | None:
        """A call of the first tool, in the order of the catalogue, that shows it."""
        return next((found for tool in sorted(tools)[:3] if (found := self.of(agent, tool, wanted)) is not None), None)

    def of_rule(self, view: View, rule: RuleAt) -> str | None:
        """A call of one of the rule's tools that is decided as the rule says; only agents have calls."""
        wanted = {"allow": "allow", "ask": "ask", "deny": "deny"}.get(rule.node.effect)
        if wanted is None or view.body.kind not in ("agent", "narrows"):
            return None
        return self.any_of(view.body.name, rule.ids, wanted)

    def _run(self, agent: str) -> "ResolvedAgentExecution | None":
        if agent not in self._runs:
            from zcpolicy.facts import Session
            from zcpolicy.resolver import ResolveError, Resolver

            try:
                self._runs[agent] = Resolver(self._program(agent)).resolve(agent, session=Session(interactive=True))
            except (CompiledError, ResolveError):
                self._runs[agent] = None
        return self._runs[agent]

    def _program(self, agent: str) -> Program:
        bound = self.survey.bound
        small = replace(
            bound,
            agents={body.name: _small(body) for body in bound.chain(agent)},
            ceilings=tuple(_small(body) for body in bound.ceilings),
            skills={},
        )
        return Program.build(*lower(small))


def _small(body: BoundBody) -> BoundBody:
    return replace(
        body, statements=tuple(placed for placed in body.statements if not isinstance(placed.node, _OF_OTHERS))
    )


def sample(schema: Schema, depth: int = 0) -> dict[str, Json] | None:
    """Arguments with only what must be sent; `None` where something in them cannot be made up."""
    out: dict[str, Json] = {}
    for name in schema.get("required", []):
        inner = schema.get("fields", {}).get(name)
        if inner is None or depth > MAX_DEPTH:
            return None
        if "enum" in inner:
            texts = [value for value in inner["enum"] if isinstance(value, str)]
            if not texts:
                return None
            out[name] = texts[0]
        elif inner["kind"] == "object":
            out[name] = sample(inner, depth + 1)
            if out[name] is None:
                return None
        else:
            out[name] = SAMPLES.get(inner["kind"])
    return out


def _key(name: str) -> str:
    return name if name.isidentifier() else quote(name)
