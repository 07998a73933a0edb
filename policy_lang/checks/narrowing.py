"""What a `narrows` body may not: be wider than its parent (SPEC 4).

In: `Survey`. Out: ZC3004 for a limit above the parent's, ZC3005 for more bundles, skills or memory than the parent has.
"""

from collections.abc import Iterable, Iterator

from policy_lang import ast, codes
from policy_lang.bound import Bound, Placed
from policy_lang.checks.limit_shape import amount_of, shape
from policy_lang.checks.survey import LimitAt, Survey, View, text_of
from policy_lang.diagnostics import Diagnostic, Label
from policy_lang.lower.settings import memory, skills
from policy_lang.source import Span

ADVICE = "a narrowing only restricts: `only` and `deny` narrow the tools; leave this out to have what the parent has"


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Every agent that narrows another, against all above it."""
    for name, view in survey.agents.items():
        above = survey.above(name)
        if above:
            yield from _limits(view, above)
            yield from _bundles(survey, view, above)
            yield from _skills(survey.bound, view, above)
            yield from _memory(survey.bound, view, above)


def _limits(view: View, above: tuple[View, ...]) -> Iterator[Diagnostic]:
    tightest: dict[object, tuple[LimitAt, View]] = {}
    for parent in above:
        for limit in parent.limits:
            key = shape(limit)
            if key not in tightest or amount_of(limit) < amount_of(tightest[key][0]):
                tightest[key] = (limit, parent)
    for limit in view.limits:
        found = tightest.get(shape(limit))
        if found is None or amount_of(limit) <= amount_of(found[0]):
            continue
        other, parent = found
        source = limit.placed.file.source
        written, bound = (
            text_of(source, limit.node.amount.span),
            text_of(other.placed.file.source, other.node.amount.span),
        )
        message = f"a limit of {written} is above the {bound} of `{parent.body.name}`, which `{view.body.name}` narrows"
        label = Label(other.placed.file.source, other.node.span, f"`{parent.body.name}` has this limit")
        advice = f"write at most {bound}, or leave the limit out; to narrow the tools write `only`"
        span = limit.node.amount.span
        if limit.placed.via is not None:
            source, span = view.body.file.source, _use(view, limit.placed.via)
        yield Diagnostic(codes.WIDER_LIMIT, message, source, span, (label,), advice)


def _use(view: View, profile: str) -> Span:
    """Where a body uses a profile: by its own name, or in its first `use`."""
    names = [name for node in view.body.node.body.statements if isinstance(node, ast.Use) for name in node.profiles]
    short = profile.rpartition(".")[2]
    return next((name.span for name in names if name.text.rpartition(".")[2] == short), view.body.node.span)


def _bundles(survey: Survey, view: View, above: tuple[View, ...]) -> Iterator[Diagnostic]:
    bound = survey.bound
    for parent in above:
        inside = bound.connected(parent.body)
        if inside is None:
            continue
        for placed in view.others:
            if isinstance(placed.node, ast.Connect):
                for name in placed.node.bundles:
                    full = bound.full(placed.file, "bundle", name.text)
                    tools = bound.bundles[full].tools if full in bound.bundles else frozenset[int]()
                    if not tools <= inside:
                        yield _wider(view, parent, placed, name, "connect", ast.Connect)
        return


def _skills(bound: Bound, view: View, above: tuple[View, ...]) -> Iterator[Diagnostic]:
    for parent in above:
        inside = skills(bound, parent.body.statements, parent.body.grants)
        if inside is None:
            continue
        for placed in view.others:
            if isinstance(placed.node, ast.Skills):
                for name in placed.node.names:
                    if bound.full(placed.file, "skill", name.text) not in inside:
                        yield _wider(view, parent, placed, name, "skills", ast.Skills)
        return


def _memory(bound: Bound, view: View, above: tuple[View, ...]) -> Iterator[Diagnostic]:
    for parent in above:
        inside = memory(bound, parent.body.statements, parent.body.grants)
        if inside is None:
            continue
        for placed in view.others:
            if isinstance(placed.node, ast.Memory):
                yield from _scopes(bound, view, parent, placed, placed.node.read or (), inside["read"], "memory read")
                yield from _scopes(
                    bound, view, parent, placed, placed.node.write or (), inside["write"], "memory write"
                )
        return


def _scopes(
    bound: Bound, view: View, parent: View, placed: Placed, names: Iterable[ast.Name], inside: list[str], word: str
) -> Iterator[Diagnostic]:
    for name in names:
        if name.text not in inside and bound.full(placed.file, "agent", name.text) not in inside:
            yield _wider(view, parent, placed, name, word, ast.Memory)


def _wider(
    view: View, parent: View, placed: Placed, name: ast.Name, word: str, kind: type[ast.Statement]
) -> Diagnostic:
    said = next((other for other in parent.others if isinstance(other.node, kind)), None)
    message = f"`{word} {name.text}` is more than `{parent.body.name}` has, which `{view.body.name}` narrows"
    label = Label(
        parent.body.file.source, _name_span(parent), f"`{parent.body.name}` has no `{word.split(maxsplit=1)[0]}`"
    )
    if said is not None:
        label = Label(said.file.source, said.node.span, f"`{parent.body.name}` has only this")
    return Diagnostic(codes.WIDER_SURFACE, message, placed.file.source, name.span, (label,), ADVICE)


def _name_span(view: View) -> Span:
    node = view.body.node
    return node.span if isinstance(node, ast.Ceiling) else node.name.span
