"""What a ledger keeps: reservations, how they change, and the tags by which a pot finds those that may count in it.

In: spenders, charges, times. Out: `Reservation`s, and new ones after each change. Values only; the stores are elsewhere.
"""

from __future__ import annotations

from zcpolicy.exact import added, number_text
from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.records import NamedTuple
from zcpolicy.windows import LAST_SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

    from zcpolicy.ledgers.contract import Charge, Number, Pot, Spender, State, Yes

TICKS: Final = 1_000_000
"""Changes are numbered in microseconds, and always upwards: what was charged after a time has a later number."""
MAX_AMOUNT_DIGITS: Final = 500
"""Digits of one amount that is charged."""
TOO_MUCH: Final[int] = 10**MAX_AMOUNT_DIGITS
"""The first whole number that is longer."""


class Reservation(NamedTuple):
    """`seq`: the number of the change that made it. `change`: that of its latest. `at`, `until`: seconds since the
    epoch, when it was made and when its lease ends.
    """

    seq: int
    change: int
    key: str
    at: float
    until: float
    state: State
    spender: Spender
    charges: tuple[Charge, ...]


# --- time ------------------------------------------------------------------------------------------------------------


def moment(clock: float, latest: float) -> float:
    """The time to act at: the clock, and never before a time that was acted on. Raises LedgerUnavailable."""
    if not 0 <= clock < LAST_SECOND:
        raise LedgerUnavailable("the clock tells no time")
    return float(max(clock, latest))


def next_change(last: int, now: float) -> int:
    """The number of a change that is made now."""
    return max(last + 1, int(now * TICKS))


def change_before(at: float) -> int:
    """A number below those of all that was made later than a time."""
    return int(at * TICKS) - 1


# --- changes ---------------------------------------------------------------------------------------------------------


