"""The generation that work in flight was started under, handed on with it.

In: a resolver, as work begins. Out: `Carried`, which a spawned task is given as an argument; `check` says whether that generation
is still the one in force. What is missing, forged, of another policy or of another generation fails closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Never
from weakref import WeakKeyDictionary

from zcpolicy.refusals import ResolveError
from zcpolicy.resolver import Resolver
from zcpolicy.sealed import Sealed, final, put


class NotCurrent(ResolveError):
    """Work must not go on as it was begun: its generation is not in force, or none was handed on with it."""


@final
class Carried(Sealed):
    """Made by `carry`. `generation`: that of then."""

    __slots__ = ("__weakref__", "generation")
    _maker = "`carry`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self.generation: Final[int] = sealed

    def check(self) -> None:
        """Raises NotCurrent unless the generation that it was made under is in force."""
        found = _made.get(self)
        if found is None:
            raise NotCurrent("this was not made by `carry`")
        newest = found.newest
        if newest.suspended:
            raise NotCurrent(newest.suspended)
        if newest.generation != found.generation or self.generation != found.generation:
            raise NotCurrent(f"generation {found.generation} was followed by {newest.generation}")

    def __repr__(self) -> str:
        return f"<Carried {self.generation}>"


_made: WeakKeyDictionary[Carried, Resolver] = WeakKeyDictionary()


def carry(resolver: Resolver) -> Carried:
    """The generation in force now. Raises NotCurrent where the policy is suspended."""
    newest = resolver.newest
    if newest.suspended:
        raise NotCurrent(newest.suspended)
    made: Carried = object.__new__(Carried)
    put(made, "generation", newest.generation)
    _made[made] = newest
    return made


def checked(given: object, resolver: Resolver) -> Carried:
    """What a task was given, if the resolver's policy is in force as it was when the work began. Raises NotCurrent."""
    if type(given) is not Carried:
        raise NotCurrent("no generation was handed on with this work")
    given.check()
    if _made[given].exclusive is not resolver.exclusive:
        raise NotCurrent("the generation is another policy's")
    return given
