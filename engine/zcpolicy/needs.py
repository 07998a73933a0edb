"""Facts that a policy cannot work with: said once, when an execution is resolved (SPEC 6).

In: an execution's bodies, its program, its session. Out: nothing, or a ResolveError that names the rule or the fact.
"""

from __future__ import annotations

from zcpolicy.exact import is_map
from zcpolicy.misspelt import misspelt
from zcpolicy.program import head_of
from zcpolicy.refusals import ResolveError
from zcpolicy.stack import RuleRef
from zcpolicy.texts import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from zcpolicy.facts import Session
    from zcpolicy.program import Program
    from zcpolicy.stack import Stack


def refuse_unmet(stack: Stack, session: Session) -> None:
    """Raises ResolveError for the first rule whose condition reads a fact of `session.never`."""
    for body in stack.bodies():
        for index, rule in enumerate(body.data.get("rules", ())):
            missing = sorted(session.never & set(_facts(rule.get("if"))))
            if missing:
                place = RuleRef(body, "rules", index).place or ["?", "?", f"a rule of {body.kind} {body.name}"]
                raise ResolveError(
                    f"`{place[2]}` ({place[0]}:{place[1]}) needs `{missing[0]}`, which this host never supplies"
                )


def refuse_misfits(program: Program, session: Session) -> None:
    """Raises ResolveError for a label or a fact of the context that is nearly a declared one: no rule would see it.

    A session that also has what it was near to has lost nothing: what an older policy called otherwise goes on so.
    """
    head = head_of(program)
    labels = frozenset(head["labels"])
    for label, near in misspelt(session.labels - labels, labels - session.labels):
        if near is not None:
            raise ResolveError(f"label `{_shown(label)}` is not one of this policy: did it mean `{near}`?")
    declared, told = frozenset(head["context"]), frozenset(name for name in session.context if type(name) is str)
    for name, near in misspelt(told - declared, declared - told):
        if near is not None:
            raise ResolveError(f"`{_shown(name)}` is no fact of this policy's context: did it mean `{near}`?")


def _shown(name: str) -> str:
    return escaped(name[:60])


def _facts(condition: Any) -> Iterator[str]:
    """The names below `session` that a condition reads."""
    if condition is None:
        return
    for key in ("all", "any"):
        for part in condition.get(key, ()):
            yield from _facts(part)
    if "not" in condition:
        yield from _facts(condition["not"])
    if "test" in condition:
        right = condition["right"]
        operands: list[list[str]] = [condition["left"], right["operand"] if is_map(right) else []]
        for operand in operands:
            if len(operand) > 1 and operand[0] == "session":
                yield operand[1]
