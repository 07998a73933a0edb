"""A decision as text: its answer and reason, the statements behind it, on request the whole proof.

In: a `Decision`. Out: text in one of three styles. Imports nothing of the language.
"""

from __future__ import annotations

from zcpolicy.texts import LACKING, escaped, json_text, spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from zcpolicy.decision import Decision
    from zcpolicy.program import Program


def decision_text(decision: Decision, style: str, *, trace: bool = False) -> str:
    """The decision in one style, with a newline at its end."""
    if style == "json":
        return json_text(decision.to_json(trace=trace)) + "\n"
    if style == "plain":
        places = (_place(rule.to_json()) for rule in decision.rules)
        return " ".join([decision.effect, decision.reason, *places]) + "\n"
    lines = [f"{decision.effect} ({decision.reason}): {spelled(decision.tool)} for agent {escaped(decision.agent)}"]
    lines += [f"  {line}" for line in because(decision)]
    if trace:
        lines += ["", *proof(decision)]
    return "\n".join(lines) + "\n"


def because(decision: Decision) -> Iterator[str]:
    """The statements that decided, each with its place; what is wrong with a malformed call."""
    for rule in decision.rules:
        said = rule.to_json()
        if said["text"] is None:
            yield f"the {rule.body.kind} says so"
        else:
            yield f"{_place(said)}: {escaped(said['text'])}"
    if decision.note:
        yield escaped(decision.note)
    if decision.reason == "unknown-tool" and not decision.note:
        yield f"the policy knows no tool of this name; {_meant(decision)}"
    if decision.reason == "not-granted":
        yield "no `allow` grants this call"
    if decision.lacks:
        yield LACKING[decision.lacks]


def _meant(decision: Decision) -> str:
    """The tool that was perhaps meant: one of that name on a server, else the nearest."""
    from policy_lang.cli.tool_name import written
    from policy_lang.cli.words import nearest

    asked, known = decision.tool, decision.run.resolver.program.tools
    name = asked if isinstance(asked, str) else asked[-1]
    found = next((written(tool) for tool in known if not isinstance(tool, str) and name == tool[1]), None)
    found = found or nearest(written(asked), [written(tool) for tool in known])
    found = found or nearest(name, [tool for tool in known if isinstance(tool, str)])
    return f"did you mean `{found}`?" if found else "a server's is written `server/name`"


def refusal_text(reason: str, note: str, program: Program, style: str) -> str:
    """The deny of a call that nobody could make: the execution itself cannot be."""
    if style == "json":
        nothing: dict[str, Any] = {
            "rules": [],
            "bodies": [],
            "arguments": {},
            "charges": [],
            "approval": None,
            "facts": {},
        }
        texts = {"for_model": "This call is not permitted.", "for_person": f"Denied: {note}", "for_log": note}
        said = {"effect": "deny", "reason": reason, **nothing, "digest": program.digest, "generation": 1, **texts}
        return json_text({**said, "note": note}) + "\n"
    return f"deny {reason}\n" if style == "plain" else f"deny ({reason})\n  {escaped(note)}\n"


def _place(rule: dict[str, Any]) -> str:
    return f"{escaped(rule['file'])}:{rule['line']}" if rule["file"] else "?"


# --- the proof ----------------------------------------------------------------------------------------

_TRUTH: Final = {"true": "holds", "false": "does not hold", "unknown": "cannot be told"}


def proof(decision: Decision) -> Iterator[str]:
    """Body by body: each rule with its tests and what they read, and the minimum at the end."""
    bodies = decision.trace()
    if not bodies:
        yield f"No rule is read: {decision.reason}."
        return
    for number, body in enumerate(bodies, 1):
        name = body["kind"] if body["kind"] == body["body"] else f"{body['kind']} {escaped(body['body'])}"
        yield f"{number}. {name}:"
        for rule in body["rules"]:
            yield from _rule(rule)
        for rule in body["decided"]:
            if all(rule["line"] != other["line"] or rule["text"] != other["text"] for other in body["rules"]):
                yield f"   {_statement(rule, name)}"
        yield f"   → {_conclusion(body)}"
    answers = [body["effect"] for body in bodies]
    least = min(answers, key=["deny", "ask", "allow"].index)
    whose = f"the least of {', '.join(answers)} is {least}" if len(answers) > 1 else f"its answer is {least}"
    yield f"∴ {whose}; the decision is {decision.effect} ({decision.reason})."


