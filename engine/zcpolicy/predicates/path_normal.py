"""The normal form of a path: components without `.`, `..` and empty ones.

In: components as sent, and where they start. Out: a `Normal`, or `None` for `..` above the root.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from zcpolicy.predicates.path_automaton import Component
from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_PROC: Final = frozenset({"proc"})
_DEV: Final = frozenset({"dev"})
_MAGIC: Final = frozenset({"cwd", "root", "fd"})
_DESCRIPTORS: Final = frozenset({"fd", "stdin", "stdout", "stderr"})


class Root(Enum):
    """Where the components of a shape start."""

    ROOTED = "at the root"
    ADRIFT = "in a directory that the host does not tell"
    HOME = "in a home directory that the host does not tell"
    OPEN = "anywhere at all: the text leaves it open"


class Shape(NamedTuple):
    """A path in normal form, as far as it is known; `path` is its text, only where it is known wholly.

    `aside`: some programs read it so, against the text: enough to doubt, for granting and withholding alike.
    """

    root: Root
    components: tuple[Component, ...]
    path: str | None = None
    aside: bool = False


class Normal(NamedTuple):
    """A shape, and what follows a component of `/proc` or `/dev` that leads to where only the kernel knows."""

    shape: Shape
    beyond: tuple[Component, ...] | None


def normal_form(root: Root, components: Iterable[Component]) -> Normal | None:
    """Components without `.`, `..` and empty ones; `None` for `..` above the root."""
    stack: list[Component] = []
    beyond: list[Component] | None = None
    for component in components:
        if beyond is not None:
            beyond.append(component)
        if component == "..":
            if stack:
                stack.pop()
            elif root is Root.ROOTED:
                return None
        elif isinstance(component, tuple) and "".join(component) in {".", ".."}:
            root, stack = Root.OPEN, []  # `.*` may be `..`
        elif component not in {"", "."}:
            stack.append(component)
            if beyond is None and root is Root.ROOTED and _leads_away(stack):
                beyond = []
    path = None
    if root is Root.ROOTED and not any(isinstance(component, tuple) for component in stack):
        path = "/" + "/".join(str(component) for component in stack)
    return Normal(Shape(root, tuple(stack), path), None if beyond is None else tuple(beyond))


def _leads_away(stack: list[Component]) -> bool:
    if len(stack) > 2 and _among(stack[0], _PROC):
        return _among(stack[-1], _MAGIC)
    return len(stack) == 2 and _among(stack[0], _DEV) and _among(stack[1], _DESCRIPTORS)


def _among(component: Component, names: frozenset[str]) -> bool:
    if isinstance(component, str):
        return component in names
    return any(name.startswith(component[0]) and name.endswith(component[-1]) for name in names)
