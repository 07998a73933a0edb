"""Values under names, for each key apart, valid while what they depend on is unchanged.

In: a contract, versions, and what the owner puts there. Out: `Named`, which handles are made of.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Held, key_of
from zcpolicy.state.handles.apart import Apart, Full, Key
from zcpolicy.state.locks import ReadWriteLock
from zcpolicy.state.versions import SourceVersions, Versions
from zcpolicy.texts import escaped

T = TypeVar("T")

MAX_NAMES: Final = 64
"""Names under one key."""
MAX_NAME_CHARACTERS: Final = 200
"""Characters of a name."""


class Missing(LookupError):
    """Nothing valid stands under this name. The message says what does."""


class _Entry(NamedTuple, Generic[T]):
    value: T
    versions: Versions
    who: Who


class Named(Generic[T]):
    """`what`: one of them, for messages. For threads and tasks."""

    def __init__(self, what: str, contract: Contract, versions: SourceVersions) -> None:
        self._what = what
        self._contract = contract
        self._versions = versions
        self._lock = ReadWriteLock()
        self._entries: Apart[dict[str, _Entry[T]]] = Apart(
            dict, lambda entries: not any(map(self._valid, entries.values()))
        )

    def as_of_now(self) -> Versions:
        """What to take before working out a value, and to give with it."""
        return self._versions.at(self._contract.depends)

    def put(self, who: Who, name: str, value: T, as_of: Versions | None = None) -> None:
        """Raises Full, PermitError, TypeError, ValueError."""
        self._put(who, {name: value}, as_of, is_all=False)

    def replace(self, who: Who, values: Mapping[str, T], as_of: Versions | None = None) -> None:
        """These, and no others. Raises as `put`."""
        self._put(who, values, as_of, is_all=True)

    def _put(self, who: Who, values: Mapping[str, T], as_of: Versions | None, *, is_all: bool) -> None:
        stamp = self.as_of_now() if as_of is None else as_of
        for name, value in values.items():
            checked_name(name)
            self._contract.admits(value)
        with self._lock.writing():
            entries = self._entries.of(key_of(self._contract.isolation, who))
            left = {} if is_all else {name: one for name, one in entries.items() if self._valid(one)}
            left.update({name: _Entry(value, stamp, who) for name, value in values.items()})
            if len(left) > MAX_NAMES:
                raise Full(f"there is room for {MAX_NAMES} of `{self._what}`, and no more")
            entries.clear()
            entries.update(left)

    def get(self, key: Key, name: str) -> T:
        """Raises Missing."""
        with self._lock.reading():
            entries = self._entries.find(key) or {}
            found = entries.get(name)
            if found is not None and self._valid(found):
                return found.value
            there = [f"`{escaped(one)}`" for one, entry in entries.items() if self._valid(entry)]
        raise Missing(
            f"there is no {self._what} `{escaped(str(name)[:MAX_NAME_CHARACTERS])}`; there is {', '.join(there) or 'none'}"
        )

    def names(self, key: Key) -> tuple[str, ...]:
        """Those that are valid."""
        with self._lock.reading():
            return tuple(name for name, one in (self._entries.find(key) or {}).items() if self._valid(one))

    def drop(self, who: Who) -> None:
        """Takes out all that is theirs."""
        with self._lock.writing():
            self._entries.drop(key_of(self._contract.isolation, who))

    def held(self) -> Iterator[Held]:
        """For audit."""
        with self._lock.reading():
            found = [Held(name, one.who) for entries in self._entries.all() for name, one in entries.items()]
        return iter(found)

    def _valid(self, entry: _Entry[T]) -> bool:
        return self._versions.hold(entry.versions)


def checked_name(name: object) -> str:
    """A name that can stand in a listing. Raises TypeError, ValueError."""
    if not isinstance(name, str):
        raise TypeError("a name is a text")
    if not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise ValueError(f"a name has 1 to {MAX_NAME_CHARACTERS} characters")
    return name
