"""Conditions as alternatives of literals: a test, or its negation.

In: conditions with the side they stand on. Out: branches (lists of literals, one of which must hold whole), and keys
under which equal tests are equal wherever they are written.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from policy_lang import ast
from policy_lang.bound import Bound
from policy_lang.checks.operands import right_values, scalar
from policy_lang.checks.survey import text_of
from policy_lang.conditions import Leaf
from policy_lang.gather import LoadedFile
from policy_lang.source import Source, Span

MAX_LITERALS = 4_096
"""The most literals, over all branches, that a condition is multiplied out to; a larger one is left undecided."""

Key = tuple[object, ...]


class Lit(NamedTuple):
    """A leaf, and whether it must hold or must not."""

    leaf: Leaf
    holds: bool

    def text(self, source: Source) -> str:
        """As the user wrote it, with `not` before it where it must not hold."""
        written = text_of(source, self.leaf.span)
        return written if self.holds else f"not {written}"

    @property
    def positive(self) -> bool:
        """Whether the positive test must hold: `!=` and `not in` are negations."""
        return self.holds != negated(self.leaf)


def negated(leaf: Leaf) -> bool:
    """Whether a leaf is the negation of its test; below a quantifier the negation is inside, and another test."""
    return isinstance(leaf, ast.Test) and leaf.op in ("!=", "not in") and leaf.each is None


def parts_of(rule: ast.Rule) -> list[tuple[ast.Condition, bool]]:
    """The condition of a rule: all of `when`, and not `unless`."""
    out: list[tuple[ast.Condition, bool]] = []
    if rule.when is not None:
        out.append((rule.when, True))
    if rule.unless is not None:
        out.append((rule.unless, False))
    return out


def branches(parts: Sequence[tuple[ast.Condition, bool]]) -> list[list[Lit]] | None:
    """The ways in which all parts can hold; `None` where they are too many to list."""
    out: list[list[Lit]] = [[]]
    for node, holds in parts:
        ways = _ways(node, holds)
        if ways is None or len(out) * len(ways) > MAX_LITERALS:
            return None
        if len(ways) == 1:
            for done in out:
                done.extend(ways[0])
        else:
            out = [[*done, *way] for done in out for way in ways]
        if sum(map(len, out)) > MAX_LITERALS:
            return None
    return out


def _ways(node: ast.Condition, holds: bool) -> list[list[Lit]] | None:
    match node:
        case ast.Not(inner=inner):
            return _ways(inner, not holds)
        case ast.And(items=items) | ast.Or(items=items):
            if isinstance(node, ast.And) == holds:
                return branches([(item, holds) for item in items])
            found: list[list[Lit]] = []
            for item in items:
                ways = _ways(item, holds)
                if ways is None:
                    return None
                found.extend(ways)
            return found if len(found) <= MAX_LITERALS else None
        case _:
            return [[Lit(node, holds)]]


def leaf_key(bound: Bound, file: LoadedFile, leaf: Leaf) -> Key:
    """Equal for tests that mean the same; `!=` has the key of `==`, `not in` that of `in`, which is `==` any of."""
    match leaf:
        case ast.Has(operand=operand):
            return ("has", operand.root, operand.path)
        case ast.Marked(label=label):
            return ("marked", label.text)
        case ast.Bare(operand=operand):
            return ("test", operand.root, operand.path, "==", frozenset({("b", True)}), None)
        case ast.Test(left=left, right=right, each=each):
            op = _operator(leaf)
            values = right_values(bound, file, right)
            what: object = frozenset(map(scalar, values)) if values is not None else _unread(right)
            return ("test", left.root, left.path, op, what, each)


def _operator(test: ast.Test) -> str:
    """The positive operator; `in` before literals is equality."""
    if isinstance(test.right, ast.Operand):
        return {"!=": "==", "not in": "in"}.get(test.op, test.op) if test.each is None else test.op
    if test.op == "in" or (test.each is None and test.op in ("!=", "not in")):
        return "=="
    return test.op


def _unread(right: ast.Right) -> object:
    if isinstance(right, ast.Operand):
        return (right.root, right.path)
    return right.name if isinstance(right, ast.LetRef) else None


def condition_key(bound: Bound, file: LoadedFile, rule: ast.Rule) -> Key:
    """Equal for rules whose conditions are the same tests in the same structure; the order of `and`, `or` is free."""
    return tuple((_node_key(bound, file, node), holds) for node, holds in parts_of(rule))


def _node_key(bound: Bound, file: LoadedFile, node: ast.Condition) -> Key:
    match node:
        case ast.Not(inner=inner):
            return ("not", _node_key(bound, file, inner))
        case ast.And(items=items):
            return ("and", frozenset(_node_key(bound, file, item) for item in items))
        case ast.Or(items=items):
            return ("or", frozenset(_node_key(bound, file, item) for item in items))
        case ast.Test(op="!=" | "not in", each=None):
            return ("not", leaf_key(bound, file, node))
        case _:
            return leaf_key(bound, file, node)


def single(leaf: Leaf) -> ast.Operand | None:
    """The operand of a test of one value."""
    match leaf:
        case ast.Test(left=left, each=None):
            return left
        case ast.Bare(operand=operand) | ast.Has(operand=operand):
            return operand
        case _:
            return None


def operand_span(leaf: Leaf) -> Span:
    """The place of the operand that a leaf tests, or of all of it."""
    operand = single(leaf)
    return operand.span if operand is not None else leaf.span


def arms(node: ast.Condition, holds: bool) -> Iterator[tuple[ast.Condition, bool]]:
    """The alternatives below an `or` (or a negated `and`), each with the side that it must be on."""
    match node:
        case ast.Not(inner=inner):
            yield from arms(inner, not holds)
        case ast.And(items=items) | ast.Or(items=items):
            for item in items:
                if isinstance(node, ast.Or) == holds:
                    yield item, holds
                else:
                    yield from arms(item, holds)
        case _:
            return
