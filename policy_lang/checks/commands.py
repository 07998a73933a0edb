"""Command patterns that permit or miss more than they show.

In: `Survey`. Out: ZC4011 (`runs only` with a program that starts others), ZC4012 (`runs any` that enumerates flags).
"""

from collections.abc import Iterator

from policy_lang import ast, codes
from policy_lang.bound import Bound
from policy_lang.checks.survey import RuleAt, Survey
from policy_lang.conditions import leaves
from policy_lang.diagnostics import Diagnostic
from policy_lang.source import Span


def check(survey: Survey) -> Iterator[Diagnostic]:
    """Every pattern of every `runs only` and `runs any`, where it is written."""
    for rule in survey.written():
        if rule.always:
            continue
        for leaf, _ in leaves(rule.node):
            if isinstance(leaf, ast.Test) and leaf.op in ("runs only", "runs any"):
                judge = _launcher if leaf.op == "runs only" else _flags
                for text, span in patterns(survey.bound, rule, leaf):
                    yield from judge(rule, text, span)


def patterns(bound: Bound, rule: RuleAt, test: ast.Test) -> Iterator[tuple[str, Span]]:
    """The patterns on the right of a test; those of a `let` at the place that names it."""
    match test.right:
        case ast.ListValue(items=items):
            yield from ((item.value, item.span) for item in items if isinstance(item, ast.String))
        case ast.String(value=value, span=span):
            yield value, span
        case ast.LetRef(name=name, span=span):
            for item in bound.let_items(rule.placed.file, name) or ():
                if isinstance(item, ast.String):
                    yield item.value, span
        case _:
            return


def _launcher(rule: RuleAt, text: str, span: Span) -> Iterator[Diagnostic]:
    from zcpolicy.predicates.shell import launchers

    name = launchers(text)
    if name is not None:
        message = f"`{name}` starts the commands that its own words name, or code that they hold"
        help_text = f"grant those commands by themselves and leave `{name}` out; if it has to stand here, write out all its words"
        yield Diagnostic(codes.LAUNCHER, message, rule.source, span, (), help_text)


def _flags(rule: RuleAt, text: str, span: Span) -> Iterator[Diagnostic]:
    from zcpolicy.predicates.shell import enumerated_flags

    flags = enumerated_flags(text)
    if not flags:
        return
    wide = text[: text.index(flags[0])].rstrip(" .")
    message = f"`{flags[0]}` may be spelled in another way, and this `{rule.node.effect}` does not see that"
    help_text = f'write `"{wide}"`, which meets every use, and let the harmless ones through with `unless … runs only`'
    if rule.node.effect != "deny":
        help_text = f'write `"{wide}"`, which meets every use'
    yield Diagnostic(codes.ENUMERATED_FLAGS, message, rule.source, span, (), help_text)
