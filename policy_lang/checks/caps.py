"""`only` and `autonomy` statements, and runtime settings, that take nothing away.

In: `Survey`. Out: ZC3107 (`only`), ZC3108 (caps and settings).
"""

from collections.abc import Iterator

from policy_lang import ast, codes
from policy_lang.bound import Placed
from policy_lang.checks.edits import remove
from policy_lang.checks.reach import Reach
from policy_lang.checks.survey import CapAt, OnlyAt, Survey, View
from policy_lang.diagnostics import Diagnostic, Fix, Label
from policy_lang.lower.settings import STRICTNESS

MAX_COMPARED = 64
"""So many `only` and `autonomy` statements of a body are compared with each other."""


def check(reach: Reach) -> Iterator[Diagnostic]:
    """Every body that decides; its own statements, compared with its profiles' and with what it narrows."""
    survey = reach.survey
    for view in survey.deciding():
        if view.onlys:
            yield from _onlys(reach, view)
        if view.caps:
            yield from _caps(survey, view)
        yield from _settings(survey, view)


def _onlys(reach: Reach, view: View) -> Iterator[Diagnostic]:
    before, who = reach.everything, "this body applies to"
    if view.body.kind == "agent":
        before, who = reach.granted(view.body.name), f"`{view.body.name}` allows"
    elif view.body.parent is not None:
        before, who = reach.callable(view.body.parent), f"`{view.body.parent}` may call"
    onlys = view.onlys[:MAX_COMPARED]
    for at, only in enumerate(onlys):
        if only.placed.via is not None:
            continue
        tighter = next(
            (o for n, o in enumerate(onlys) if n != at and (o.ids < only.ids or (o.ids == only.ids and n < at))), None
        )
        if tighter is not None:
            label = Label(tighter.placed.file.source, tighter.node.span, "this one forbids all that it does")
            yield _only(only, "this `only` forbids nothing that another one does not", (label,))
        elif before and before <= only.ids:
            yield _only(only, f"this `only` forbids nothing: all that {who} is inside", ())


def _only(only: OnlyAt, message: str, labels: tuple[Label, ...]) -> Diagnostic:
    source = only.placed.file.source
    fix = Fix((remove(source, only.node.span),), safe=False)  # it forbids what a catalogue has one day
    return Diagnostic(
        codes.REDUNDANT_ONLY, message, source, only.node.span, labels, "drop it, or name fewer tools", fix
    )


def _caps(survey: Survey, view: View) -> Iterator[Diagnostic]:
    granting = view.body.kind == "agent"
    caps = view.caps[:MAX_COMPARED]
    for at, cap in enumerate(caps):
        if cap.placed.via is not None:
            continue
        stricter = next(
            (o for n, o in enumerate(caps) if n != at and _covers(o, cap) and (n < at or not _covers(cap, o))), None
        )
        if stricter is not None:
            yield _cap(cap, "this `autonomy` caps nothing that another one does not", stricter)
        elif all(answer == "allow" for answer in cap.cap.values()):
            if not granting:
                yield _cap(cap, "this `autonomy` caps nothing", None)
        else:
            other = _from_elsewhere(survey, view, cap)
            if other is not None:
                yield _cap(cap, "this `autonomy` caps nothing that another body does not", other)


def _from_elsewhere(survey: Survey, view: View, cap: CapAt) -> CapAt | None:
    """A cap of a ceiling or of a body above, at least as strict, that no `auto_approve` there waives."""
    above = survey.above(view.body.name) if view.body.kind == "narrows" else ()
    others = survey.ceilings if view.body.kind != "ceiling" else ()
    if view.rules["auto_approve"]:
        return None
    for body in (*above, *others):
        if not body.rules["auto_approve"]:
            for other in body.caps:
                if _covers(other, cap):
                    return other
    return None


def _covers(strict: CapAt, weak: CapAt) -> bool:
    return all(STRICTNESS.index(strict.cap[risk]) <= STRICTNESS.index(answer) for risk, answer in weak.cap.items())


def _cap(cap: CapAt, message: str, other: CapAt | None) -> Diagnostic:
    source = cap.placed.file.source
    labels = (Label(other.placed.file.source, other.node.span, "at least as strict"),) if other is not None else ()
    alone = other is None or other.placed.file.source is source
    fix = Fix((remove(source, cap.node.span),), safe=alone)
    return Diagnostic(codes.REDUNDANT_CAP, message, source, cap.node.span, labels, "drop it, or make it stricter", fix)


def _settings(survey: Survey, view: View) -> Iterator[Diagnostic]:
    """Runtime numbers, switches and depths above the parent's."""
    if view.body.kind != "narrows":
        return
    above = survey.above(view.body.name)
    said = {key: (value, placed, node) for parent in reversed(above) for key, value, placed, node in _numbers(parent)}
    for key, value, placed, node in _numbers(view):
        if key not in said or placed.via is not None:
            continue
        parents, other, at = said[key]
        if value >= parents:
            source = placed.file.source
            label = Label(other.file.source, at.span, "the lower number holds")
            message = f"this `{key}` changes nothing: it is not below that of what `{view.body.name}` narrows"
            yield Diagnostic(codes.REDUNDANT_CAP, message, source, node.span, (label,), "drop it, or write less")


def _numbers(view: View) -> Iterator[tuple[str, int, Placed, ast.RuntimeItem | ast.DelegateDepth]]:
    for placed in view.others:
        if isinstance(placed.node, ast.DelegateDepth):
            yield "delegate depth", int(placed.node.depth.value), placed, placed.node
        elif isinstance(placed.node, ast.Runtime):
            for item in placed.node.items:
                value = item.value.seconds if isinstance(item.value, ast.Duration) else int(item.value.value)
                yield item.key, value, placed, item
