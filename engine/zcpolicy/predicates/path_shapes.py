"""What a mention of a path can mean: the paths that some program would open for it.

In: a `PathRef`, and the facts of the process that opens it. Out: `Shape`s, as written and as link-resolved.

A path has one shape as written, and more than one where programs differ: in what they make of a leading `~`, of edge
blanks, of `..` behind a link. A hole that may hold `/` may hold `..` as well: whatever stands before it says nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import groupby
from typing import Final, NamedTuple

from zcpolicy.predicates.path_automaton import Component
from zcpolicy.predicates.refs import PathRef, Where, Within

MAX_PATH_CHARACTERS: Final = 32_768
"""Characters of one path, the directory that it starts at included; a longer one is UNKNOWN."""
MAX_PATH_PARTS: Final = 1024
"""Known texts and holes of one path."""

Raw = tuple[str | Within | None, ...]

_EDGES: Final = frozenset(
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u180e\u2028\u2029\u202f\u205f\u2060\u3000\ufeff'\"`"
    + "".join(map(chr, range(0x2000, 0x200C)))
)
"""Blanks and quotes, which many programs cut off both ends of an argument."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that only change in which direction text is shown."""
_DOTS: Final = frozenset({"", ".", ".."})
_MAGIC: Final = frozenset({"cwd", "root", "fd"})
_DESCRIPTORS: Final = frozenset({"fd", "stdin", "stdout", "stderr"})


class Root(Enum):
    """Where the components of a shape start."""

    ROOTED = "at the root"
    ADRIFT = "in a directory that the host does not tell"
    HOME = "in a home directory that the host does not tell"
    OPEN = "anywhere at all: the text leaves it open"


class Shape(NamedTuple):
    """A path in normal form, as far as it is known; `path` is its text, only where it is known wholly."""

    root: Root
    components: tuple[Component, ...]
    path: str | None = None


class Shapes(NamedTuple):
    """Every reading of a mention. `linked` is false where links remain that the resolver could not be asked about."""

    written: tuple[Shape, ...]
    resolved: tuple[Shape, ...]
    linked: bool


class _Place(NamedTuple):
    """Components as sent, not yet in normal form; the first `fixed` of them are the directory that the text starts at."""

    root: Root
    components: tuple[Component, ...]
    fixed: int = 0


class _Normal(NamedTuple):
    """A shape, and what follows a component of `/proc` or `/dev` that leads to where only the kernel knows."""

    shape: Shape
    beyond: tuple[Component, ...] | None


def shapes(ref: PathRef, where: Where, granting: bool) -> Shapes | None:
    """Every reading of a path; `None` is UNKNOWN: for granting also where programs may read something else."""
    known = [part for part in ref.parts if isinstance(part, str)]
    if (
        where.platform != "posix"
        or len(ref.parts) > MAX_PATH_PARTS
        or any("\0" in text for text in (*known, ref.base or ""))
    ):
        return None
    if sum(map(len, known)) + len(ref.base or "") + len(where.cwd or "") > MAX_PATH_CHARACTERS:
        return None
    ref = ref._replace(parts=_merged(ref.parts))
    if granting and _doubtful(ref):
        return None
    places = [place for parts in _texts(ref, granting) for place in _places(ref, parts, where)]
    written = _written(places, granting)
    if written is None or where.resolve is None:
        return None if written is None else Shapes(written, (), linked=True)
    resolved: list[Shape] = []
    for place in places:
        followed = _followed(place, where.resolve, granting)
        if followed is None:
            return None
        resolved += followed
    return Shapes(written, tuple(resolved), linked=all(_whole(place) for place in places))


def _merged(parts: Raw) -> Raw:
    """The same text with no two known texts in a row, and none of them empty."""
    if len(parts) < 2:
        return parts
    merged: list[str | Within | None] = []
    for known, run in groupby(parts, lambda part: isinstance(part, str)):
        if known:
            merged += filter(None, ("".join(str(part) for part in run),))
        else:
            merged += run
    return tuple(merged)


def _doubtful(ref: PathRef) -> bool:
    """Whether programs may read another path than the text says."""
    first, last = _known(ref.parts[:1]), _known(ref.parts[-1:])
    if first[:1] in _EDGES or last[-1:] in _EDGES or first.startswith("~") or first[:5].lower() == "file:":
        return True
    texts = [part for part in (*ref.parts, ref.base) if isinstance(part, str)]
    return any(_CONTROL.search(text) for text in texts)


def _known(end: Raw) -> str:
    """The text at one end of a path; nothing where that is a hole."""
    return end[0] if end and isinstance(end[0], str) else ""


