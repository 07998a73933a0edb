"""What a mention of a path can mean: the paths that some program would open for it.

In: a `PathRef`, and the facts of the process that opens it. Out: `Shape`s, as written and as link-resolved.

A path has one shape as written, and more than one where programs differ: in what they make of a leading `~`, of edge
blanks, of `..` behind a link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import groupby

from zcpolicy.predicates.path_normal import Root, Shape, normal_form
from zcpolicy.predicates.path_places import Place, Raw, known_end, places
from zcpolicy.predicates.refs import PathRef, Where, Within
from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

MAX_PATH_CHARACTERS: Final = 32_768
"""Characters of one path, the directory that it starts at included; a longer one is UNKNOWN."""
MAX_PATH_PARTS: Final = 1024
"""Known texts and holes of one path."""

_EDGES: Final = frozenset(
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u180e\u2028\u2029\u202f\u205f\u2060\u3000\ufeff'\"`"
    + "".join(map(chr, range(0x2000, 0x200C)))
)
"""Blanks and quotes, which many programs cut off both ends of an argument."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that only change in which direction text is shown."""
_ANYTHING: Final = Shape(Root.OPEN, (), aside=True)


class Shapes(NamedTuple):
    """Every reading of a mention. `linked` is false where links remain that the resolver could not be asked about."""

    written: tuple[Shape, ...]
    resolved: tuple[Shape, ...]
    linked: bool


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
    found = list(places(ref, ref.parts, where))
    cut = None if granting else _cut(ref)
    if cut is not None:
        found += [place._replace(aside=True) for place in places(ref, cut, where)]
    written = _written(found, granting)
    if written is None or where.resolve is None:
        return None if written is None else Shapes(written, (), linked=True)
    resolved: list[Shape] = []
    for place in found:
        followed = _followed(place, where.resolve, granting)
        if followed is None:
            return None
        resolved += followed
    return Shapes(written, tuple(resolved), linked=all(_whole(place) for place in found))


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
    first, last = known_end(ref.parts[:1]), known_end(ref.parts[-1:])
    if first[:1] in _EDGES or last[-1:] in _EDGES or first.startswith("~") or first[:5].lower() == "file:":
        return True
    texts = [part for part in (*ref.parts, ref.base) if isinstance(part, str)]
    return any(_CONTROL.search(text) for text in texts)


def _cut(ref: PathRef) -> Raw | None:
    """The text as programs read it that cut off edge blanks and quotes; `None` where that is the text as sent."""
    if ref.tilde is not None or not ref.parts:
        return None
    cut = list(ref.parts)
    edges = "".join(_EDGES)
    if isinstance(cut[0], str):
        cut[0] = cut[0].lstrip(edges)
    if isinstance(cut[-1], str):
        cut[-1] = cut[-1].rstrip(edges)
    return tuple(cut) if tuple(cut) != ref.parts else None


def _written(places: list[Place], granting: bool) -> tuple[Shape, ...] | None:
    found: list[Shape] = []
    for place in places:
        normal = normal_form(place.root, place.components)
        if normal is None and place.aside:
            found.append(_ANYTHING)
            continue
        if normal is None or (granting and normal.beyond is not None):
            return None
        found.append(normal.shape._replace(aside=place.aside))
        if normal.beyond is not None:
            rest = normal_form(Root.ADRIFT, normal.beyond)
            found += [] if rest is None else [rest.shape._replace(aside=True)]
    return tuple(found)


# --- links -----------------------------------------------------------------------------------------------------------


def _whole(place: Place) -> bool:
    return place.root is Root.ROOTED and not any(isinstance(component, tuple) for component in place.components)


def _followed(place: Place, resolve: Callable[[str], str | None], granting: bool) -> list[Shape] | None:
    """The place with links resolved; `None` where the resolver cannot tell."""
    if place.root is not Root.ROOTED:
        return []
    hole = next((i for i, c in enumerate(place.components) if isinstance(c, tuple)), len(place.components))
    known = tuple(str(component) for component in place.components[:hole])
    rest = place.components[hole:]
    found: list[Shape] = []
    for spelling in _spellings(known, place.fixed):
        target = follow(resolve, spelling)
        normal = None if target is None else normal_form(Root.ROOTED, (*target, *rest))
        if normal is None or (granting and normal.beyond is not None):
            return [_ANYTHING] if place.aside else None
        found.append(normal.shape._replace(aside=place.aside or spelling != known))
    return found


def _spellings(known: tuple[str, ...], fixed: int) -> Iterable[tuple[str, ...]]:
    """The text as sent; with `..`, also as programs send it on that collapse it first, or collapse their directory."""
    if ".." not in known:
        return (known,)
    return dict.fromkeys((known, _collapsed(known[:fixed]) + known[fixed:], _collapsed(known)))


def _collapsed(known: tuple[str, ...]) -> tuple[str, ...]:
    normal = normal_form(Root.ROOTED, known)
    return known if normal is None else tuple(str(component) for component in normal.shape.components)


def follow(resolve: Callable[[str], str | None], components: Iterable[str]) -> tuple[str, ...] | None:
    """An absolute path with its links resolved, as components; `None` where the resolver cannot tell."""
    target: object
    try:
        target = resolve("/" + "/".join(c for c in components if c not in {"", "."}))
    except Exception:  # noqa: BLE001 -- the host's code: however it fails, the reading is UNKNOWN
        return None
    return tuple(target.split("/")) if isinstance(target, str) and target.startswith("/") else None