def _statement(rule: dict[str, Any], name: str) -> str:
    return f"{escaped(rule['text'])}  [{_place(rule)}]" if rule["text"] is not None else f"the {name} says so"


def _conclusion(body: dict[str, Any]) -> str:
    reasons = f" ({', '.join(body['reasons'])})" if body["reasons"] else ""
    silent = " (nothing here withholds it)" if body["effect"] == "allow" and not body["decided"] else ""
    return f"{body['effect']}{reasons}{silent}"


def _rule(rule: dict[str, Any]) -> Iterator[str]:
    yield f"   {escaped(rule['text'] or rule['effect'])}  [{_place(rule)}]"
    if rule["condition"] is None:
        yield "       holds: it has no condition"
        return
    lines = list(_node(rule["condition"], 0))
    if len(lines) == 1:
        yield f"       {lines[0]}"
    else:
        yield f"       {_TRUTH[rule['truth']]}, because"
        yield from (f"         {line}" for line in lines)


def _node(node: dict[str, Any], depth: int) -> Iterator[str]:
    """A test with what it read; below `and`, `or`, `not` one line each."""
    indent = "  " * depth
    if "test" in node:
        yield f"{indent}{_TRUTH[node['truth']]}: {test_text(node['test'])}{_read(node['value'], node['test'])}" + (
            f"; {LACKING[node['lacks']]}" if "lacks" in node else ""
        )
        return
    if "not" in node:
        yield f"{indent}{_TRUTH[node['truth']]}: not"
        yield from _node(node["not"], depth + 1)
        return
    word = "all" if "all" in node else "any"
    yield f"{indent}{_TRUTH[node['truth']]}: {word} of"
    for part in node[word]:
        yield from _node(part, depth + 1)


def _read(value: Any, leaf: dict[str, Any]) -> str:
    if "has" in leaf:
        return ""
    if "marked" in leaf:
        return f" — labels: {', '.join(map(escaped, value)) if value else 'none'}"
    if value and leaf["left"] in (["paths"], ["urls"]):
        value = list(dict.fromkeys(map(str, value)))  # texts: one path is often mentioned twice
    return " — not there" if value is None else f" — it is {escaped(json_text(value, safe=False))[:200]}"


def test_text(leaf: dict[str, Any]) -> str:
    """A compiled test as the language writes it."""
    if "has" in leaf:
        return f"has {_operand(['args', *leaf['has']])}"
    if "marked" in leaf:
        return f"marked {escaped(leaf['marked'])}"
    right, test = leaf["right"], leaf["test"]
    if "operand" in right:
        shown = _operand(right["operand"])
    else:
        values = [escaped(_value(one)) for one in right]
        listed = len(values) != 1 or test in ("runs only", "runs any")
        shown = f"[{', '.join(values)}]" if listed else values[0]
        test = "in" if test == "==" and listed else test
    each = f"{leaf['each']} " if "each" in leaf else ""
    return f"{'not ' if leaf.get('negate') else ''}{each}{_operand(leaf['left'])} {test} {shown}"


def _operand(path: list[str]) -> str:
    return ".".join(part if part.replace("-", "_").isidentifier() else json_text(part) for part in path)


def _value(value: Any) -> str:
    if value is None or isinstance(value, str | bool):
        return json_text(value)
    if "n" in value:
        return str(value["n"])
    if "list" in value:
        return f"[{', '.join(map(_value, value['list']))}]"
    return "{" + ", ".join(f"{json_text(name)}: {_value(one)}" for name, one in value["object"].items()) + "}"