def _texts(ref: PathRef, granting: bool) -> Iterator[Raw]:
    """The text as sent and, where that withholds, as programs read it that cut off edge blanks and quotes."""
    yield ref.parts
    if granting or ref.tilde is not None or not ref.parts:
        return
    cut = list(ref.parts)
    edges = "".join(_EDGES)
    if isinstance(cut[0], str):
        cut[0] = cut[0].lstrip(edges)
    if isinstance(cut[-1], str):
        cut[-1] = cut[-1].rstrip(edges)
    if tuple(cut) != ref.parts:
        yield tuple(cut)


# --- where a path starts ---------------------------------------------------------------------------------------------


def _places(ref: PathRef, parts: Raw, where: Where) -> Iterator[_Place]:
    components, opened = _split(parts)
    if opened:
        yield _Place(Root.OPEN, components)
        return
    head = _known(parts[:1])
    if head.startswith("/"):
        yield _Place(Root.ROOTED, components)
        return
    if head.startswith("~") and ref.tilde is not False:
        yield _at_home(components, where)
        if ref.tilde and components[0] == "~":
            return  # `~name` stays as it is where nobody has that name
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


def _at_home(components: tuple[Component, ...], where: Where) -> _Place:
    """A path that begins with `~`, `~user` or the like."""
    if components[0] == "~" and where.home is not None and where.home.startswith("/"):
        home = tuple(where.home.split("/"))
        return _Place(Root.ROOTED, home + components[1:], len(home))
    return _Place(Root.HOME, components[1:])


def _below(base: str | None, components: tuple[Component, ...], where: Where) -> _Place:
    """A relative path."""
    if base is None:  # ANYWHERE
        return _Place(Root.OPEN, components)
    start = tuple(base.split("/")) if base else ()
    if base.startswith("~"):
        return _at_home(start + components, where)
    if not base.startswith("/"):
        if where.cwd is None or not where.cwd.startswith("/"):
            return _Place(Root.ADRIFT, start + components)
        start = (*where.cwd.split("/"), *start)
    return _Place(Root.ROOTED, start + components, len(start))


# --- normal form -----------------------------------------------------------------------------------------------------


def _normal(root: Root, components: Iterable[Component]) -> _Normal | None:
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
    return _Normal(Shape(root, tuple(stack), path), None if beyond is None else tuple(beyond))


def _leads_away(stack: list[Component]) -> bool:
    if stack[0] == "proc":
        return len(stack) > 2 and _among(stack[-1], _MAGIC)
    return stack[0] == "dev" and len(stack) == 2 and _among(stack[1], _DESCRIPTORS)


def _among(component: Component, names: frozenset[str]) -> bool:
    if isinstance(component, str):
        return component in names
    return any(name.startswith(component[0]) and name.endswith(component[-1]) for name in names)


def _written(places: list[_Place], granting: bool) -> tuple[Shape, ...] | None:
    found: list[Shape] = []
    for place in places:
        normal = _normal(place.root, place.components)
        if normal is None or (granting and normal.beyond is not None):
            return None
        found.append(normal.shape)
        if normal.beyond is not None:
            rest = _normal(Root.ADRIFT, normal.beyond)
            found += [] if rest is None else [rest.shape]
    return tuple(found)


# --- links -----------------------------------------------------------------------------------------------------------


def _whole(place: _Place) -> bool:
    return place.root is Root.ROOTED and not any(isinstance(component, tuple) for component in place.components)


def _followed(place: _Place, resolve: Callable[[str], str | None], granting: bool) -> list[Shape] | None:
    """The place with links resolved; `None` where the resolver cannot tell."""
    if place.root is not Root.ROOTED:
        return []
    hole = next((i for i, c in enumerate(place.components) if isinstance(c, tuple)), len(place.components))
    known = tuple(str(component) for component in place.components[:hole])
    rest = place.components[hole:]
    found: list[Shape] = []
    for spelling in _spellings(known, place.fixed):
        target = follow(resolve, spelling)
        normal = None if target is None else _normal(Root.ROOTED, (*target, *rest))
        if normal is None or (granting and normal.beyond is not None):
            return None
        found.append(normal.shape)
    return found


def _spellings(known: tuple[str, ...], fixed: int) -> Iterable[tuple[str, ...]]:
    """The text as sent; with `..`, also as programs send it on that collapse it first, or collapse their directory."""
    if ".." not in known:
        return (known,)
    return dict.fromkeys((known, _collapsed(known[:fixed]) + known[fixed:], _collapsed(known)))


def _collapsed(known: tuple[str, ...]) -> tuple[str, ...]:
    normal = _normal(Root.ROOTED, known)
    return known if normal is None else tuple(str(component) for component in normal.shape.components)


def follow(resolve: Callable[[str], str | None], components: Iterable[str]) -> tuple[str, ...] | None:
    """An absolute path with its links resolved, as components; `None` where the resolver cannot tell."""
    try:
        target = resolve("/" + "/".join(c for c in components if c not in {"", "."}))
    except (OSError, ValueError, RuntimeError):
        return None
    return tuple(target.split("/")) if target is not None and target.startswith("/") else None
