"""Limits (SPEC 8): which pots a call counts in, what is spent in them, and whether there is room.

In: a plan, judged arguments, the execution. Out: the deny of an exhausted limit, or the charges of the call.
"""

from __future__ import annotations

from zcpolicy.combine import Verdict
from zcpolicy.exact import exact, is_list, is_object, number_of, number_text
from zcpolicy.operands import MISSING, dig
from zcpolicy.program import head_of, tools_in
from zcpolicy.stack import RuleRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal
    from typing import Any

    from zcpolicy.facts import Session, ToolName
    from zcpolicy.ledgers.memory import Charge
    from zcpolicy.plan import Plan
    from zcpolicy.resolver import ResolvedAgentExecution
    from zcpolicy.shapes import Limit
    from zcpolicy.stack import BodyRef, Level


class Unpayable(Exception):
    """A call that a limit cannot count: its argument is missing, negative or no number."""


class Pot:
    """One pot of one limit, as one call sees it. `value`: which pot, of a limit that keeps one per value."""

    __slots__ = ("level", "limit", "need", "rule", "session", "spent", "value")

    def __init__(self, limit: Limit, level: Level, session: Session, rule: RuleRef, value: str | None) -> None:
        self.limit = limit
        self.level = level
        self.session = session
        self.rule = rule
        self.value = value
        self.need: int | Decimal = 0
        self.spent: list[Charge] = []


def exhausted(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution) -> Verdict | None:
    """The deny, if a limit has no room for this call."""
    if not run.session.ledger:
        return Verdict("deny", "ledger-unavailable", tuple(_rule(body, index) for _, body, index, _ in plan.limits))
    now = run.resolver.now(run.session)
    over: list[tuple[Pot, float | None]] = []
    try:
        for pot in pots_of(plan, arguments, run, now):
            total = sum(charge.amount for charge in pot.spent)
            if total + pot.need > number_of(pot.limit["amount"]):
                over.append((pot, _retry_after(pot, now)))
    except Unpayable as error:
        return Verdict("deny", "budget", (error.args[0],), note=error.args[1])
    if not over:
        return None
    waits = [wait for _, wait in over]
    retry = None if None in waits else max(wait for wait in waits if wait is not None)
    return Verdict("deny", "budget", tuple(pot.rule for pot, _ in over), note="a limit is exhausted", retry_after=retry)


def pots_of(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution, now: float) -> list[Pot]:
    """The pots that a call counts in, with what is spent in each. Raises Unpayable."""
    sessions = dict(zip((id(level) for level in plan.stack.counted), _sessions(run), strict=False))
    pots: list[Pot] = []
    for level, body, index, limit in plan.limits:
        rule, session = _rule(body, index), sessions.get(id(level), run.session)
        need = _need(limit, arguments, rule)
        for value in _values(limit, arguments, rule):
            pot = Pot(limit, level, session, rule, value)
            pot.need = need
            pot.spent = run.resolver.ledger.matching(limit["unit"], _counts(pot, plan, now))
            pots.append(pot)
    return pots


def _rule(body: BodyRef, index: int) -> RuleRef:
    return RuleRef(body, "limits", index)


def _sessions(run: ResolvedAgentExecution) -> list[Session]:
    found: list[Session] = []
    above: ResolvedAgentExecution | None = run
    while above is not None:
        found.append(above.session)
        above = above.parent
    return found


def _need(limit: Limit, arguments: dict[str, Any], rule: RuleRef) -> int | Decimal:
    if limit["unit"] in ("calls", "concurrent calls"):
        return 1
    return amount_of(tuple(limit.get("argument", ())), arguments, rule) if limit["unit"] == "sum" else 0


def amount_of(path: tuple[str, ...], arguments: dict[str, Any], rule: RuleRef | None) -> int | Decimal:
    """The argument that is summed. Raises Unpayable."""
    value: Any = dig(arguments, path)
    if isinstance(value, float):
        value = exact(value)
    if isinstance(value, (bool, str, list, dict)) or value is MISSING:
        raise Unpayable(rule, "the argument that a limit sums is missing or no number")
    if value < 0:
        raise Unpayable(rule, "the argument that a limit sums is negative")
    number: int | Decimal = value
    return number


def _values(limit: Limit, arguments: dict[str, Any], rule: RuleRef) -> list[str | None]:
    each = limit.get("each")
    if each is None or each[0] != "args":
        return [None]
    return [*sorted(pot_names(tuple(each[1:]), arguments, rule))]


def pot_names(path: tuple[str, ...], arguments: dict[str, Any], rule: RuleRef | None) -> frozenset[str]:
    """The pots of `for each args.x`: one per value, folded; one per distinct element of a list. Raises Unpayable."""
    value = dig(arguments, path)
    if value is MISSING:
        raise Unpayable(rule, "the argument that a limit keeps pots by is missing")
    elements = value if is_list(value) else [value]
    if None in elements:
        raise Unpayable(rule, "the argument that a limit keeps pots by is missing")
    return frozenset(map(_folded, elements))


