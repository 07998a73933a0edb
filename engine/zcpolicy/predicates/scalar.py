"""Equality, order and membership of scalars: strings, booleans and exact numbers.

In: two values as JSON has them, numbers as `int`, `Decimal` or a host's `float`. Out: a `Truth`.
There is no coercion: values of two kinds, absent ones, lists and objects are UNKNOWN.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` and `decimal` cost more than the tests of most policies
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from decimal import Decimal
    from typing import Final, Literal

    from zcpolicy.predicates.refs import Truth

    Operator = Literal["==", "!=", "<", "<=", ">", ">="]

MAX_NUMBER_BITS: Final = 1 << 15
"""Binary digits of a whole number that is compared with a decimal; a longer one is UNKNOWN."""


def _exact(value: object) -> int | Decimal | None:
    """A number without rounding: a host's float counts as the decimal it prints as. `None`: not a finite number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value.bit_length() <= MAX_NUMBER_BITS else None
    from decimal import Decimal

    number = Decimal(repr(value)) if isinstance(value, float) else value
    return number if isinstance(number, Decimal) and number.is_finite() else None


def equal(a: object, b: object) -> Truth:
    """Whether two scalars of one kind are the same value; strings exactly, character by character."""
    if isinstance(a, str):
        return a == b if isinstance(b, str) else None
    if isinstance(a, bool):
        return a is b if isinstance(b, bool) else None
    if type(a) is int and type(b) is int:
        return a == b
    left, right = _exact(a), _exact(b)
    if left is None or right is None:
        return None
    return left == right


def _order(a: object, b: object) -> int | None:
    """-1, 0 or 1; `None` for what has no order. Strings by code point."""
    if isinstance(a, str):
        return (a > b) - (a < b) if isinstance(b, str) else None
    if type(a) is int and type(b) is int:
        return (a > b) - (a < b)
    left, right = _exact(a), _exact(b)
    if left is None or right is None:
        return None
    return (left > right) - (left < right)


def compare(op: Operator, a: object, b: object) -> Truth:
    """`a op b`. Booleans are equal or not, and have no order."""
    if op == "==":
        return equal(a, b)
    if op == "!=":
        same = equal(a, b)
        return None if same is None else not same
    order = _order(a, b)
    if order is None:
        return None
    if op == "<":
        return order < 0
    if op == "<=":
        return order <= 0
    return order > 0 if op == ">" else order >= 0


def is_in(value: object, items: Iterable[object]) -> Truth:
    """Whether a value equals one of the items: TRUE if it does, UNKNOWN if it cannot be told of one of them."""
    unknown = False
    for item in items:
        same = equal(value, item)
        if same:
            return True
        unknown = unknown or same is None
    return None if unknown else False


def among(items: tuple[object, ...]) -> Callable[[object], Truth]:
    """`is_in` with its items known beforehand; one look-up where all are strings."""
    if not all(isinstance(item, str) for item in items):
        return lambda value: is_in(value, items)
    texts = frozenset(items)
    return lambda value: value in texts if isinstance(value, str) else None
