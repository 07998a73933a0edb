"""Whether limits leave room (SPEC 8): the look that comes before anybody is asked, and what a deny is called.

In: a plan, judged arguments, the execution. Out: the deny of a limit that has no room, or what is spent.
"""

from __future__ import annotations

from zcpolicy.combine import Verdict
from zcpolicy.exact import number_text
from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.pots import CALL, Unpayable, line_of
from zcpolicy.windows import NoTime, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.ledgers.contract import Pot, Spent
    from zcpolicy.plan import Plan
    from zcpolicy.pots import Amounts, Counting
    from zcpolicy.stack import RuleRef

EXHAUSTED: Final = "a limit is exhausted"
OUT_OF_REACH: Final = "the session says that the ledger cannot be reached"
NO_TIME: Final = "the session's clock does not tell the time"


def exhausted(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution) -> Verdict | None:
    """The deny, if a limit has no room for this call."""
    try:
        looked = spent_in(run, plan.limits, CALL, arguments)
    except Unpayable as error:
        return unpayable(error)
    except NoTime:
        return unavailable(plan.limits, NO_TIME)
    except LedgerUnavailable as error:
        return unavailable(plan.limits, error)
    return None if all(spent.room for _, _, spent in looked) else over(looked)


def pots_of(
    limits: Sequence[Counting], amounts: Amounts, arguments: dict[str, Any], run: ResolvedAgentExecution
) -> list[tuple[Counting, Pot]]:
    """The pots that something counts in, each with its limit. Raises Unpayable."""
    line = line_of(run)
    return [(counting, pot) for counting in limits for pot in counting.pots(amounts, arguments, line)]


def spent_in(
    run: ResolvedAgentExecution, limits: Sequence[Counting], amounts: Amounts, arguments: dict[str, Any]
) -> list[tuple[Counting, Pot, Spent]]:
    """What is spent in each pot. Raises Unpayable, NoTime, LedgerUnavailable."""
    if not run.session.ledger:
        raise LedgerUnavailable(OUT_OF_REACH)
    pots = pots_of(limits, amounts, arguments, run)
    found = run.resolver.ledger.look([pot for _, pot in pots], told(run.session.clock))
    return [(counting, pot, spent) for (counting, pot), spent in zip(pots, found, strict=True)]


def over(looked: Sequence[tuple[Counting, Pot, Spent]], note: str = "") -> Verdict:
    """The deny of the limits that have no room, with the time until all may have."""
    full = [(counting, spent) for counting, _, spent in looked if not spent.room]
    waits = [spent.retry_after for _, spent in full]
    retry = None if None in waits else max((wait for wait in waits if wait is not None), default=None)
    rules = tuple(dict.fromkeys(counting.rule for counting, _ in full))
    return Verdict("deny", "budget", rules, note=note or f"{EXHAUSTED}: {texts_of(rules)}", retry_after=retry)


def unpayable(error: Unpayable) -> Verdict:
    """The deny of what a limit cannot count."""
    return Verdict("deny", "budget", (error.args[0],), note=error.args[1])


def texts_of(rules: Sequence[RuleRef]) -> str:
    """The limits as they were written; those of a host's narrowing, which stand nowhere, by what they are."""
    return "; ".join(str(rule.place[2]) if rule.place else _unwritten(rule) for rule in rules)


def _unwritten(rule: RuleRef) -> str:
    whose = "the narrowing" if rule.body.kind == "narrowing" else f"`{rule.body.name}`"
    return f"limit {rule.data['amount']} {rule.data['unit']} of {whose}"


def outage(cause: LedgerUnavailable | str) -> str:
    """Why what is spent cannot be told; whoever runs the host finds it in the log as well."""
    from zcpolicy.faults import in_short, log_once

    note = in_short(str(cause)) or "the ledger cannot be reached"
    log_once(f"what limits leave cannot be told: {note}")
    return note


def unavailable(limits: Sequence[Counting], cause: LedgerUnavailable | str) -> Verdict:
    """The deny where what is spent cannot be told. `cause`: why."""
    note = outage(cause)
    return Verdict("deny", "ledger-unavailable", tuple(counting.rule for counting in limits), note=note)


def charges_json(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution) -> list[dict[str, Any]]:
    """What the call would spend of each pot, and what is spent there already."""
    try:
        looked = spent_in(run, plan.limits, CALL, arguments)
    except (NoTime, Unpayable, LedgerUnavailable):
        return []
    return [
        {
            "limit": counting.rule.to_json()["text"],
            "unit": counting.unit,
            "amount": number_text(pot.need),
            "spent": number_text(spent.total),
            "of": counting.limit["amount"],
            "pot": counting.owner,
            "value": None if pot.value is None else pot.value[1:],
        }
        for counting, pot, spent in looked
    ]
