"""Where a path starts: at the root, in the process's directory, in a home, anywhere.

In: a `PathRef`, and the facts of the process that opens it. Out: its components as sent, not yet in normal form.
A hole that may hold `/` may hold `..` as well: whatever stands before it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from zcpolicy.predicates.path_automaton import Component
from zcpolicy.predicates.path_normal import Root
from zcpolicy.predicates.refs import PathRef, Where, Within
from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

Raw = tuple[str | Within | None, ...]

_DOTS: Final = frozenset({"", ".", ".."})


class Place(NamedTuple):
    """Components as sent; the first `fixed` of them are the directory that the text starts at.

    `aside`: some programs read it so, against the text.
    """

    root: Root
    components: tuple[Component, ...]
    fixed: int = 0
    aside: bool = False


def places(ref: PathRef, parts: Raw, where: Where) -> Iterator[Place]:
    components, opened = _split(parts)
    if opened:
        yield Place(Root.OPEN, components)
        return
    head = known_end(parts[:1])
    if head.startswith("/"):
        yield Place(Root.ROOTED, components)
        return
    if head.startswith("~") and ref.tilde is not False:
        yield _at_home(components, where)
        # a tool may take it as it is, and so does a shell where nobody has that name
        if not ref.tilde or components[0] != "~":
            yield _below(ref.base, components, where)._replace(aside=True)
        return
    yield _below(ref.base, components, where)


def _split(parts: Raw) -> tuple[tuple[Component, ...], bool]:
    """The components of a text, and whether a hole opens it: then only those from the last such hole on."""
    done: list[Component] = []
    chunks = [""]
    opened = fresh = False
    for part in parts:
        if part is None:
            done, chunks, opened, fresh = [], ["", ""], True, True
        elif isinstance(part, Within):
            chunks.append("")
        else:
            first, *rest = part.split("/")
            chunks[-1] += first
            for piece in rest:
                _finish(done, chunks, fresh)
                chunks, fresh = [piece], False
    _finish(done, chunks, fresh)
    return tuple(done), opened


def _finish(done: list[Component], chunks: list[str], fresh: bool) -> None:
    # the end of an open hole, with a dot or two behind it, can be `..`: it is part of what is open
    if not (fresh and "".join(chunks) in _DOTS):
        done.append(chunks[0] if len(chunks) == 1 else tuple(chunks))


def _at_home(components: tuple[Component, ...], where: Where) -> Place:
    """A path that begins with `~`, `~user` or the like."""
    if components[0] == "~" and where.home is not None and where.home.startswith("/"):
        home = tuple(where.home.split("/"))
        return Place(Root.ROOTED, home + components[1:], len(home))
    return Place(Root.HOME, components[1:])


def _below(base: str | None, components: tuple[Component, ...], where: Where) -> Place:
    """A relative path."""
    if base is None:  # ANYWHERE
        return Place(Root.OPEN, components)
    start = tuple(base.split("/")) if base else ()
    if base.startswith("~"):
        return _at_home(start + components, where)
    if not base.startswith("/"):
        if where.cwd is None or not where.cwd.startswith("/"):
            return Place(Root.ADRIFT, start + components)
        start = (*where.cwd.split("/"), *start)
    return Place(Root.ROOTED, start + components, len(start))


def known_end(end: Raw) -> str:
    """The text at one end of a path; nothing where that is a hole."""
    return end[0] if end and isinstance(end[0], str) else ""
