"""Who may hand work to whom, how deep, and what of the execution above holds for the one below (SPEC 10).

In: an execution's levels and a wanted child. Out: the child's levels, or the reason why there is none.
"""

from __future__ import annotations

from zcpolicy.records import NamedTuple
from zcpolicy.stack import Level, Stack, level_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zcpolicy.stack import BodyRef


class DelegationRights(NamedTuple):
    """`to`: each agent that may be a child, and whether it may be an independent one. `depth_left`: how many executions
    may stand below this one.
    """

    to: dict[str, bool]
    depth_left: int


def rights_of(stack: Stack) -> DelegationRights:
    """What `refusal` and `is_independent` say of every agent that the granting body names."""
    named = stack.own.root.data.get("delegate", {}).get("to", {})
    to = {child: is_independent(stack, child) for child in sorted(named) if refusal(stack, child) is None}
    left = min(level.depth + depth_below(level) - stack.own.depth for level in stack.counted)
    return DelegationRights(to, max(0, left) if to else 0)


def may_delegate(level: Level, child: str) -> dict[str, Any] | None:
    """What the granting body says of this child, unless a body of the level takes the right away."""
    if child == level.agent:
        return None
    for body in level.bodies:
        if body.data.get("delegate", {}).get("none"):
            return None
    granted: Any = level.root.data.get("delegate", {}).get("to", {})
    found: dict[str, Any] | None = granted.get(child)
    return found


def depth_below(level: Level) -> int:
    """How many executions may stand below one: the least that a body says, 1 where none does."""
    said = [body.data.get("delegate", {}).get("depth") for body in level.bodies]
    return min((int(depth) for depth in said if depth is not None), default=1)


def refusal(above: Stack, child: str, *, later: bool = False) -> str | None:
    """Why this child may not be delegated to; None if it may. `later`: a run that a call started for later, which may
    be of the same agent: it has no more than what stands above it.
    """
    for level in above.levels:
        same = later and child == above.own.agent == level.agent
        if not same and may_delegate(level, child) is None:
            return f"agent `{level.agent}` may not delegate to `{child}`"
    depth = above.own.depth + 1
    for level in above.counted:
        if depth - level.depth > depth_below(level):
            return f"agent `{level.agent}` allows a delegation depth of {depth_below(level)}"
    return None


def is_independent(above: Stack, child: str) -> bool:
    """Whether every execution that bounds the delegator, and it itself, lets the child be independent."""
    said = [may_delegate(level, child) for level in above.levels]
    return all(one is not None and bool(one.get("independent")) for one in said)


def stack_below(above: Stack, child: str, skills: tuple[str, ...], added: tuple[BodyRef, ...], free: bool) -> Stack:
    """The child's stack. `free`: independent, so that only what reaches every child comes from above."""
    program, depth = above.program, above.own.depth + 1
    if not free:
        own = level_of(program, child, depth, skills, added)
        return Stack(program, (own, *above.levels), (own, *above.counted))
    inherited = [body for level in above.levels for body in level.bodies if body.kind in ("skill", "narrowing")]
    kept: dict[int, BodyRef] = {id(body): body for body in inherited}
    own = level_of(program, child, depth, skills, (*added, *kept.values()))
    return Stack(program, (own,), (own, *above.counted))