def sound(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    """The charges. Raises ValueError if an amount is negative, not finite, or too long to be kept."""
    found = tuple(charges)
    if not all(_sound(charge.amount) for charge in found):
        raise ValueError("an amount is negative, not finite, or out of bounds")
    return found


def _sound(amount: Number) -> bool:
    if isinstance(amount, int):
        return 0 <= amount < TOO_MUCH
    return amount.is_finite() and amount >= 0 and len(number_text(amount)) <= MAX_AMOUNT_DIGITS


def stands(one: Reservation, now: float) -> bool:
    """Whether its key is taken."""
    return one.state in ("dispatched", "settled") or (one.state == "reserved" and now < one.until)


def dispatched(one: Reservation, now: float) -> Reservation | None:
    """It after the call was sent; None if that is not to be."""
    return one._replace(state="dispatched") if one.state == "reserved" and now < one.until else None


def settled(one: Reservation, actual: Sequence[Charge]) -> Reservation | None:
    """It with what was really spent; None if it was settled before, or given back."""
    if one.state in ("settled", "released"):
        return None
    named = {(charge.unit, charge.currency, charge.argument) for charge in actual}
    kept = [charge for charge in one.charges if (charge.unit, charge.currency, charge.argument) not in named]
    return one._replace(state="settled", charges=(*kept, *actual))


def released(one: Reservation) -> Reservation | None:
    """It given back; None if it cannot be."""
    return one._replace(state="released") if one.state == "reserved" else None


def renewed(one: Reservation, now: float, lease: float) -> Reservation | None:
    """It with a lease from now; None if it has none. A lease never gets shorter."""
    if one.state == "dispatched" or (one.state == "reserved" and now < one.until):
        return one._replace(until=max(one.until, now + lease))
    return None


def raises(old: Reservation, new: Reservation) -> bool:
    """Whether a change may make something count more than it did for those who looked before."""
    if new.state == "settled":
        return new.charges != old.charges or old.state == "reserved"  # a reserved one may have been over
    return new.until > old.until and old.state == "dispatched"


def closed(one: Reservation, now: float) -> bool:
    """Whether nobody holds it any more."""
    return one.state in ("settled", "released") or one.until <= now


def condensed(every: Iterable[Reservation], now: float, merge: float, drop: float) -> list[Reservation]:
    """What is left if those that nobody holds and that are older than `merge` become one per spender, and those older
    than `drop` none; by last change.
    """
    kept: list[Reservation] = []
    alike: dict[object, list[Reservation]] = {}
    for one in every:
        if one.at >= merge or not closed(one, now):
            kept.append(one)
        elif one.at >= drop and one.state in ("dispatched", "settled"):
            spender = one.spender
            alike.setdefault((*spender[:-1], frozenset(spender.values.items())), []).append(one)
    kept += map(_merged, alike.values())
    return sorted(kept, key=lambda one: one.change)


def _merged(those: list[Reservation]) -> Reservation:
    total: dict[tuple[str, str, tuple[str, ...]], Charge] = {}
    for one in those:
        for charge in one.charges:
            if charge.unit != "concurrent calls":
                kind = (charge.unit, charge.currency, charge.argument)
                before = total[kind].amount if kind in total else 0
                total[kind] = charge._replace(amount=added(before, charge.amount))
    latest = max(those, key=lambda one: one.at)
    return latest._replace(state="settled", charges=tuple(total.values()))


def concerns(spender: Spender, client: str | None, session: str | None, agent: str | None) -> bool:
    """Whether its line names all of those that are given."""
    return (
        (client is None or any(who.client == client for who in spender.line))
        and (session is None or any(who.session == session for who in spender.line))
        and (agent is None or any(who.agent == agent for who in spender.line))
    )


# --- tags ------------------------------------------------------------------------------------------------------------


ALL: Final = "*"
"""The tag of every reservation."""


def tags_of(spender: Spender) -> tuple[str, ...]:
    """The tags of what it spends, each once."""
    found = {ALL: None}
    for who in spender.line:
        found[session_tag(who.session)] = None
        found[client_tag(who.client)] = None
        found[agent_tag(who.agent)] = None
    found.update((agent_tag(name), None) for name in spender.chains)
    found.update((f"skill {name}", None) for name in spender.skills)
    found.update((_value_tag(path, value), None) for path, values in spender.values.items() for value in values)
    return tuple(found)


def tag_of(pot: Pot) -> str:
    """The rarest tag that all that counts in a pot has."""
    each = pot.each[0] if pot.each else ""
    owner, _, name = pot.owner.partition(":")
    if each == "args":
        return _value_tag(pot.each[1:], pot.value or "")
    if pot.window["kind"] in ("turn", "session") or each == "session" or owner not in ("ceiling", "agent", "skill"):
        return session_tag(pot.who.session)
    if each == "client":
        return client_tag(pot.who.client)
    if owner == "skill":
        return f"skill {name}"
    if owner == "agent":
        return agent_tag(name)
    return agent_tag(pot.who.agent) if each == "agent" else ALL


def tag_of_line(client: str | None, session: str | None, agent: str | None) -> str:
    """The rarest tag of what `concerns` those that are given."""
    if session is not None:
        return session_tag(session)
    if client is not None:
        return client_tag(client)
    return ALL if agent is None else agent_tag(agent)


def session_tag(session: str) -> str:
    """The tag of what was spent in a session."""
    return f"session {session}"


def client_tag(client: str) -> str:
    """The tag of what was spent for a client."""
    return f"client {client}"


def agent_tag(agent: str) -> str:
    """The tag of what an agent, or one that narrows it, spent."""
    return f"agent {agent}"


def _value_tag(path: tuple[str, ...], value: str) -> str:
    return f"value {path!r} {value}"


# --- yeses -----------------------------------------------------------------------------------------------------------


def rank(yes: Yes, taken: str | None, use: str, now: float) -> int | None:
    """How well a yes suits a call: 0 its own that it took before, 1 a lasting one, 2 one for this call, 3 for any call.

    None: not at all. `taken`: by which use it was taken.
    """
    if yes.expires is not None and yes.expires <= now:
        return None
    if yes.once and taken is not None:
        return 0 if taken == use else None
    if yes.use not in ("", use):
        return None
    return 1 if not yes.once else 2 if yes.use else 3