def _folded(value: Any) -> str:
    """Equal for values that differ in letter case, Unicode form, or how a number is written."""
    if isinstance(value, str):
        from unicodedata import normalize

        return "s" + normalize("NFC", normalize("NFC", value).casefold())
    if isinstance(value, bool) or value is None:
        return f"b{value}"
    if is_list(value):
        return f"l[{','.join(map(repr, map(_folded, value)))}]"
    if is_object(value):
        pairs = sorted((_folded(name), _folded(one)) for name, one in value.items())
        return f"o{pairs!r}"
    return "n" + number_text(exact(value) if isinstance(value, float) else value)


# --- what counts -------------------------------------------------------------------------------------------------


def _counts(pot: Pot, plan: Plan, now: float) -> Callable[[Charge], bool]:
    limit = pot.limit
    tools = _names(plan, limit["tools"]) if "tools" in limit else None
    starts = _window_start(limit, now)
    currency, argument = limit.get("currency", ""), tuple(limit.get("argument", ()))

    def counts(charge: Charge) -> bool:
        return (
            charge.currency == currency
            and charge.argument == argument
            and (tools is None or charge.tool in tools)
            and (starts is None or charge.at > starts)
            and _in_window(pot, charge)
            and _of_owner(pot, charge)
            and _of_value(pot, charge)
        )

    return counts


def _names(plan: Plan, ids: str) -> frozenset[ToolName]:
    tools = head_of(plan.stack.program)["tools"]
    found = (tools[index] for index in tools_in(plan.stack.program, ids))
    return frozenset(tool["name"] if tool["server"] is None else (tool["server"], tool["name"]) for tool in found)


def _in_window(pot: Pot, charge: Charge) -> bool:
    kind = pot.limit["window"]["kind"]
    if kind == "turn":
        return (pot.session.id, pot.session.turn) in charge.turns
    return kind != "session" or pot.session.id in charge.sessions


def _of_owner(pot: Pot, charge: Charge) -> bool:
    kind, _, name = pot.limit["pot"].partition(":")
    if kind == "agent":
        return name in charge.chains
    if kind == "skill":
        return name in charge.skills
    return kind == "ceiling" or pot.session.id in charge.sessions


def _of_value(pot: Pot, charge: Charge) -> bool:
    each = pot.limit.get("each")
    if each is None:
        return True
    if each[0] == "client":
        return charge.client == pot.session.client
    if each[0] == "session":
        return pot.session.id in charge.sessions
    if each[0] == "agent":
        return pot.level.agent in charge.agents
    return pot.value in charge.values.get(tuple(each[1:]), ())


def _window_start(limit: Limit, now: float) -> float | None:
    """The time from which on charges count; None for windows that are not of the clock."""
    window = limit["window"]
    if window["kind"] == "rolling":
        return now - float(window.get("seconds", "0"))
    if window["kind"] == "calendar":
        return _calendar(limit, now)[0] - 1e-6  # a charge at midnight is of the new day
    return None


def _calendar(limit: Limit, now: float) -> tuple[float, float]:
    """Start and end of the day or month that it is, in the limit's zone."""
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    window = limit["window"]
    try:
        zone: Any = ZoneInfo(window.get("zone", "UTC"))
    except (ValueError, OSError, KeyError):
        zone = UTC  # the checker knows the zone; a machine without the table still has days
    day = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    if window.get("calendar") == "month":
        start = day.replace(day=1)
        after = (start + timedelta(days=32)).replace(day=1)
    else:
        start, after = day, day + timedelta(days=1)
    return start.timestamp(), after.timestamp()


def _retry_after(pot: Pot, now: float) -> float | None:
    limit, window = number_of(pot.limit["amount"]), pot.limit["window"]
    if pot.need > limit:
        return None
    if window["kind"] == "calendar":
        return _calendar(pot.limit, now)[1] - now
    if window["kind"] != "rolling":
        return None
    left = sum(charge.amount for charge in pot.spent) + pot.need
    for charge in sorted(pot.spent, key=lambda one: one.at):
        left -= charge.amount
        if left <= limit:
            return max(0.0, charge.at + float(window.get("seconds", "0")) - now)
    return None


def charges_json(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution) -> list[dict[str, Any]]:
    """What the call would spend of each pot, and what is spent there already."""
    try:
        pots = pots_of(plan, arguments, run, run.resolver.now(run.session))
    except Unpayable:
        return []
    return [
        {
            "limit": pot.rule.to_json()["text"],
            "unit": pot.limit["unit"],
            "amount": number_text(pot.need),
            "spent": number_text(sum(charge.amount for charge in pot.spent)),
            "of": pot.limit["amount"],
            "pot": pot.limit["pot"],
            "value": None if pot.value is None else pot.value[1:],
        }
        for pot in pots
    ]
