"""Limits (SPEC 8): what is spent in the pots that a call counts in, and whether there is room.

In: a plan, judged arguments, the execution. Out: the deny of an exhausted limit, or what the call would spend.
"""

from __future__ import annotations

from zcpolicy.combine import Verdict
from zcpolicy.exact import added, number_of, number_text
from zcpolicy.pots import Unpayable, amount_of, pot_names
from zcpolicy.program import names_in
from zcpolicy.stack import RuleRef
from zcpolicy.windows import NoTime, calendar, starts_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decimal import Decimal
    from typing import Any, Final

    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import Session, ToolName
    from zcpolicy.ledgers.memory import Charge, Spent
    from zcpolicy.plan import Plan
    from zcpolicy.shapes import Limit
    from zcpolicy.stack import BodyRef, Level, Stack

ONE_EACH: Final = ("calls", "concurrent calls")
"""The units of which every call takes one."""


class Counting:
    """One limit as a stack sees it. `above`: how many executions above the acting one it stands."""

    __slots__ = ("above", "amount", "argument", "each", "key", "level", "limit", "rule", "tools", "unit")

    def __init__(self, stack: Stack, above: int, level: Level, body: BodyRef, index: int, limit: Limit) -> None:
        self.above = above
        self.level = level
        self.limit = limit
        self.rule = RuleRef(body, "limits", index)
        self.unit = limit["unit"]
        self.amount = number_of(limit["amount"])
        self.argument = tuple(limit.get("argument", ()))
        self.each = tuple(limit.get("each", ()))
        self.tools: frozenset[ToolName] | None = names_in(stack.program, limit["tools"]) if "tools" in limit else None
        bare: Any = {name: part for name, part in limit.items() if name not in ("amount", "tools")}
        self.key = (repr(sorted(bare.items())), level.agent, self.tools)

    @property
    def roomy(self) -> bool:
        """Whether any one call fits, while nothing was ever charged."""
        fits = self.amount >= 1 if self.unit in ONE_EACH else self.unit != "sum"
        return fits and not self.by_value()

    def by_value(self) -> tuple[str, ...]:
        """The path below args of `for each args.x`, else nothing."""
        return self.each[1:] if self.each[:1] == ("args",) else ()


class Pot:
    """One pot, as one call sees it. `value`: which one, of a limit that keeps one per value."""

    __slots__ = ("counting", "need", "session", "spent", "value")

    def __init__(self, counting: Counting, session: Session, value: str | None, need: int | Decimal) -> None:
        self.counting = counting
        self.session = session
        self.value = value
        self.need = need
        self.spent: Spent | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What makes it the same pot; its amount does not: an edited limit applies to what is spent."""
        session = self.session
        return (*self.counting.key, session.client, session.id, session.turn, self.value)

    def counts(self, charge: Charge) -> bool:
        """Whether a charge of the unit was taken from this pot."""
        one = self.counting
        return (
            charge.currency == one.limit.get("currency", "")
            and charge.argument == one.argument
            and (one.tools is None or charge.tool in one.tools)
            and self._in_window(charge)
            and self._of_owner(charge)
            and self._of_each(charge)
        )

    def _in_window(self, charge: Charge) -> bool:
        kind = self.counting.limit["window"]["kind"]
        if kind == "turn":
            return (self.session.id, self.session.turn) in charge.turns
        return kind != "session" or self.session.id in charge.sessions

    def _of_owner(self, charge: Charge) -> bool:
        kind, _, name = self.counting.limit["pot"].partition(":")
        if kind == "agent":
            return name in charge.chains
        if kind == "skill":
            return name in charge.skills
        return kind == "ceiling" or self.session.id in charge.sessions

    def _of_each(self, charge: Charge) -> bool:
        each = self.counting.each
        if not each:
            return True
        if each[0] == "client":
            return self.session.client in charge.clients
        if each[0] == "session":
            return self.session.id in charge.sessions
        if each[0] == "agent":
            return self.counting.level.agent in charge.agents
        return self.value in charge.values.get(each[1:], ())


def exhausted(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution) -> Verdict | None:
    """The deny, if a limit has no room for this call."""
    if not run.session.ledger:
        return Verdict("deny", "ledger-unavailable", tuple(counting.rule for counting in plan.limits))
    try:
        now = run.resolver.now(run.session)
        pots = pots_of(plan, arguments, run, now)
    except NoTime:
        return Verdict("deny", "ledger-unavailable", tuple(counting.rule for counting in plan.limits))
    except Unpayable as error:
        return Verdict("deny", "budget", (error.args[0],), note=error.args[1])
    over = [pot for pot in pots if pot.spent and added(pot.spent.total, pot.need) > pot.counting.amount]
    if not over:
        return None
    waits = [_retry_after(pot, now) for pot in over]
    retry = None if None in waits else max(wait for wait in waits if wait is not None)
    return Verdict(
        "deny", "budget", tuple(pot.counting.rule for pot in over), note="a limit is exhausted", retry_after=retry
    )


def pots_of(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution, now: float) -> list[Pot]:
    """The pots that a call counts in, with what is spent in each. Raises Unpayable."""
    ledger = run.resolver.ledger
    line = [run, *run.above()]
    pots: list[Pot] = []
    for counting in plan.limits:
        session = line[min(counting.above, len(line) - 1)].session
        need = _need(counting, arguments)
        path = counting.by_value()
        values: list[str] | list[None] = sorted(pot_names(path, arguments, counting.rule)) if path else [None]
        for value in values:
            pot = Pot(counting, session, value, need)
            pot.spent = ledger.spent(pot.key, counting.unit, pot.counts, starts_after(counting.limit["window"], now))
            pots.append(pot)
    return pots


def _need(counting: Counting, arguments: dict[str, Any]) -> int | Decimal:
    if counting.unit in ONE_EACH:
        return 1
    return amount_of(counting.argument, arguments, counting.rule) if counting.unit == "sum" else 0


def _retry_after(pot: Pot, now: float) -> float | None:
    limit, window = pot.counting.amount, pot.counting.limit["window"]
    if pot.need > limit or pot.spent is None:
        return None
    if window["kind"] == "calendar":
        return calendar(window, now)[1] - now
    if window["kind"] != "rolling":
        return None
    left = added(pot.spent.total, pot.need)
    for charge in pot.spent.charges:
        left = added(left, -charge.amount)
        if left <= limit:
            return max(0.0, charge.at + float(window.get("seconds", "0")) - now)
    return None


def charges_json(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution) -> list[dict[str, Any]]:
    """What the call would spend of each pot, and what is spent there already."""
    try:
        pots = pots_of(plan, arguments, run, run.resolver.now(run.session))
    except (NoTime, Unpayable):
        return []
    return [
        {
            "limit": pot.counting.rule.to_json()["text"],
            "unit": pot.counting.unit,
            "amount": number_text(pot.need),
            "spent": number_text(pot.spent.total if pot.spent else 0),
            "of": pot.counting.limit["amount"],
            "pot": pot.counting.limit["pot"],
            "value": None if pot.value is None else pot.value[1:],
        }
        for pot in pots
    ]
