"""What a factory is given when it constructs a tool, and never again.

In: the handles and versions of a host, and the settings of one tool. Out: `Given`, open while the factory runs.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from zcpolicy.refusals import PermitError
from zcpolicy.state.audit import Handles
from zcpolicy.state.contract import Contract, Handle
from zcpolicy.state.sources import Source
from zcpolicy.state.versions import AsyncDerived, Derived, Kept, SourceVersions

H = TypeVar("H", bound=Handle[Any])
T = TypeVar("T")


class Given:
    """`settings`: of this tool, JSON values. Handles are asked for by their type; all of it raises PermitError afterwards."""

    __slots__ = ("_handles", "_open", "_settings", "_taken", "_versions")

    def __init__(self, handles: Handles, versions: SourceVersions, settings: Mapping[str, Any]) -> None:
        self._handles = handles
        self._versions = versions
        self._settings = MappingProxyType(dict(settings))
        self._taken: list[str] = []
        self._open = True

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the host's configuration says of this tool."""
        self._ask()
        return self._settings

    def handle(self, kind: type[H], name: str = "") -> H:
        """A handle of this type, lent to the tool. `name`: which, where the host has several. Raises HandleError."""
        self._ask()
        found, handle = self._handles.find(kind, name)
        self._taken.append(found)
        return handle.lent()

    def derived(self, depends: Iterable[Source], compute: Callable[[], T]) -> Derived[T]:
        """A value that is worked out at use whenever a source has changed. Nothing is worked out now."""
        self._ask()
        return Derived(self._versions, depends, compute)

    def async_derived(self, depends: Iterable[Source], compute: Callable[[], Awaitable[T]]) -> AsyncDerived[T]:
        """The same where working it out awaits."""
        self._ask()
        return AsyncDerived(self._versions, depends, compute)

    def kept(self, contract: Contract, fresh: Callable[[], T]) -> Kept[T]:
        """Display state that lives on over reloads, as its contract declares."""
        self._ask()
        return Kept(self._versions, contract, fresh)

    def _ask(self) -> None:
        if not self._open:
            raise PermitError("what a tool needs it is given at construction: nothing is looked up later")

    def close(self) -> tuple[str, ...]:
        """For the life cycle: construction is over. The names of the handles that were taken."""
        self._open = False
        return tuple(self._taken)
