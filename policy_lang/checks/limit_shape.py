"""The shape of a limit: all of it but its amount.

In: a limit. Out: its shape, and its amount.
"""

from decimal import Decimal

from policy_lang import ast
from policy_lang.checks.survey import LimitAt

Shape = tuple[object, ...]

COUNTED = 3
"""The parts of a shape that say what is counted; behind them stand the tools, the window and the pot."""


def shape(limit: LimitAt) -> Shape:
    """Equal for limits that differ only in their amount."""
    node = limit.node
    argument = node.argument.path if node.argument else None
    currency = node.amount.currency if isinstance(node.amount, ast.Money) else None
    each = ("args", *node.each.path) if isinstance(node.each, ast.Operand) else node.each
    return (node.unit, currency, argument, limit.ids, window_key(node.window), each)


def window_key(window: ast.Window | None) -> Shape:
    """Equal for windows that are the same; the default is the session."""
    if window is None or window.kind == "session":
        return ("session",)
    return (window.kind, window.seconds, window.calendar, window.zone.value if window.zone else None)


def amount_of(limit: LimitAt) -> Decimal:
    """The amount, in the unit of the limit."""
    match limit.node.amount:
        case ast.Number(value=value):
            return Decimal(value)
        case ast.Money(amount=amount):
            return amount
        case ast.Duration(seconds=seconds):
            return Decimal(seconds)
