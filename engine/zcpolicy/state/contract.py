"""What a piece of shared state promises, as data, and the one kind of object through which tools reach it.

In: a `Contract`, checked where a handle type is defined. Out: `Handle`, its `Scope`s, and what an operator may list of it.

A host makes a handle once. A tool is given a lent clone at construction, and in a call `handle.scoped(context.caller)`: a view
of what is this client's, agent's or session's. What is the owner's (filling it, clearing it, listing it) a lent one refuses.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Never,
    Self,
    TypeGuard,
    TypeVar,
    cast,
    get_args,
)

from zcpolicy.facts import ToolName
from zcpolicy.refusals import PermitError, ResolveError
from zcpolicy.sealed import Sealed, final, put
from zcpolicy.state.caller import Caller, Who, shown_to, whose
from zcpolicy.state.secret import has_secret
from zcpolicy.state.sources import Source

Owner = Literal["daemon", "host", "tool"]
Concurrency = Literal["read-write lock", "lock", "immutable"]
Isolation = Literal["client", "agent", "session", "shared"]
Reload = Literal["re-resolved", "replaced", "kept"]

View = TypeVar("View")
M = TypeVar("M", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """`holds`: what the state is, for people. `owner`: who makes and releases it. `concurrency`: what guards it.

    `isolation`: whose a view is: all of one client's; one agent's of one client; one session's; or everybody's. `reload`:
    what becomes of what was derived from `depends`: worked out again at use; a fresh handle or value comes in its place; or
    it is kept, as display state, which must not be `security` and lasts while what it depends on is unchanged.
    `namespaced`: of a shared one, that its keys stand under the daemon's ids, so that it may hold what is a client's own.
    Raises TypeError.
    """

    holds: str
    owner: Owner
    concurrency: Concurrency
    isolation: Isolation
    reload: Reload
    depends: frozenset[Source]
    security: bool = True
    namespaced: bool = False

    def __post_init__(self) -> None:
        wrong = next((said for said, sound in _rules(self) if not sound), None)
        if wrong is not None:
            raise TypeError(f"a contract that is none: {wrong}")

    def to_json(self) -> dict[str, Any]:
        """For audit."""
        return {
            "holds": self.holds, "owner": self.owner, "concurrency": self.concurrency, "isolation": self.isolation,
            "reload": self.reload, "depends": sorted(self.depends), "security": self.security, "namespaced": self.namespaced,
        }  # fmt: skip

    def admits(self, value: object) -> None:
        """Raises PermitError for a secret where it would be everybody's. Every handle asks before it keeps a value."""
        if self.isolation == "shared" and not self.namespaced and has_secret(value):
            raise PermitError("state that all clients share takes no secret: keep it in a handle that is scoped")


def _rules(given: Any) -> tuple[tuple[str, bool], ...]:
    """What is to be said where it is not so."""
    depends: object = given.depends
    closed: tuple[tuple[str, object, Any], ...] = (
        ("owner", given.owner, Owner), ("concurrency", given.concurrency, Concurrency),
        ("isolation", given.isolation, Isolation), ("reload", given.reload, Reload),
    )  # fmt: skip
    return (
        ("`holds` says what the state is", isinstance(given.holds, str) and given.holds.strip() != ""),
        *((f"`{name}` is one of {', '.join(get_args(words))}", _in(word, words)) for name, word, words in closed),
        (
            f"`depends` is a frozenset of at least one of {', '.join(get_args(Source))}",
            _is_frozen(depends) and bool(depends) and all(_in(one, Source) for one in depends),
        ),
        (
            "`security` and `namespaced` are true or false",
            type(given.security) is bool and type(given.namespaced) is bool,
        ),
        ("only state that is not `security` is kept over a reload", given.reload != "kept" or not given.security),
        (
            "only shared state is `namespaced`: the rest is scoped anyway",
            given.isolation == "shared" or not given.namespaced,
        ),
    )


def _is_frozen(value: object) -> TypeGuard[frozenset[object]]:
    return isinstance(value, frozenset)


def _in(word: object, words: Any) -> bool:
    return isinstance(word, str) and word in get_args(words)


