"""Who a call is for, and what a person may be shown of where it came from.

In: a running call, or an execution that `resolve` made. Out: `Caller`, on which nothing stands: handles alone read from the
private record whose state it opens. In: text of a transport. Out: `Shown`, from which no key can be made by mistake.
"""

from collections.abc import Callable
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Never
from weakref import ref

from zcpolicy.authority import SealError, genuine
from zcpolicy.sealed import Sealed, final, put
from zcpolicy.texts import escaped

if TYPE_CHECKING:
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import ToolName

MAX_SHOWN: Final = 200
"""Characters of a transport's text that a person is shown."""
_BRACKETS: Final = {ord("‹"): "<", ord("›"): ">"}


@final
class Caller(Sealed):  # noqa: PLW1641 - no hash: a table by callers would be a tool's own identity
    """Who a call is for. Made by `ToolContext.caller`, and worth nothing once that call is over; or by `caller_of`.

    It is given to `handle.scoped`, and to nothing else: it has no fields, no hash, and equals itself only.
    """

    __slots__ = ("__weakref__",)
    _maker = "`ToolContext.caller`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None: ...

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return "<Caller>"


class Who(NamedTuple):
    """Whose a piece of state is, and which surface it came by: ids of the daemon's. For handles and for audit."""

    client: str
    agent: str
    session: str
    channel: str

    def to_json(self) -> dict[str, str]:
        """For records."""
        return self._asdict()


_made: dict[int, tuple[ref[Caller], Callable[[], "ResolvedAgentExecution"]]] = {}
"""What every caller stands for. Nothing of it stands on the caller."""


def caller_for(acting: Callable[[], "ResolvedAgentExecution"]) -> Caller:
    """For the loop alone. `acting` gives the execution of the call as it is now, and raises PermitError once it is over."""
    made: Caller = object.__new__(Caller)
    key, forget = id(made), _made.pop  # bound: when the interpreter ends, the module's names are gone first
    _made[key] = (ref(made, lambda _gone: forget(key, None)), acting)
    return made


def caller_of(run: "ResolvedAgentExecution") -> Caller:
    """For hosts, which act for an execution outside of its calls. Raises SealError for what `resolve` did not make."""
    genuine(run)

    def acting() -> "ResolvedAgentExecution":
        genuine(run)
        return run.renewed()

    return caller_for(acting)


def whose(caller: Caller) -> Who:
    """Whose state a caller opens, now. For handles alone.

    Raises SealError for anything that no running call was given (an `Identity` is a record that anybody can write), and
    PermitError once the call is over.
    """
    run = _acting(caller)
    return Who(run.session.client, run.agent, run.session.id, run.surface)


def shown_to(caller: Caller) -> frozenset["ToolName"]:
    """The tools that a caller may see now, and everybody above it. For handles alone. Raises as `whose`."""
    run = _acting(caller)
    found = frozenset(run.tools())
    for one in run.above():
        found &= frozenset(one.tools())
    return found


def _acting(caller: Caller) -> "ResolvedAgentExecution":
    entry = _made.get(id(caller))
    if entry is None or entry[0]() is not caller:
        raise SealError(f"{type(caller).__name__[:60]} is no caller: take `context.caller` while the call runs")
    return entry[1]()


@final
class Shown(Sealed):  # noqa: PLW1641 - no hash: it is for people, and no key
    """Text of a transport (a sender, a header, an address) for people to see. Made by `shown`.

    `str` gives it escaped, cut, and marked by something that differs from one to the next: a key that is made of it finds
    nothing again. It is no text, has no hash, equals itself only, and no JSON is made of it.
    """

    __slots__ = ("_text",)
    _maker = "`shown`"

    if TYPE_CHECKING:

        def __init__(self, sealed: Never, /) -> None:
            self._text: Final[str] = sealed

    def __eq__(self, other: object) -> bool:
        return self is other

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "<Shown>"


def shown(text: str) -> Shown:
    """For hosts: what a transport said, so that a tool can show it. Raises TypeError for what is no text."""
    given: Any = text
    if not isinstance(given, str):
        raise TypeError("only text can be shown")
    cut = given if len(given) <= MAX_SHOWN else f"{given[: MAX_SHOWN - 1]}…"
    made: Shown = object.__new__(Shown)
    put(made, "_text", f"‹{escaped(cut).translate(_BRACKETS)}›{token_hex(2)}")
    return made
