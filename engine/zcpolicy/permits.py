"""What a permitted call leaves behind: charges, labels, an entry in the history.

In: a decision that permits. Out: nothing; the ledger, the session and the resolver's record grow.
"""

from __future__ import annotations

from zcpolicy.combine import Verdict, plan_behind
from zcpolicy.condition import truth_of
from zcpolicy.decision import Decision
from zcpolicy.facts import Entry
from zcpolicy.operands import Call
from zcpolicy.refusals import PermitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.plan import Plan


def record(decision: Decision, ok: bool) -> None:
    """Charges, marks and remembers a call that runs now, in one step. Raises PermitError, and then leaves nothing."""
    from os import urandom

    budgets, key = decision.run.budgets, urandom(16).hex()
    held = budgets.reserve(decision, key)
    if isinstance(held, Verdict):
        why = f"the call is not permitted: {held.reason}" + (f", {held.note}" if held.note else "")
        raise PermitError(why, Decision(held, decision.arguments, decision.run, decision.labels))
    if not budgets.dispatch(key):
        raise PermitError("the call is not permitted: ledger-unavailable")
    mark(decision)
    budgets.settle(key)
    remember(decision, ok=ok, at=held.at)


def mark(decision: Decision) -> frozenset[str]:
    """Puts the labels of a call on its session: when it is permitted, before it runs, whatever comes of it. Those labels."""
    plan, run = plan_behind(decision.verdict), decision.run
    labels = frozenset[str]() if plan is None else frozenset(labels_of(plan, decision.arguments, run))
    run.session.mark(labels)
    return labels


def remember(decision: Decision, *, ok: bool, at: float) -> None:
    """Puts a call that ran in the history. `ok`: the tool reported success. `at`: seconds since the epoch."""
    run = decision.run
    entry = Entry(decision.tool, decision.arguments, ok=ok, at=at, agent=run.agent)
    run.session.record(entry)
    run.resolver.did(run.session.client, entry)


def labels_of(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution) -> list[str]:
    """The labels that a call of these arguments puts on its session; what cannot be told marks."""
    call = Call(arguments, run.session, run.session.labels, plan.tool)
    return [rule.data["label"] for rule, node in plan.marks if node is None or truth_of(node, call) is not False]
