"""Tests of paths: `under`, `glob`, comparison, and the files that no policy may open to a tool.

In: operands at build time; a `PathRef` and the facts of the process that opens it at call time. Out: a `Truth`.
A path is read as written and as link-resolved, with letter case kept and folded. TRUE if every reading satisfies the
test, FALSE if none does, else UNKNOWN.

The makers of tests raise `ValueError` for an operand that the checks refuse.

INVARIANT: what is TRUE standing for granting is not FALSE standing for withholding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

from zcpolicy.predicates.letters import fold, visible
from zcpolicy.predicates.path_automaton import Component, Matcher, Part
from zcpolicy.predicates.path_normal import Root, Shape
from zcpolicy.predicates.path_operands import (
    Operand,
    check_glob,
    check_path,
    check_prefix,
    file_operand,
    glob_operand,
    path_operand,
    prefix_operand,
)
from zcpolicy.predicates.path_shapes import MAX_PATH_CHARACTERS, follow, shapes
from zcpolicy.predicates.refs import PathRef, Truth, Where
from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = [
    "MAX_PATH_CHARACTERS",
    "check_glob",
    "check_path",
    "check_prefix",
    "glob",
    "paths_equal",
    "protected_hit",
    "same_path",
    "under",
]

PathTest = Callable[[object, Where], Truth]

_SIMPLE: Final = re.compile(r"(?:/(?!\.\.?(?:/|\Z))[ -.0-~]+)+")
"""Absolute paths of printable ASCII in normal form."""
_ODD_ENDS: Final = frozenset("~ '\"`")
"""What programs may read otherwise at an end of a path."""
_KERNEL: Final = ("/proc/", "/dev/")


class _Answer(NamedTuple):
    """What the readings of a path say. `exact`: whether one of them satisfies the test letter for letter."""

    all: bool
    any: bool
    exact: bool


def _visible_fold(text: str) -> str:
    return fold(visible(text))


class _Levels:
    """The same operands with letter case kept, with it folded, and as file systems compare that ignore what is invisible."""

    def __init__(self, operands: tuple[Operand, ...]) -> None:
        self._operands = operands
        self.exact = Matcher(operands)
        folded = tuple(operand.mapped(fold) for operand in operands)
        self.folded = Matcher(folded)
        self._lower = folded == operands

    @cached_property
    def visible(self) -> Matcher:
        return Matcher(tuple(operand.mapped(_visible_fold) for operand in self._operands))

    def simple(self, path: str) -> Truth:
        """For a path of plain ASCII in normal form."""
        if self.exact.known(path):
            return True
        lower = path.lower()
        if self._lower and lower == path:
            return False
        return None if self.folded.known(lower) else False

    def ask(self, shape: Shape, granting: bool) -> _Answer:
        """Every level on one shape. What few programs do is enough to doubt, and never more."""
        levels: list[tuple[Matcher, Callable[[str], str]]] = [(self.exact, str), (self.folded, fold)]
        if any(visible(text) != text for text in _texts(shape.components)):
            levels.append((self.visible, _visible_fold))
        must: list[bool] = []
        may: list[bool] = []
        for matcher, change in levels:
            if shape.path is not None:
                must.append(matcher.known(change(shape.path)))
                may.append(must[-1])
            else:
                components = tuple(_changed(component, change) for component in shape.components)
                must.append(_must(matcher, shape.root, components))
                may.append(must[-1] or _may(matcher, shape.root, components, granting))
        if granting:
            return _Answer(all(must), any(may), must[0])
        return _Answer(shape.aside or all(must[:2]), any(may), must[0] and not shape.aside)


def _texts(components: tuple[Component, ...]) -> Iterable[str]:
    for component in components:
        if isinstance(component, str):
            yield component
        else:
            yield from component


def _changed(component: Component, change: Callable[[str], str]) -> Component:
    return change(component) if isinstance(component, str) else tuple(map(change, component))


def _must(matcher: Matcher, root: Root, components: tuple[Component, ...]) -> bool:
    return any(pattern.must(components, rooted=root is Root.ROOTED) for pattern in matcher.patterns)


def _may(matcher: Matcher, root: Root, components: tuple[Component, ...], granting: bool) -> bool:
    for pattern in matcher.patterns:
        if pattern.may(components, rooted=root is Root.ROOTED):
            # below a directory that the host does not tell everything may be under anything, which is no reason to
            # withhold: some component must point there
            certain = root in {Root.ROOTED, Root.OPEN} or (root is Root.HOME and pattern.encloses)
            if certain or granting or pattern.touches(components):
                return True
    return False


class _Question:
    """Operands, and what was found where their links led last."""

    def __init__(self, operands: tuple[Operand, ...]) -> None:
        self._operands = operands
        self.levels = _Levels(operands)
        self._resolved = (operands, self.levels)

    def resolved(self, resolve: Callable[[str], str | None]) -> _Levels | None:
        """The operands with their own links resolved; `None` where the resolver cannot tell."""
        found: list[Operand] = []
        for operand in self._operands:
            head = follow(resolve, operand.head) if operand.head else ()
            if head is None:
                return None
            found.append(Operand(tuple(c for c in head if c not in {"", "."}), operand.tail))
        operands, levels = self._resolved
        if operands != tuple(found):
            levels = self.levels if tuple(found) == self._operands else _Levels(tuple(found))
            self._resolved = (tuple(found), levels)
        return levels

    def answer(self, ref: PathRef, where: Where, granting: bool) -> _Answer | None:
        """What all readings say; `None` if one of them cannot be told."""
        found = shapes(ref, where, granting)
        if found is None:
            return None
        answers = [self.levels.ask(shape, granting) for shape in found.written]
        if where.resolve is not None:
            levels = self.resolved(where.resolve)
            if levels is None:
                return None
            answers += [levels.ask(shape, granting) for shape in found.resolved]
        followed = not granting or found.linked or self.levels.exact.everything
        return _Answer(
            followed and all(answer.all for answer in answers),
            any(answer.any for answer in answers),
            any(answer.exact for answer in answers),
        )


def _simple(ref: object, where: Where) -> str | None:
    """The path, where its readings can differ in nothing but letter case."""
    if not isinstance(ref, PathRef) or len(ref.parts) != 1 or where.resolve is not None or where.platform != "posix":
        return None
    text = ref.parts[0]
    if not isinstance(text, str) or not text or len(text) > MAX_PATH_CHARACTERS:
        return None
    if text[0] in _ODD_ENDS or text[-1] in _ODD_ENDS or text[4:5] == ":":
        return None
    if text[0] != "/":
        if ref.base != "" or where.cwd is None:
            return None
        text = f"{where.cwd}/{text}"
    return text if _SIMPLE.fullmatch(text) and not text.startswith(_KERNEL) else None


def _test(operands: tuple[Operand, ...], granting: bool) -> PathTest:
    question = _Question(operands)

    def test(ref: object, where: Where) -> Truth:
        path = _simple(ref, where)
        if path is not None:
            return question.levels.simple(path)
        answer = question.answer(ref, where, granting) if isinstance(ref, PathRef) else None
        if answer is None:
            return None
        return True if answer.all else None if answer.any else False

    return test


def under(prefixes: tuple[str, ...], granting: bool) -> PathTest:
    """Whether a path is one of the directories or lies below one, by whole components."""
    return _test(tuple(map(prefix_operand, prefixes)), granting)


def glob(patterns: tuple[str, ...], granting: bool) -> PathTest:
    """Whether a path matches a pattern: `*` and `?` within a component, `**` for any number of components."""
    return _test(tuple(map(glob_operand, patterns)), granting)


def same_path(operands: tuple[str, ...], granting: bool) -> PathTest:
    """Whether a path is one of the operands, both in normal form; a relative operand starts where the path does."""
    absolute = tuple(operand for operand in operands if operand.startswith("/"))
    relative = tuple(PathRef((operand,)) for operand in operands if not operand.startswith("/"))
    test = _test(tuple(map(path_operand, absolute)), granting)
    if not relative:
        return test

    def both(ref: object, where: Where) -> Truth:
        answers = [test(ref, where)] if absolute else []
        answers += [paths_equal(ref, operand, where, granting) for operand in relative]
        return True if True in answers else None if None in answers else False

    return both


def paths_equal(a: object, b: object, where: Where, granting: bool) -> Truth:
    """Whether two mentions are the same path, reading by reading."""
    if not isinstance(a, PathRef) or not isinstance(b, PathRef):
        return None
    left, right = shapes(a, where, granting), shapes(b, where, granting)
    if left is None or right is None:
        return None
    if a == b and not any(part is None or not isinstance(part, str) for part in a.parts) and a.base is not None:
        return True
    pairs = [(x, y) for x in left.written for y in right.written]
    pairs += [(x, y) for x in left.resolved for y in right.resolved]
    known = all(x.path is not None and y.path is not None for x, y in pairs)
    if known and all(x.path == y.path for x, y in pairs):
        return True
    return None if any(_may_be_same(x, y) for x, y in pairs) else False


def _may_be_same(x: Shape, y: Shape) -> bool:
    """Whether two shapes can be one path, compared from the end and as loosely as any file system does."""
    shorter, longer = sorted((x, y), key=lambda shape: len(shape.components))
    if len(shorter.components) < len(longer.components) and shorter.root is Root.ROOTED:
        return False
    return all(map(_may_be_one, reversed(shorter.components), reversed(longer.components)))


def _may_be_one(a: Component, b: Component) -> bool:
    a, b = _changed(a, _visible_fold), _changed(b, _visible_fold)
    if isinstance(a, tuple):
        a, b = b, a
    return isinstance(a, tuple) or Part(a, wild=False).may(b)


def protected_hit(files: tuple[str, ...]) -> PathTest:
    """Whether a path is one of the files, or lies below one: TRUE hits, UNKNOWN may hit, FALSE cannot."""
    question = _Question(tuple(map(file_operand, files)))

    def test(ref: object, where: Where) -> Truth:
        path = _simple(ref, where)
        if path is not None:
            return question.levels.simple(path)
        answer = question.answer(ref, where, granting=False) if isinstance(ref, PathRef) else None
        if answer is None:
            return None
        return True if answer.exact else None if answer.any else False

    return test
