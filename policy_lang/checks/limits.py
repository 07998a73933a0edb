"""Limits that are never reached, because another one of the same shape is (SPEC 8).

In: `Survey`. Out: ZC3109. The shape of a limit is all of it but its amount.
"""

from collections.abc import Iterator
from decimal import Decimal

from policy_lang import ast, codes
from policy_lang.checks.edits import remove
from policy_lang.checks.survey import LimitAt, Survey, View, text_of
from policy_lang.diagnostics import Diagnostic, Fix, Label

Shape = tuple[object, ...]


def shape(limit: LimitAt) -> Shape:
    """Equal for limits that differ only in their amount."""
    node = limit.node
    window: Shape = ("session",)
    if node.window is not None:
        zone = node.window.zone.value if node.window.zone else None
        window = (node.window.kind, node.window.seconds, node.window.calendar, zone) if node.window.kind in ("rolling", "calendar") else (node.window.kind,)
    each = ("args", *node.each.path) if isinstance(node.each, ast.Operand) else node.each
    argument = node.argument.path if node.argument else None
    currency = node.amount.currency if isinstance(node.amount, ast.Money) else None
    return (node.unit, currency, argument, limit.ids, window, each)


def amount_of(limit: LimitAt) -> Decimal:
    """The amount, in the unit of the limit."""
    match limit.node.amount:
        case ast.Number(value=value):
            return Decimal(value)
        case ast.Money(amount=amount):
            return amount
        case ast.Duration(seconds=seconds):
            return Decimal(seconds)


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Within each body; then each agent against what it narrows, and everything against the ceilings."""
    ceilings: dict[Shape, LimitAt] = {}
    for view in survey.ceilings:
        _tightest(view, ceilings)
    for view in survey.bodies():
        if view.limits:
            yield from _within(view)
    for name, view in survey.agents.items():
        if not view.limits:
            continue
        above: dict[Shape, LimitAt] = {}
        for parent in survey.above(name):
            _tightest(parent, above)
        for limit in view.limits:
            if limit.placed.via is not None:
                continue
            yield from _against(limit, ceilings.get(shape(limit)), "the ceiling's")
            equal = above.get(shape(limit))
            if equal is not None and amount_of(equal) == amount_of(limit):
                yield from _against(limit, equal, "the parent's")


def _tightest(view: View, into: dict[Shape, LimitAt]) -> None:
    for limit in view.limits:
        key = shape(limit)
        if key not in into or amount_of(limit) < amount_of(into[key]):
            into[key] = limit


def _within(view: View) -> Iterator[Diagnostic]:
    """A body's own limits against each other and its profiles'."""
    tightest: dict[Shape, LimitAt] = {}
    _tightest(view, tightest)
    for limit in view.limits:
        other = tightest[shape(limit)]
        if limit.placed.via is None and other.node is not limit.node:
            yield from _against(limit, other, "another")


def _against(limit: LimitAt, other: LimitAt | None, whose: str) -> Iterator[Diagnostic]:
    if other is None or amount_of(limit) < amount_of(other):
        return
    source = limit.placed.file.source
    written = text_of(source, limit.node.amount.span)
    lower = text_of(other.placed.file.source, other.node.amount.span)
    message = f"this limit is never reached: {whose} limit of {lower} comes first"
    if amount_of(limit) == amount_of(other):
        message = f"a limit of {written} is said twice: {whose} limit is the same"
    label = Label(other.placed.file.source, other.node.span, "this one is reached first" if lower != written else "the same limit")
    fix = Fix((remove(source, limit.node.span),), safe=True)
    yield Diagnostic(codes.REDUNDANT_LIMIT, message, source, limit.node.span, (label,), "drop it, or lower it", fix)
