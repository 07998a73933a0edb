"""Conditions: the tree of tests that guards a rule, and its three-valued evaluation (Kleene).

In: a compiled condition and its site. Out: a `Node`. This is the plain evaluator: it decides whatever the generated
code hands back, it fills traces, and the generated code is held against it.
"""

from __future__ import annotations

from zcpolicy.leaves import Test, bind
from zcpolicy.operands import MISSING, dig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zcpolicy.operands import Call, Site
    from zcpolicy.shapes import Condition, Has

    Truth = bool | None


class Not:
    __slots__ = ("part",)

    def __init__(self, part: Node) -> None:
        self.part = part


class AllOf:
    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Node, ...]) -> None:
        self.parts = parts


class AnyOf:
    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Node, ...]) -> None:
        self.parts = parts


if TYPE_CHECKING:
    Node = Test | Not | AllOf | AnyOf


def compile_condition(condition: Condition, site: Site) -> Node:
    """The tree of a condition for one tool and one acting agent."""
    return _compile(condition, site)


def _compile(condition: Any, site: Site) -> Node:
    if "all" in condition:
        return AllOf(tuple(_compile(part, site) for part in condition["all"]))
    if "any" in condition:
        return AnyOf(tuple(_compile(part, site) for part in condition["any"]))
    if "not" in condition:
        return Not(_compile(condition["not"], site))
    if "has" in condition:
        return _has(condition)
    if "marked" in condition:
        label = condition["marked"]
        return Test(condition, lambda call: label in call.labels, False, lambda call: sorted(call.labels))
    return bind(condition, site)


def _has(condition: Has) -> Test:
    path = tuple(condition["has"])

    def value(call: Call) -> object:
        return dig(call.arguments, path)

    return Test(condition, lambda call: dig(call.arguments, path) is not MISSING, True, value)


def truth_of(node: Node, call: Call) -> Truth:
    """TRUE, FALSE or None for UNKNOWN."""
    if isinstance(node, Test):
        return node.ask(call)
    if isinstance(node, Not):
        truth = truth_of(node.part, call)
        return None if truth is None else not truth
    decisive = isinstance(node, AnyOf)
    out: Truth = not decisive
    for part in node.parts:
        truth = truth_of(part, call)
        if truth is decisive:
            return decisive
        if truth is None:
            out = None
    return out


def possible(node: Node, call: Call) -> frozenset[Truth]:
    """What a condition can be, whatever the arguments: tests that do not look at them are asked."""
    if isinstance(node, Test):
        return _ALL if node.looks else frozenset((node.ask(call),))
    if isinstance(node, Not):
        return frozenset(None if truth is None else not truth for truth in possible(node.part, call))
    decisive = isinstance(node, AnyOf)
    out: frozenset[Truth] = frozenset((not decisive,))
    for part in node.parts:
        out = frozenset(_join(one, two, decisive) for one in out for two in possible(part, call))
    return out


_ALL: frozenset[Truth] = frozenset((True, False, None))


def _join(one: Truth, two: Truth, decisive: bool) -> Truth:
    if one is decisive or two is decisive:
        return decisive
    return None if one is None or two is None else not decisive
