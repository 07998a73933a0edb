"""Limits: what was charged, and whether one more call fits. SPEC 8.

In: one limit, the call that would be charged, all charges so far. Out: yes or no.
Units that only a running host can count (tokens, money, time, iterations, delegations) never refuse here, but for a
limit of no time at all.
"""

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from policy_lang import ast
from tests.reference.arguments import Found, Judged, is_number, look
from tests.reference.values import Plain, ToolName


@dataclass(frozen=True)
class Charge:
    """A call that was dispatched: the bodies whose limits it counts under, in which session, by whom, when."""

    call: Judged
    pots: frozenset[str]
    session: int
    agent: str
    at: float


def exhausted(limit: ast.Limit, wanted: Charge, covers: Callable[[ToolName], bool], ledger: list[Charge]) -> bool:
    """Whether the limit of the body `wanted.pots` has no room for one more call."""
    if isinstance(limit.amount, ast.Duration):
        return limit.amount.seconds == 0
    if limit.unit not in ("calls", "concurrent calls", "sum"):
        return False
    amount = amount_of(limit, wanted.call)
    keys = list(_keys(limit, wanted))
    if amount is None or None in keys:
        return True
    before = [] if limit.unit == "concurrent calls" else [
        charge
        for charge in ledger
        if wanted.pots <= charge.pots and covers(charge.call.tool.name) and _inside(limit.window, charge, wanted)
    ]  # fmt: skip
    assert isinstance(limit.amount, ast.Number)
    for key in keys:
        spent = sum(
            (amount_of(limit, charge.call) or Decimal(0) for charge in before if key in _keys(limit, charge)),
            Decimal(0),
        )
        if spent + amount > limit.amount.value:
            return True
    return False


def amount_of(limit: ast.Limit, call: Judged) -> Decimal | None:
    """What a call counts; None: it cannot be counted, and is denied."""
    if limit.unit != "sum":
        return Decimal(1)
    assert limit.argument is not None
    found = look(call, limit.argument.path)
    if not isinstance(found, Found) or not is_number(found.value):
        return None
    value = Decimal(str(found.value))
    return value if value >= 0 else None


def _keys(limit: ast.Limit, charge: Charge) -> Iterator[str | None]:
    """The pots that a call counts in; None among them: the value is missing."""
    if limit.each is None or limit.each == "client":
        yield "one"
    elif limit.each == "session":
        yield str(charge.session)
    elif limit.each == "agent":
        yield charge.agent
    else:
        assert isinstance(limit.each, ast.Operand)
        found = look(charge.call, limit.each.path)
        if not isinstance(found, Found):
            yield None
        elif isinstance(found.value, list):
            yield from {None if item is None else folded(item) for item in found.value}
        else:
            yield folded(found.value)


def folded(value: Plain) -> str:
    """The key of a value: text in NFC with letter case folded, numbers by their value."""
    if isinstance(value, str):
        return "s" + unicodedata.normalize("NFC", unicodedata.normalize("NFC", value).casefold())
    if is_number(value):
        return "n" + format(Decimal(str(value)).normalize(), "f")
    if isinstance(value, list):
        return "l" + repr([folded(item) for item in value])
    if isinstance(value, dict):
        return "o" + repr(sorted((folded(name), folded(item)) for name, item in value.items()))
    return "b" + str(value)


def _inside(window: ast.Window | None, charge: Charge, wanted: Charge) -> bool:
    """Whether a charge still counts. What lies in the future counts: a clock set back grants nothing twice."""
    if window is None or window.kind in ("turn", "session"):
        return charge.session == wanted.session
    if window.kind == "rolling":
        return wanted.at - charge.at < window.seconds
    assert window.zone is not None
    zone = ZoneInfo(window.zone.value)
    then, now = (datetime.fromtimestamp(at, UTC).astimezone(zone) for at in (charge.at, wanted.at))
    if window.calendar == "day":
        return then.date() >= now.date()
    return (then.year, then.month) >= (now.year, now.month)
