"""Secrets: values that never stand in a repr, a log, an error or JSON.

In: text. Out: `Secret`, sealed, and whether a value has one inside.
"""

from collections.abc import Collection, Mapping
from hmac import compare_digest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Never

from zcpolicy.sealed import Sealed, final, hidden

MAX_SECRET_DEPTH: Final = 20
"""Nesting of a value that is searched for secrets; one that is deeper is taken to have some."""
MAX_SECRET_PARTS: Final = 100_000
"""Parts of a value that is searched for secrets; one that has more is taken to have some."""


@final
class Secret(Sealed):  # noqa: PLW1641 - no hash: it is no key
    """A credential. Made by `secret`. `reveal` gives its text; nothing else does, no attribute and no state for a pickler either.

    It equals another of the same text.
    """

    __slots__ = ("_text",)
    _maker = "`secret`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None: ...

    def reveal(self) -> str:
        """The text, to be sent and not to be kept."""
        text: str = _TEXT.__get__(self)
        return text

    def __eq__(self, other: object) -> bool:
        return type(other) is Secret and compare_digest(self.reveal().encode(), other.reveal().encode())

    def __repr__(self) -> str:
        return "<Secret>"


_TEXT: Final = hidden(Secret, "_text")


def secret(text: str) -> Secret:
    """A secret of this text. Raises TypeError for what is no text, ValueError for an empty one or one with lone surrogates."""
    given: Any = text
    if not isinstance(given, str):
        raise TypeError("a secret is a text")
    if not given or not _is_sound(given):
        raise ValueError("a secret is a text that is not empty, in Unicode")
    made: Secret = object.__new__(Secret)
    _TEXT.__set__(made, str.__str__(given))
    return made


def has_secret(value: object) -> bool:
    """Whether a secret stands in it, at any depth of mappings, sequences, sets and plain objects."""
    left = [(value, 0)]
    seen: set[int] = set()
    while left:
        one, depth = left.pop()
        if isinstance(one, Secret) or depth > MAX_SECRET_DEPTH or len(seen) > MAX_SECRET_PARTS:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            left += [(part, depth + 1) for part in _parts(one)]
    return False


def _parts(value: object) -> list[Any]:
    one: Any = value
    if isinstance(one, str | bytes | bytearray | type):
        return []
    slots = [name for kind in type(one).__mro__ for name in _names(getattr(kind, "__slots__", ()))]
    held = [*getattr(one, "__dict__", {}).values(), *(getattr(one, name) for name in slots if hasattr(one, name))]
    if isinstance(one, Mapping):
        return [*held, *one.keys(), *one.values()]
    return [*held, *islice(one, MAX_SECRET_PARTS + 1)] if isinstance(value, Collection) else held


def _names(slots: object) -> tuple[str, ...]:
    given: Any = slots
    return (given,) if isinstance(given, str) else tuple(given)


def _is_sound(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
