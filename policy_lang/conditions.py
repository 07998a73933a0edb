"""Walking conditions, with the side that each test stands on.

In: conditions of the syntax tree. Out: their leaves; for each, whether it stands for granting (SPEC 7, polarity).
"""

from collections.abc import Iterator

from policy_lang import ast

Leaf = ast.Test | ast.Bare | ast.Has | ast.Marked


def stands_for_granting(effect: ast.Effect) -> bool:
    """Whether the truth of a rule's condition can only permit more: so in `allow` and `auto_approve`."""
    return effect in ("allow", "auto_approve")


def leaves(rule: ast.Rule) -> Iterator[tuple[Leaf, bool]]:
    """Every leaf of a rule's conditions, and whether it stands for granting."""
    grants = stands_for_granting(rule.effect)
    if rule.when is not None:
        yield from walk(rule.when, grants)
    if rule.unless is not None:
        yield from walk(rule.unless, not grants)


def walk(node: ast.Condition, grants: bool) -> Iterator[tuple[Leaf, bool]]:
    """Every leaf below a condition, and the side that it stands on; `!=` and `not in` are negations of their test."""
    match node:
        case ast.And(items=items) | ast.Or(items=items):
            for item in items:
                yield from walk(item, grants)
        case ast.Not(inner=inner):
            yield from walk(inner, not grants)
        case ast.Test(op="!=" | "not in"):
            yield node, not grants
        case _:
            yield node, grants
