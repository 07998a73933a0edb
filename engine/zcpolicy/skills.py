"""Skills that an execution has loaded: their restrictions hold from then on (SPEC 10).

In: an execution's stack and the name of a skill. Out: the stack with it, or a ResolveError.
"""

from __future__ import annotations

from zcpolicy.program import head_of
from zcpolicy.refusals import ResolveError
from zcpolicy.stack import BodyRef, Level, Stack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zcpolicy.program import Program


def known_skills(program: Program, skills: tuple[str, ...]) -> None:
    """Raises ResolveError for a skill that the program does not have."""
    for skill in skills:
        if skill not in head_of(program)["skills"]:
            raise ResolveError(f"there is no skill `{str(skill)[:60]}`")


def may_load(stack: Stack, skill: str) -> None:
    """Every body that speaks of skills has to name it; a granting body that does not speak allows none."""
    for body in stack.bodies():
        allowed = body.data.get("skills", [] if body.grants else None)
        if allowed is not None and skill not in allowed:
            raise ResolveError(f"{body.kind} `{body.name}` may not load skill `{skill}`")


def loadable(stack: Stack) -> tuple[str, ...]:
    """The skills that every body lets be loaded."""
    found: list[str] = []
    for skill in sorted(head_of(stack.program)["skills"]):
        try:
            may_load(stack, skill)
        except ResolveError:
            continue
        found.append(skill)
    return tuple(found)


def with_skill(stack: Stack, skill: str) -> Stack:
    """The stack with one more active skill in its own level."""
    own = stack.own
    if skill in own.skills:
        return stack
    body = BodyRef(stack.program, head_of(stack.program)["skills"][skill])
    level = Level(own.agent, (*own.bodies, body), own.chain, own.depth, (*own.skills, skill))
    return Stack(stack.program, (level, *stack.levels[1:]), (level, *stack.counted[1:]))
