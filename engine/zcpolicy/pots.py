"""Which pots of which limits something counts in, and how much it takes of each (SPEC 8).

In: a stack's limits, what is spent, judged arguments, who spends. Out: `Counting`s, and the ledger's `Pot`s.
"""

from __future__ import annotations

from zcpolicy.exact import added, exact, is_list, is_object, number_of, number_text
from zcpolicy.ledgers.contract import Charge, Pot, Spender, Who
from zcpolicy.ledgers.reservations import MAX_AMOUNT_DIGITS
from zcpolicy.operands import MISSING, dig
from zcpolicy.program import names_in, tools_in
from zcpolicy.stack import RuleRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from decimal import Decimal
    from typing import Any, Final

    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.facts import ToolName
    from zcpolicy.shapes import Limit
    from zcpolicy.stack import BodyRef, Stack

    Number = int | Decimal
    Amounts = Mapping[tuple[str, str], Number]


MAX_POTS_OF_CALL: Final = 1_000
"""Elements of a list that a limit keeps pots by: each pot is looked at, so that a longer list is denied."""

RUNNING: Final = ("concurrent calls", "")
CALL: Final[Amounts] = {("calls", ""): 1, RUNNING: 1, ("time", ""): 0}
"""What every call spends, by unit and currency; the seconds come when it is over."""

OF_THE_LOOP: Final = ("iterations", "delegations")
"""The units that no call spends: a call of the last iteration still runs."""


class Unpayable(Exception):
    """What a limit cannot count: an argument or a cost is missing, negative or no number. Holds the rule and why."""


class Counting:
    """One limit as a stack sees it. `above`: how many executions above the acting one it stands."""

    __slots__ = (
        "_last",
        "above",
        "amount",
        "argument",
        "currency",
        "each",
        "limit",
        "open_end",
        "owner",
        "rule",
        "tools",
        "unit",
    )

    def __init__(self, stack: Stack, above: int, body: BodyRef, index: int, limit: Limit) -> None:
        self.above = above
        self.limit = limit
        self.rule = RuleRef(body, "limits", index)
        # a host's limit stands at its run, whatever else it names: no pot that nothing counts in
        self.owner = limit["pot"] if body.kind != "narrowing" or limit["pot"] == "ceiling" else "narrowing"
        self.unit = limit["unit"]
        self.currency = limit.get("currency", "")
        self.amount = number_of(limit["amount"])
        self.argument = tuple(limit.get("argument", ()))
        self.each = tuple(limit.get("each", ()))
        self.open_end = self.unit == "time"
        self._last: Pot | None = None
        self.tools: frozenset[ToolName] | None = names_in(stack.program, limit["tools"]) if "tools" in limit else None

    @property
    def fits(self) -> bool | None:
        """Whether any one call fits, while nothing was ever charged; None where its arguments tell."""
        if self.unit == "sum" or self.by_value():
            return None
        need = CALL.get((self.unit, ""), 0)
        return need < self.amount if self.open_end else need <= self.amount

    def by_value(self) -> tuple[str, ...]:
        """The path below args of `for each args.x`, else nothing."""
        return self.each[1:] if self.each[:1] == ("args",) else ()

    def pots(self, amounts: Amounts, arguments: dict[str, Any], line: Sequence[Who]) -> list[Pot]:
        """The pots of this limit that something counts in. Raises Unpayable."""
        if self.unit == "sum":
            need = amount_of(self.argument, arguments, self.rule)
        else:
            need = amounts.get((self.unit, self.currency), 0)
        who = line[min(self.above, len(line) - 1)]
        path = self.by_value()
        if path:
            return [self._pot(who, need, value) for value in sorted(pot_names(path, arguments, self.rule))]
        last = self._last
        if last is None or last.need != need or last.who != who:
            last = self._last = self._pot(who, need, None)
        return [last]

    def _pot(self, who: Who, need: Number, value: str | None) -> Pot:
        return Pot(
            self.unit, self.currency, self.argument, self.tools, self.owner, self.limit["window"], self.each, who,
            value, self.amount, need, self.open_end,
        )  # fmt: skip


def limits_of(stack: Stack, tool_id: int | None) -> list[Counting]:
    """The limits of this execution and those above it that hold for a call of the tool; None: those that name no tool."""
    return [
        Counting(stack, above, body, index, limit)
        for above, level in enumerate(stack.counted)
        for body in level.bodies
        for index, limit in enumerate(body.data.get("limits", ()))
        if (tool_id is None or limit["unit"] not in OF_THE_LOOP)
        and ("tools" not in limit or (tool_id is not None and tool_id in tools_in(stack.program, limit["tools"])))
    ]


def line_of(run: ResolvedAgentExecution) -> tuple[Who, ...]:
    """The acting execution as a spender, then those above it."""
    found: list[Who] = []
    one: ResolvedAgentExecution | None = run
    while one is not None:
        session = one.session
        found.append(Who(session.client, session.origin, session.turn, one.stack.own.agent))
        one = one.parent
    return tuple(found)


