"""What a resolver needs of a ledger (SPEC 8 and 9): charges, reservations, and yeses, shared by all that use one store.

In: who spends (`Spender`), how much (`Charge`), in which pots (`Pot`). Out: what is spent, a reservation, or which pots
have no room. Limits are computed from charges, never stored: an edited limit applies to what is spent.

A reservation goes `reserved` → `dispatched` → `settled`, or `reserved` → `released`. It counts unless it was released,
or is only `reserved` and its lease is over; a `dispatched` one whose lease is over counts at its reserved amounts for
ever. A `concurrent calls` charge counts only while the reservation is neither settled nor released and its lease runs.
"""

from __future__ import annotations

from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from decimal import Decimal
    from typing import Literal, Never, Protocol

    from zcpolicy.facts import ToolName
    from zcpolicy.shapes import Window

    State = Literal["reserved", "dispatched", "settled", "released"]
    Number = int | Decimal
else:
    Protocol = object


LEASE_SECONDS = 60.0
"""Seconds for which a reservation stands without a word from its holder."""


class LedgerUnavailable(Exception):
    """The store cannot be reached, or does not answer as it should. The message says which, and quotes no secret."""


class Who(NamedTuple):
    """One execution as a spender."""

    client: str
    session: str
    turn: str
    agent: str


class Spender(NamedTuple):
    """Who spends. `line`: the acting execution first, then those above it. `tool`: None for what no tool spends (an
    iteration, the tokens of a model). `chains`: the agents of the line and all that they narrow. `skills`: active in
    them. `values`: for each argument that some limit keeps pots by, the pots that this call counts in.
    """

    tool: ToolName | None
    line: tuple[Who, ...]
    chains: frozenset[str]
    skills: frozenset[str]
    values: Mapping[tuple[str, ...], frozenset[str]]


class Charge(NamedTuple):
    """One amount of one unit. `unit`: as of a limit. `argument`: the path below args, of a `sum`."""

    unit: str
    amount: Number
    currency: str = ""
    argument: tuple[str, ...] = ()


class Pot(NamedTuple):
    """One pot of one limit, as one call sees it, and how much the call needs of it.

    A charge counts in it if unit, currency and argument are equal, its tool is one of `tools` (None: any, and none),
    and it fits `window`, `owner` and `each`:
    `window`: `turn`: some (client, session, turn) of the charge's line is that of `who`; `session`: some (client,
    session) is; `rolling` and `calendar`: it was charged later than the window's start. `owner`: `ceiling`: any;
    `agent:NAME`: NAME in its chains; `skill:NAME`: NAME in its skills; anything else (the host's narrowing): as of a
    `session`.
    `each`: `("client",)`, `("agent",)`: some one of its line is that of `who`; `("session",)`: as of the window;
    `("args", …path)`: its pots of that path hold `value`.
    `limit`, `need`: there is room while spent + need ≤ limit. `open_end`: what will be spent is not known beforehand
    (time): there is room while spent + need < limit.
    """

    unit: str
    currency: str
    argument: tuple[str, ...]
    tools: frozenset[ToolName] | None
    owner: str
    window: Window
    each: tuple[str, ...]
    who: Who
    value: str | None
    limit: Number
    need: Number
    open_end: bool = False


class Spent(NamedTuple):
    """What is spent in a pot now. `room`: whether the need fits. `retry_after`: seconds until it may fit, if it ever
    does by the clock alone; 0 if there is room.
    """

    total: Number
    room: bool
    retry_after: float | None


class Reserved(NamedTuple):
    """A reservation. `fresh`: made by this very call; else it stood already under this key, and nothing was added."""

    key: str
    state: State
    at: float
    fresh: bool


class Exhausted(NamedTuple):
    """No reservation: `spent`, parallel to the pots that were asked about, says which had no room."""

    spent: tuple[Spent, ...]

    def __bool__(self) -> Never:
        raise TypeError("Exhausted is neither true nor false: ask with `isinstance`")


