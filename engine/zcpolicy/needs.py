"""Facts that a policy needs and a host never supplies: said once, when an execution is resolved (SPEC 6).

In: an execution's bodies and its session. Out: nothing, or a ResolveError that names the rule.
"""

from __future__ import annotations

from zcpolicy.exact import is_object
from zcpolicy.refusals import ResolveError
from zcpolicy.stack import RuleRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from zcpolicy.facts import Session
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
        operands: list[list[str]] = [condition["left"], right["operand"] if is_object(right) else []]
        for operand in operands:
            if len(operand) > 1 and operand[0] == "session":
                yield operand[1]