def spender_of(
    run: ResolvedAgentExecution, tool: ToolName | None, limits: Iterable[Counting], arguments: dict[str, Any]
) -> Spender:
    """Who spends, with the pots by value that it counts in."""
    counted = run.stack.counted
    values: dict[tuple[str, ...], frozenset[str]] = {}
    for path in {counting.by_value() for counting in limits} - {()}:
        values[path] = pot_names(path, arguments, None)
    return Spender(
        tool,
        line_of(run),
        frozenset(name for level in counted for name in level.chain),
        frozenset(skill for level in counted for skill in level.skills),
        values,
    )


def charges_of(amounts: Amounts, limits: Iterable[Counting], arguments: dict[str, Any]) -> list[Charge]:
    """The amounts as charges, and one sum for each argument that a limit sums. Raises Unpayable."""
    paths = sorted({counting.argument for counting in limits if counting.unit == "sum"})
    return [
        *(Charge(unit, amount, currency) for (unit, currency), amount in amounts.items()),
        *(Charge("sum", amount_of(path, arguments, None), argument=path) for path in paths),
    ]


# --- amounts ---------------------------------------------------------------------------------------------------------


def reported(value: object) -> Number | None:
    """A host's number, exact; None if it is negative, not finite, out of bounds, or no number."""
    from decimal import Decimal

    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    try:
        number = number_of(repr(value) if isinstance(value, float) else str(value))
    except ValueError:
        return None
    return number if number >= 0 and can_be_kept(number) else None


def can_be_kept(number: Number) -> bool:
    """Whether ledgers keep such an amount."""
    return len(number_text(number)) <= MAX_AMOUNT_DIGITS


def money_of(cost: Mapping[str, object] | None) -> dict[tuple[str, str], Number]:
    """A cost by currency, without those of which a part is no amount."""
    told = _told(cost)
    found: dict[tuple[str, str], Number] = {}
    for currency, number in told:
        if number is not None:
            found["money", currency] = added(found.get(("money", currency), 0), number)
    for currency in {currency for currency, number in told if number is None}:
        found.pop(("money", currency), None)
    return found


def must_be_priced(
    cost: Mapping[str, object] | None, limits: Iterable[Counting], what: str = "the call", why: str = ""
) -> None:
    """Raises Unpayable where a limit cannot count a cost: it is not known, not in the limit's currency, or no amount.

    What is free in every currency that it names is free in all. `what`: that has the cost. `why`: it is not known.
    """
    known, told = money_of(cost), _told(cost)
    odd = any(number is None for _, number in told)
    free = bool(told) and not odd and not any(known.values())
    for counting in limits:
        if counting.unit == "money" and (odd or (not free and ("money", counting.currency) not in known)):
            fault = why or ("has a price that is no amount" if odd else "has no price")
            where = f" in {counting.currency}" if known and not why and not odd else ""
            raise Unpayable(counting.rule, f"{what} {fault}{where}, and a limit in {counting.currency} holds")


def _told(cost: Any) -> list[tuple[str, Number | None]]:
    """What a host says, which may be anything: currencies, of which one may come twice, and amounts."""
    if not hasattr(cost, "items"):
        return []
    return [(str(currency).lower(), reported(amount)) for currency, amount in cost.items()]


def amount_of(path: tuple[str, ...], arguments: dict[str, Any], rule: RuleRef | None) -> Number:
    """The argument that is summed. Raises Unpayable."""
    value: Any = dig(arguments, path)
    if isinstance(value, float):
        value = exact(value)
    if isinstance(value, (bool, str, list, dict)) or value is MISSING:
        raise Unpayable(rule, "the argument that a limit sums is missing or no number")
    if value < 0:
        raise Unpayable(rule, "the argument that a limit sums is negative")
    if not can_be_kept(value):
        raise Unpayable(rule, f"the argument that a limit sums has more than {MAX_AMOUNT_DIGITS} digits")
    number: Number = value
    return number


def pot_names(path: tuple[str, ...], arguments: dict[str, Any], rule: RuleRef | None) -> frozenset[str]:
    """The pots of `for each args.x`: one per value, folded; one per distinct element of a list. Raises Unpayable."""
    value = dig(arguments, path)
    if value is MISSING:
        raise Unpayable(rule, "the argument that a limit keeps pots by is missing")
    elements = value if is_list(value) else [value]
    if None in elements:
        raise Unpayable(rule, "the argument that a limit keeps pots by is missing")
    if len(elements) > MAX_POTS_OF_CALL:
        raise Unpayable(rule, f"the argument that a limit keeps pots by has more than {MAX_POTS_OF_CALL} elements")
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
    number = exact(value) if isinstance(value, float) else value
    return "n" + (number_text(number) if number else "0")  # `-0.0` as well