class Yes(NamedTuple):
    """A person's yes. `binding`: digest of all that it is bound to. `once`: for one call, else for each until it expires.

    `use`: the key of the one call that may take it, or "" for whichever comes first. `expires`: seconds since the
    epoch, None: with its session. `by`: who said it.
    """

    binding: str
    once: bool
    use: str
    expires: float | None
    by: str


class Entry(NamedTuple):
    """One charge on record, for audit."""

    key: str
    at: float
    state: State
    spender: Spender
    charge: Charge


class Ledger(Protocol):
    """Charges and yeses that every process which opens the same store sees alike. Safe to use from many threads.

    Every method but `charged` may raise LedgerUnavailable; then nothing was changed, or the change stands whole.
    `clock`: what the session's clock says, seconds since the epoch; a ledger may have a better one.
    `blocking`: whether its methods wait for a disk or a network, so that an async host calls them in a thread.
    `files`: absolute paths of the files that hold it, which a resolver protects from tools.
    """

    blocking: bool
    files: tuple[str, ...]

    @property
    def charged(self) -> object:
        """Falsy only where it is certain, and free to tell, that nothing was ever charged."""
        ...

    def check(self) -> None:
        """For a host's start: the store can be reached, and is a ledger. Raises LedgerUnavailable, which says what is wrong."""

    def now(self, clock: float) -> float:
        """The time to act at: never before a time that was already acted on, in any process."""
        ...

    def look(self, pots: Sequence[Pot], clock: float) -> tuple[Spent, ...]:
        """What is spent in each pot."""
        ...

    def reserve(
        self,
        key: str,
        spender: Spender,
        charges: Sequence[Charge],
        pots: Sequence[Pot],
        clock: float,
        *,
        lease: float = LEASE_SECONDS,
    ) -> Reserved | Exhausted:
        """All charges at once if every pot has room, else none. A key that stands already is not charged again, whatever
        its state, unless it was released or its lease ended before it was dispatched: then it is made anew.
        """
        ...

    def dispatch(self, key: str, clock: float) -> bool:
        """From now on it counts, whatever comes. False: its lease is over, or it was released, dispatched or settled
        before: the call must not run. So one reservation starts one call, whoever else holds its key.
        """
        ...

    def settle(self, key: str, actual: Sequence[Charge], clock: float) -> None:
        """What was really spent replaces what was reserved, unit by unit; units not named stand as reserved. Once.

        It counts from when it was reserved, also if it was never dispatched or its lease was over.
        """

    def release(self, key: str) -> None:
        """Gives back what was never dispatched; nothing else."""

    def renew(self, key: str, clock: float, *, lease: float = LEASE_SECONDS) -> None:
        """The holder lives: its lease runs from now. One that was over before it was dispatched stays over."""

    def entries(
        self, *, client: str | None = None, session: str | None = None, agent: str | None = None
    ) -> Iterable[Entry]:
        """What is on record, oldest first, for audit; whose line names them."""
        ...

    def approve(self, yes: Yes) -> None:
        """Puts a yes on record."""

    def consume(self, binding: str, use: str, clock: float) -> Yes | None:
        """A yes that holds for this call now; one that is for one call is taken by it, atomically: nobody else gets it.

        The same `use` gets again what it took: a turn that is resumed does not ask twice.
        """
        ...

    def revoke(self, binding: str | None = None) -> None:
        """Takes back the yeses of a binding, or all."""

    def prune(self, before: float) -> None:
        """Forgets what was charged, and the yeses that were said, earlier than this; nothing whose lease still runs.

        Charges count no more in any window that began earlier: windows of the clock lose nothing if `before` is
        earlier than the longest of them, sessions and turns only if they are over. Keys that are forgotten are new.
        """

    def close(self) -> None:
        """Lets go of files and connections. Further calls raise LedgerUnavailable."""
