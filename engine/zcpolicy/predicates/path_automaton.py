"""Path patterns as automata over components, for paths that are wholly, partly or hardly known.

In: operands, and the components of a path. Out: whether it may match and whether it must.
A component is text, or a tuple: known text with a hole (any run of characters without `/`) between each two.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from zcpolicy.predicates.path_operands import DEEP, Operand, is_wild
from zcpolicy.predicates.wildcard import matcher, split

Component = str | tuple[str, ...]


class Part:
    """One component of a pattern other than `**`."""

    __slots__ = ("_accepted", "_any", "_masks", "_stars", "ascii", "known", "whole")

    def __init__(self, text: str, *, wild: bool) -> None:
        chunks = split(text, escapes=False) if wild else (tuple(text),)
        self.known: Callable[[str], bool] = matcher(chunks) if wild else text.__eq__
        # an automaton with a state before each character, `?` or `*`, as bits of a number
        self._masks: dict[str, int] = {}
        self._any = self._stars = 0
        place = 0
        for number, chunk in enumerate(chunks):
            if number:
                self._stars |= 1 << place
                place += 1
            for char in chunk:
                if char is None:
                    self._any |= 1 << place
                else:
                    self._masks[char] = self._masks.get(char, 0) | 1 << place
                place += 1
        self._accepted = 1 << place
        self.ascii = text.isascii()
        # every component has a character, so that one `?` beside a `*` asks for nothing
        self.whole = bool(self._stars) and not self._masks and self._any.bit_count() <= 1

    def _closed(self, states: int) -> int:
        return states | (states & self._stars) << 1

    def _read(self, states: int, text: str) -> int:
        for char in text:
            states = self._closed((states & (self._masks.get(char, 0) | self._any)) << 1 | states & self._stars)
        return states

    def may(self, component: Component) -> bool:
        """Whether some completion of the component matches: exact."""
        if isinstance(component, str):
            return self.known(component)
        if not self.ascii or not all(chunk.isascii() for chunk in component):
            return True  # what a hole holds may compose with the letter beside it
        states = self._read(self._closed(1), component[0])
        for chunk in component[1:]:
            # a hole reaches every state from the first one on
            states = (self._accepted << 1) - (states & -states) if states else 0
            states = self._read(states, chunk)
        return bool(states & self._accepted)

    def must(self, component: Component) -> bool:
        """Whether every completion of the component matches. Sound: a hole is only ever taken up by a `*`."""
        if isinstance(component, str):
            return self.known(component)
        if self.whole:
            return True
        states = self._read(self._closed(1), component[0])
        for chunk in component[1:]:
            states = self._read(self._closed(states & self._stars), chunk)
        return bool(states & self._accepted)


def _may(component: Component) -> Callable[[Part], bool]:
    return lambda part: part.may(component)


def _must(component: Component) -> Callable[[Part], bool]:
    return lambda part: part.must(component)


class Pattern:
    """One operand as an automaton over components: a state before each part, and one after the last."""

    __slots__ = ("encloses", "parts")

    def __init__(self, operand: Operand) -> None:
        literal: list[Part | None] = [Part(text, wild=False) for text in operand.head]
        self.parts = (*literal, *(None if text == DEEP else Part(text, wild=True) for text in operand.tail))
        # a directory or a path, as against a form that may stand anywhere
        self.encloses = operand.tail in {(), (DEEP,)}

    def _closed(self, states: set[int]) -> set[int]:
        for state in sorted(states):
            here = state
            while here < len(self.parts) and self.parts[here] is None:
                here += 1
                states.add(here)
        return states

    def _step(self, states: set[int], matches: Callable[[Part], bool]) -> set[int]:
        after: set[int] = set()
        for state in states:
            if state < len(self.parts):
                part = self.parts[state]
                if part is None:
                    after.add(state)
                elif matches(part):
                    after.add(state + 1)
        return self._closed(after)

    def may(self, components: Sequence[Component], *, rooted: bool) -> bool:
        """Whether some completion matches; not `rooted`: below any directory at all."""
        states = self._closed({0}) if rooted else set(range(len(self.parts) + 1))
        for component in components:
            states = self._step(states, _may(component))
        return len(self.parts) in states

    def must(self, components: Sequence[Component], *, rooted: bool) -> bool:
        """Whether every completion matches; not `rooted`: below every directory. Sound."""
        starts = [self._closed({0})]
        if not rooted:
            # the directory hardest to match has components that only `*` and `**` match; of every length, up to
            # where longer ones change nothing any more
            for _ in range(len(self.parts) + 1):
                starts.append(self._step(starts[-1], lambda part: part.whole))
        return all(self._accepts(states, components) for states in starts)

    def _accepts(self, states: set[int], components: Iterable[Component]) -> bool:
        for component in components:
            states = self._step(states, _must(component))
        return len(self.parts) in states

    def touches(self, components: Iterable[Component]) -> bool:
        """Whether a component may match a part other than `**`."""
        return any(part is not None and part.may(component) for component in components for part in self.parts)


class Matcher:
    """Some operands, any of which will do."""

    def __init__(self, operands: tuple[Operand, ...]) -> None:
        self._operands = operands
        directories: list[str] = []
        paths: set[str] = set()
        names: set[str] = set()
        folders: set[str] = set()
        last: list[Callable[[str], bool]] = []
        others: list[Operand] = []
        for operand in operands:
            match operand.head, operand.tail:
                case (head, ()):
                    paths.add("/" + "/".join(head))
                case (head, (only,)) if only == DEEP:
                    directories.append("/" + "".join(part + "/" for part in head))
                case ((), (deep, name)) if deep == DEEP and not is_wild(name):
                    names.add(name)
                case ((), (deep, name)) if deep == DEEP:
                    last.append(Part(name, wild=True).known)
                case ((), (deep, name, end)) if deep == end == DEEP and not is_wild(name):
                    folders.add(name)
                case _:
                    others.append(operand)
        self._directories = tuple(directories)
        self._paths, self._names, self._folders = frozenset(paths), frozenset(names), frozenset(folders)
        self._last = tuple(last)
        self._others = tuple(Pattern(operand) for operand in others)
        self.everything = "/" in directories

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """The operands as automata."""
        return tuple(Pattern(operand) for operand in self._operands)

    def known(self, path: str) -> bool:
        """Whether a path in normal form matches."""
        if self._directories and (path + "/").startswith(self._directories):
            return True
        if path in self._paths:
            return True
        components = path.split("/")[1:] if path != "/" else []
        if components:
            name = components[-1]
            if name in self._names or not self._folders.isdisjoint(components):
                return True
            for match in self._last:
                if match(name):
                    return True
        return any(pattern.may(components, rooted=True) for pattern in self._others)
