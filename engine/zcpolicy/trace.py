"""The whole trace of a decision: every body, every rule that speaks of the tool, every test with what it read.

In: a verdict and its call. Out: JSON values, the execution's own bodies first.
"""

from __future__ import annotations

from zcpolicy.combine import plan_behind
from zcpolicy.condition import AllOf, Not, compile_condition, truth_of
from zcpolicy.exact import is_list, is_object, thawed
from zcpolicy.leaves import Test
from zcpolicy.operands import MISSING, Call
from zcpolicy.stack import RuleRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from zcpolicy.combine import Said, Verdict
    from zcpolicy.condition import Node
    from zcpolicy.decision import Decision
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.plan import Plan
    from zcpolicy.predicates.refs import PathRef

MAX_VALUE_CHARACTERS: Final = 1_000
"""Characters of one value that a trace shows."""
MAX_ITEMS: Final = 100
"""Elements of one list that a trace shows."""

_TRUTH: Final = {True: "true", False: "false", None: "unknown"}


def trace(
    verdict: Verdict, arguments: dict[str, Any], run: ResolvedAgentExecution, labels: frozenset[str]
) -> list[dict[str, Any]]:
    """One entry for each body: `{body, kind, effect, reasons, rules}`; nothing if no tool was found or judged."""
    plan = plan_behind(verdict)
    if plan is None or not verdict.said:
        return []
    call = Call(arguments, run.session, labels, plan.tool)
    return [_body(plan, said, call) for said in verdict.said]


def lacking(decision: Decision) -> str:
    """The fact that the deciding conditions could not be told without: `cwd`, `server_cwd`; "" if that was not why."""
    plan = plan_behind(decision.verdict)
    if plan is None or decision.effect == "allow":
        return ""
    call = Call(decision.arguments, decision.run.session, decision.labels, plan.tool)
    if call.where.cwd is not None or not any(map(_is_relative, call.found.paths)):
        return ""
    for said in decision.said:
        if said.effect != decision.effect or said.body is None:
            continue
        for rule in said.body.data.get("rules", ()):
            condition = rule.get("if")
            if condition is not None and plan.speaks(rule):
                node = compile_condition(condition, plan.site(rule["effect"]))
                if truth_of(node, call) is None and any(_lacks(test, call) for test in _tests(node)):
                    return _fact(call)
    return ""


def _tests(node: Node) -> list[Test]:
    if isinstance(node, Test):
        return [node]
    return [test for part in ([node.part] if isinstance(node, Not) else node.parts) for test in _tests(part)]


def _lacks(test: Test, call: Call) -> str:
    """The directory without which the test cannot be told, and with which it could be."""
    if call.where.cwd is not None or not any(map(_is_relative, call.found.paths)) or test.ask(call) is not None:
        return ""
    return _fact(call) if test.ask(call.started_at("/")) is not None else ""


def _fact(call: Call) -> str:
    return "cwd" if call.tool["server"] is None else "server_cwd"


def _is_relative(path: PathRef) -> bool:
    first = path.parts[0] if path.parts else None
    return path.base is not None and isinstance(first, str) and first[:1] not in ("/", "~", "")


def _body(plan: Plan, said: Said, call: Call) -> dict[str, Any]:
    rules: list[dict[str, Any]] = []
    if said.body is not None:
        for index, rule in enumerate(said.body.data.get("rules", ())):
            if plan.speaks(rule):
                rules.append(_rule(plan, said, index, rule, call))
    return {
        "body": said.name,
        "kind": "protected" if said.body is None else said.body.kind,
        "effect": said.effect,
        "reasons": list(said.reasons),
        "rules": rules,
        "decided": [rule.to_json() for rule in said.rules],
    }


def _rule(plan: Plan, said: Said, index: int, rule: Any, call: Call) -> dict[str, Any]:
    assert said.body is not None
    found = RuleRef(said.body, "rules", index).to_json()
    found["effect"] = rule["effect"]
    condition = rule.get("if")
    if condition is None:
        return {**found, "truth": "true", "condition": None}
    node = compile_condition(condition, plan.site(rule["effect"]))
    return {**found, "truth": _TRUTH[truth_of(node, call)], "condition": _node(node, call)}


def _node(node: Node, call: Call) -> dict[str, Any]:
    truth = _TRUTH[truth_of(node, call)]
    if isinstance(node, Test):
        found = {"test": thawed(node.leaf), "truth": truth, "value": _value(node.value(call))}
        lacks = _lacks(node, call)
        return {**found, "lacks": lacks} if lacks else found
    if isinstance(node, Not):
        return {"not": _node(node.part, call), "truth": truth}
    return {"all" if isinstance(node, AllOf) else "any": [_node(part, call) for part in node.parts], "truth": truth}


def _value(value: Any) -> Any:
    """What a test read, as JSON and not too long; paths and URLs with `…` for what is not known of them."""
    if value is MISSING:
        return None
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE_CHARACTERS else value[:MAX_VALUE_CHARACTERS] + "…"
    if is_list(value):
        return [_value(one) for one in value[:MAX_ITEMS]]
    parts = getattr(value, "parts", None)
    if parts is not None:
        return _value("".join(part if isinstance(part, str) else "…" for part in parts))
    if is_object(value):
        return {name: _value(one) for name, one in [*value.items()][:MAX_ITEMS]}
    return value
