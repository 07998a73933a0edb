"""How long a value is valid that was worked out from something that can change.

In: a function that works it out, and the sources that it reads. Out: `SourceVersions`, which counts changes; `Derived` and
`AsyncDerived`, which give a value only while everything that it was worked out from is as it was then; `Kept`.

INVARIANT: a `get` that begins after `bump` has returned never gives what was worked out before it.
"""

import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from zcpolicy.refusals import PermitError
from zcpolicy.state.contract import Contract
from zcpolicy.state.locks import ReadWriteLock
from zcpolicy.state.sources import SOURCES, Source

T = TypeVar("T")

MAX_WORKED_OUT: Final = 100
"""How often a value is worked out anew for one `get` while its sources keep changing; then it is refused."""

Versions = tuple[tuple[Source, int], ...]
"""Sources, and how often each had changed."""


class SourceVersions:
    """How often each source has changed since the process began. Whoever changes one says so once the change is in place."""

    __slots__ = ("_counts", "_guard")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts: dict[Source, int] = dict.fromkeys(SOURCES, 0)

    def bump(self, *sources: Source) -> None:
        """These have changed: what was worked out from them is invalid from now on. Raises TypeError for other names."""
        _checked(sources)
        with self._guard:
            for source in sources:
                self._counts[source] += 1

    def at(self, depends: Iterable[Source]) -> Versions:
        """The versions of now, to be held against those of later."""
        with self._guard:
            return tuple((source, self._counts[source]) for source in depends)

    def hold(self, versions: Versions) -> bool:
        """Whether nothing of it has changed since."""
        with self._guard:
            return all(self._counts[source] == count for source, count in versions)

    def to_json(self) -> dict[str, int]:
        """For audit."""
        return dict(self.at(SOURCES))


class _Found(NamedTuple, Generic[T]):
    """A value, and what it was worked out from."""

    value: T
    versions: Versions


class _Valid(Generic[T]):
    """What the two kinds have in common: the last value, while it is valid."""

    def __init__(self, versions: SourceVersions, depends: Iterable[Source]) -> None:
        self._versions = versions
        self._depends = _checked(depends)
        self._lock = ReadWriteLock()
        self._found: _Found[T] | None = None

    def _valid(self) -> _Found[T] | None:
        found = self._found
        return found if found is not None and self._versions.hold(found.versions) else None

    def drop(self) -> None:
        """Forgets the value: the next `get` works it out anew."""
        self._found = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self._depends)}>"


class Derived(_Valid[T]):
    """A value that is worked out when it is used and not valid any more. For threads and tasks; `compute` does not await.

    At most one works it out at a time, the others wait for it. What `compute` raises, `get` raises, and the next one tries again.
    """

    def __init__(self, versions: SourceVersions, depends: Iterable[Source], compute: Callable[[], T]) -> None:
        super().__init__(versions, depends)
        self._compute = compute

    def get(self) -> T:
        """The value as of now. Raises what `compute` raises, LockMisused where that asks for this value, and PermitError where
        the sources do not come to rest.
        """
        found = self._valid()
        if found is None:
            with self._lock.writing():
                found = self._valid() or self._worked_out()
        return found.value

    def _worked_out(self) -> _Found[T]:
        self._found = None
        for _ in range(MAX_WORKED_OUT):
            before = self._versions.at(self._depends)
            found = _Found(self._compute(), before)
            if self._versions.hold(before):
                self._found = found
                return found
        raise _unsettled(self)


class AsyncDerived(_Valid[T]):
    """As `Derived`, where working it out awaits. One that is cancelled leaves it to the next who waits."""

    def __init__(
        self, versions: SourceVersions, depends: Iterable[Source], compute: Callable[[], Awaitable[T]]
    ) -> None:
        super().__init__(versions, depends)
        self._compute = compute

    async def get(self) -> T:
        """The value as of now. Raises as `Derived.get`."""
        found = self._valid()
        if found is None:
            async with self._lock.writing():
                found = self._valid() or await self._worked_out()
        return found.value

    async def _worked_out(self) -> _Found[T]:
        self._found = None
        for _ in range(MAX_WORKED_OUT):
            before = self._versions.at(self._depends)
            found = _Found(await self._compute(), before)
            if self._versions.hold(before):
                self._found = found
                return found
        raise _unsettled(self)


class Kept(Derived[T]):
    """Display state: it lives on over reloads, and begins anew with `fresh` when something that its contract names changes.

    Raises TypeError for a contract that does not say `kept`, which none does that is security-relevant.
    """

    def __init__(self, versions: SourceVersions, contract: Contract, fresh: Callable[[], T]) -> None:
        if contract.reload != "kept" or contract.security:
            raise TypeError("only what its contract declares as `kept`, and not `security`, lives on over a reload")
        super().__init__(versions, contract.depends, fresh)


def _checked(sources: Iterable[Source]) -> tuple[Source, ...]:
    found = tuple(sources)
    unknown = [str(one)[:60] for one in found if one not in SOURCES]
    if unknown or not found:
        raise TypeError(
            f"sources are at least one of {', '.join(SOURCES)}" + (f", not `{unknown[0]}`" if unknown else "")
        )
    return tuple(sorted(set(found)))


def _unsettled(one: object) -> PermitError:
    return PermitError(f"{one!r} cannot be told: what it is worked out from keeps changing")
