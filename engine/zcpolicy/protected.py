"""Files that no tool above class `read` may touch (SPEC 5): the question, whose answer loads what reads paths.

In: absolute paths. Out: a test of one path. It is made when the first path is looked at: a process that decides one call may
see none, and starts faster.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def protection(files: tuple[str, ...]) -> Callable[[Any, Any], bool | None]:
    """Whether a path is one of the files or lies below one; None: it may be."""
    made: list[Callable[[Any, Any], bool | None]] = []

    def protects(path: Any, where: Any) -> bool | None:
        if not made:
            from zcpolicy.predicates.path import protected_hit

            made.append(protected_hit(files))
        return made[0](path, where)

    return protects