class Held(NamedTuple):
    """One entry of a handle, for audit: what it is called, and whose it is. `who`: None where it is the host's own."""

    name: str
    who: Who | None


@final
class Scope(Sealed):
    """Whose part of a state a view shows. It asks its caller at each use: PermitError once the call is over."""

    __slots__ = ("_caller", "_isolation")
    _maker = "`Handle.scoped`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self._caller: Final[Caller] = sealed
            self._isolation: Final[Isolation] = sealed

    @property
    def who(self) -> Who:
        """Who writes: what every entry carries, so that an operator can tell whose it is."""
        return whose(self._caller)

    @property
    def key(self) -> tuple[str, ...]:
        """What the entries of this view stand under; `()` for everybody's. Raises PermitError where a client's are asked for,
        or an agent's, and the session has no client: all who have none would be one.
        """
        who = whose(self._caller)
        if not who.client and self._isolation in ("client", "agent"):
            raise PermitError("this is kept by client, and the session has none: give `Session` a `client`")
        return key_of(self._isolation, who)

    @property
    def is_over(self) -> bool:
        """Whether the call is over."""
        try:
            whose(self._caller)
        except ResolveError:
            return True
        return False

    @property
    def tools(self) -> frozenset[ToolName]:
        """The tools that the caller may see now, and everybody above it."""
        return shown_to(self._caller)


def key_of(isolation: Isolation, who: Who) -> tuple[str, ...]:
    """What entries of `who` stand under; `()` for everybody's."""
    return {
        "client": (who.client,),
        "agent": (who.client, who.agent),
        "session": (who.client, who.agent, who.session),
        "shared": (),
    }[isolation]


class Handle(Generic[View]):
    """The parent of the named handle types. Attributes are set once: what changes stands in what they hold, which clones share.

    A type below it has a `contract`, `_view(scope)`, which makes what a call works with, and `_held()`, which lists what it
    holds; without them it cannot be defined (TypeError). Methods for its owner alone are marked with `owners`.
    """

    contract: ClassVar[Contract]
    _lent: bool = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if type(getattr(cls, "contract", None)) is not Contract:
            raise TypeError(f"handle type `{cls.__name__}` has no `contract = Contract(…)`")
        for name, method in (("_view", cls._view), ("_held", cls._held)):
            if getattr(method, "__isabstractmethod__", False):
                raise TypeError(f"handle type `{cls.__name__}` has no `{name}`")

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, name):
            raise AttributeError(f"`{name}` of a handle is set once: clones would not see it change")
        put(self, name, value)

    def clone(self) -> Self:
        """Another handle on the same state."""
        return copy(self)

    def lent(self) -> Self:
        """A clone for a tool: it is scoped, and does nothing that is its owner's. One that is the tool's own stays whole."""
        made = copy(self)
        put(made, "_lent", self._lent or self.contract.owner != "tool")
        return made

    def scoped(self, caller: Caller) -> View:
        """What is this caller's of the state, for as long as the call runs. Raises SealError for what is no caller, and
        PermitError once its call is over, as every use of the view does then.
        """
        whose(caller)
        scope: Scope = object.__new__(Scope)
        put(scope, "_caller", caller)
        put(scope, "_isolation", self.contract.isolation)
        return self._view(scope)

    def held(self) -> tuple[Held, ...]:
        """What it holds, for audit: the names of entries and whose they are, no values. Raises PermitError where it is lent."""
        self._owned("held")
        return tuple(self._held())

    @abstractmethod
    def _view(self, scope: Scope) -> View: ...

    @abstractmethod
    def _held(self) -> Iterable[Held]: ...

    def _owned(self, what: str) -> None:
        if self._lent:
            raise PermitError(f"`{what}` of {type(self).__name__} is its owner's: it is lent to a tool")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def owners(method: M) -> M:
    """Marks a method of a handle as its owner's: a lent one refuses it with a PermitError."""

    @wraps(method)
    def asked(self: Handle[Any], *given: Any, **named: Any) -> Any:
        self._owned(method.__name__)
        return method(self, *given, **named)

    return cast("M", asked)
