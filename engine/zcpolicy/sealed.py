"""Sealed types: objects that only their one maker makes, and that nobody alters, copies or pickles.

In: nothing. Out: the classes `Sealed` and `Fixed`, and `hidden` slots. They stop mistakes, and code that is handed an object and
alters what it can reach from there; not code that takes this package's own modules apart.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import MemberDescriptorType
    from typing import Any, Final, Never, SupportsIndex
    from typing import final as final
else:

    def final(sealed: type) -> type:
        """Of `typing`, without the price of importing it: type checkers refuse to inherit from what it stands on."""
        return sealed


MYPY = False
"""True for mypy alone."""

put: Final = object.__setattr__
"""Sets a slot of a sealed object. For its maker alone."""


def hidden(owner: type, slot: str) -> MemberDescriptorType:
    """Takes the name of a slot off its class. From then on what stands there is no attribute: not even `put` comes there.

    The only way is through what this gives: `__get__(one)`, AttributeError where nothing was set, and `__set__(one, value)`.
    """
    found: MemberDescriptorType = owner.__dict__[slot]
    delattr(owner, slot)
    return found


class NoTruth:
    """The parent of outcomes that are no yes or no: `if outcome:` would be true of a deny. Raises TypeError.

    pyright finds it where it is written, and so does mypy with `truthy-bool`, which looks for types without `__bool__`.
    """

    __slots__ = ()
    _ask = "ask with `isinstance`"

    if not MYPY:

        def __bool__(self) -> Never:
            raise TypeError(f"{type(self).__name__} is neither true nor false: {self._ask}")


class Fixed:
    """The parent of what is filled once, by its own maker with `put`, and is the same for ever after."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is made once: `{name}` cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is made once: `{name}` cannot be deleted")


class Sealed:
    """The parent of the sealed types. A direct child in this package is a sealed type; nothing below it can be.

    Makers write `object.__new__(Type)` and fill the slots with `put`.
    """

    __slots__ = ()
    _maker = "its maker"

    def __init_subclass__(cls) -> None:
        if Sealed not in cls.__bases__ or not cls.__module__.startswith("zcpolicy."):
            raise TypeError(f"{cls.__mro__[1].__name__} is sealed and cannot be subclassed")

    if TYPE_CHECKING:

        def __new__(cls, sealed: Never, /) -> Any: ...

    else:

        def __new__(cls, *_given: object, **_named: object) -> Any:  # whatever is given, it is the same mistake
            raise TypeError(f"{cls.__name__} is sealed: it is made by {cls._maker}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is sealed: `{name}` cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is sealed: `{name}` cannot be deleted")

    def __copy__(self) -> Never:
        raise TypeError(f"{type(self).__name__} is sealed and cannot be copied")

    def __deepcopy__(self, memo: object) -> Never:
        raise TypeError(f"{type(self).__name__} is sealed and cannot be copied")

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        raise TypeError(f"{type(self).__name__} is sealed and cannot be pickled")
