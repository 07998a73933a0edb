"""Conditions as the program holds them.

In: a rule's `when` and `unless`. Out: one condition, each leaf with the side that it stands on.
"""

import json

from policy_lang import ast
from policy_lang.bound import Bound
from policy_lang.conditions import stands_for_granting
from policy_lang.gather import LoadedFile
from policy_lang.values import encode
from zcpolicy.shapes import Condition, Leaf, Operand, OperandRight, TestName, Value


def lower_conditions(rule: ast.Rule, bound: Bound, file: LoadedFile) -> Condition | None:
    """All of `when` and not `unless`; `None` for an unconditional rule."""
    grants = stands_for_granting(rule.effect)
    parts: list[Condition] = []
    if rule.when is not None:
        parts.append(_lower(rule.when, grants, bound, file))
    if rule.unless is not None:
        parts.append({"not": _lower(rule.unless, not grants, bound, file)})
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"all": parts}


def _lower(node: ast.Condition, grants: bool, bound: Bound, file: LoadedFile) -> Condition:
    match node:
        case ast.And(items=items):
            return {"all": [_lower(item, grants, bound, file) for item in items]}
        case ast.Or(items=items):
            return {"any": [_lower(item, grants, bound, file) for item in items]}
        case ast.Not(inner=inner):
            return {"not": _lower(inner, not grants, bound, file)}
        case ast.Has(operand=operand):
            return {"has": list(operand.path)}
        case ast.Marked(label=label):
            return {"marked": label.text}
        case ast.Bare(operand=operand):
            return {"test": "==", "left": _operand(operand), "right": [True], "grants": grants}
        case ast.Test():
            return _test(node, grants, bound, file)


def _test(node: ast.Test, grants: bool, bound: Bound, file: LoadedFile) -> Condition:
    right = _right(node, bound, file)
    negated = node.op in ("!=", "not in")
    match node.op:
        case "!=":
            op: TestName = "=="
        case "in" | "not in":
            op = "in" if isinstance(right, dict) else "=="
        case plain:
            op = plain
    leaf: Leaf = {"test": op, "left": _operand(node.left), "right": right, "grants": grants != negated}
    if node.each is None:
        return {"not": leaf} if negated else leaf
    leaf["each"] = node.each
    if negated:
        leaf["negate"] = True
    return leaf


def _operand(node: ast.Operand) -> Operand:
    return [node.root, *node.path]


def _right(node: ast.Test, bound: Bound, file: LoadedFile) -> list[Value] | OperandRight:
    right = node.right
    match right:
        case ast.Operand():
            return {"operand": _operand(right)}
        case ast.LetRef(name=name):
            values = [encode(item) for item in bound.let_items(file, name) or ()]
        case ast.ListValue(items=items):
            values = [encode(item) for item in items]
        case _:
            values = [encode(right)]
    if len(values) < 2:
        return values
    unique = {json.dumps(value, sort_keys=True, ensure_ascii=False): value for value in values}
    return [unique[key] for key in sorted(unique)]
