"""Limits that are never reached, because another one of the same shape is (SPEC 8).

In: `Survey`. Out: ZC3109. The shape of a limit is all of it but its amount.
"""

from collections.abc import Iterator

from policy_lang import ast, codes
from policy_lang.checks.edits import lasts, remove
from policy_lang.checks.limit_shape import COUNTED, Shape, amount_of, shape, window_key
from policy_lang.checks.survey import LimitAt, Survey, View, text_of
from policy_lang.diagnostics import Diagnostic, Fix, Label

MAX_COMPARED = 64
"""So many limits on the same count are compared with each other where their shapes differ."""


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Within each body; then each agent against what it narrows, and everything against the ceilings."""
    ceilings = _Limits([limit for view in survey.ceilings for limit in view.limits])
    for view in survey.bodies():
        own = [limit for limit in view.limits if limit.placed.via is None]
        if not own:
            continue
        inside = _Limits(view.limits)
        above = _Limits([limit for parent in _parents(survey, view) for limit in parent.limits])
        for limit in own:
            for others, whose in ((inside, "another"), (above, "the parent's"), (ceilings, "the ceiling's")):
                if others is ceilings and view.body.kind == "ceiling":
                    continue
                first = others.before(limit)
                if first is not None and not (others is above and _is_widening(limit, first)):
                    yield _never_reached(limit, first, whose)
                    break


def _is_widening(limit: LimitAt, parents: LimitAt) -> bool:
    """A limit of the parent's shape above the parent's is an error of its own (`narrowing`)."""
    return shape(limit) == shape(parents) and amount_of(limit) > amount_of(parents)


def _parents(survey: Survey, view: View) -> tuple[View, ...]:
    return survey.above(view.body.name) if view.body.kind == "narrows" else ()


class _Limits:
    """Limits by what they count; asked which of them is reached before another one, or with it."""

    def __init__(self, limits: list[LimitAt]) -> None:
        self.tightest: dict[Shape, LimitAt] = {}
        self.alike: dict[Shape, list[LimitAt]] = {}
        for limit in limits:
            key = shape(limit)
            if key not in self.tightest or amount_of(limit) < amount_of(self.tightest[key]):
                self.tightest[key] = limit
        for key, limit in self.tightest.items():
            self.alike.setdefault(key[:COUNTED], []).append(limit)

    def before(self, limit: LimitAt) -> LimitAt | None:
        """Of the same shape; else of a wider one: more tools, a longer window, one pot for all."""
        key = shape(limit)
        same = self.tightest.get(key)
        if same is not None and same.node is not limit.node and amount_of(same) <= amount_of(limit):
            return same
        for other in self.alike.get(key[:COUNTED], [])[:MAX_COMPARED]:
            if shape(other) != key and _wider(other, limit) and amount_of(other) <= amount_of(limit):
                return other
        return None


def _wider(other: LimitAt, limit: LimitAt) -> bool:
    """Whether all that a limit counts, another one counts too, in the same pot and window or in larger ones."""
    tools = other.ids is None or (limit.ids is not None and limit.ids <= other.ids)
    return (
        tools and other.node.each in (None, _same_pot(other, limit)) and _longer(other.node.window, limit.node.window)
    )


def _same_pot(other: LimitAt, limit: LimitAt) -> object:
    """The other's pot where both count in pots of the same kind."""
    return other.node.each if shape(other)[-1] == shape(limit)[-1] else None


def _longer(other: ast.Window | None, window: ast.Window | None) -> bool:
    if window_key(other) == window_key(window):
        return True
    if other is None or other.kind == "session":
        return window is not None and window.kind == "turn"
    return window is not None and other.kind == window.kind == "rolling" and other.seconds >= window.seconds


def _never_reached(limit: LimitAt, first: LimitAt, whose: str) -> Diagnostic:
    source = limit.placed.file.source
    written = text_of(source, limit.node.amount.span)
    lower = text_of(first.placed.file.source, first.node.amount.span)
    message, says = f"this limit is never reached: {whose} limit of {lower} comes first", "this one is reached first"
    if amount_of(limit) == amount_of(first) and shape(limit) == shape(first):
        message, says = f"a limit of {written} is said twice: {whose} limit is the same", "the same limit"
    label = Label(first.placed.file.source, first.node.span, says)
    lasting = lasts(limit.node.tools, source, first.node.tools, first.placed.file.source)
    fix = Fix((remove(source, limit.node.span),), safe=lasting)
    return Diagnostic(codes.REDUNDANT_LIMIT, message, source, limit.node.span, (label,), "drop it, or lower it", fix)
