"""What a permitted call leaves behind: labels, charges, an entry in the history.

In: a decision that permits. Out: nothing; the session, the ledger and the resolver's record grow.
"""

from __future__ import annotations

from zcpolicy.condition import truth_of
from zcpolicy.facts import MAX_HISTORY, Entry
from zcpolicy.ledgers.memory import Charge
from zcpolicy.operands import Call
from zcpolicy.pots import Unpayable, amount_of, pot_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zcpolicy.decision import Decision
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.plan import Plan


def record(decision: Decision, ok: bool) -> None:
    """Marks, charges and remembers a call that runs now. Raises NoTime, and then leaves nothing."""
    plan, run = decision.verdict.plan, decision.run
    if plan is None:
        return
    now = run.resolver.now(run.session)
    run.session.mark(labels_of(plan, decision.arguments, run))
    run.resolver.ledger.add(charges_of(plan, decision.arguments, run, now))
    entry = Entry(plan.name, decision.arguments, ok=ok, at=now, agent=run.agent)
    run.session.record(entry)
    done = run.resolver.done_by(run.session.client)
    done.append(entry)
    if len(done) > MAX_HISTORY:
        del done[: MAX_HISTORY // 10]


def labels_of(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution) -> list[str]:
    """The labels that a call of these arguments puts on its session; what cannot be told marks."""
    call = Call(arguments, run.session, run.session.labels, plan.tool)
    return [rule.data["label"] for rule, node in plan.marks if node is None or truth_of(node, call) is not False]


def charges_of(plan: Plan, arguments: dict[str, Any], run: ResolvedAgentExecution, now: float) -> list[Charge]:
    """One call, and one sum for each argument that a limit on this tool sums."""
    counted = plan.stack.counted
    line = [run, *run.above()]
    common: dict[str, Any] = {
        "at": now,
        "tool": plan.name,
        "clients": frozenset(one.session.client for one in line),
        "agents": tuple(level.agent for level in counted),
        "chains": frozenset(name for level in counted for name in level.chain),
        "skills": frozenset(skill for level in counted for skill in level.skills),
        "sessions": frozenset(one.session.id for one in line),
        "turns": frozenset((one.session.id, one.session.turn) for one in line),
        "values": _values(plan, arguments),
    }
    sums = sorted({counting.argument for counting in plan.limits if counting.unit == "sum"})
    return [
        Charge(unit="calls", amount=1, **common),
        *(Charge(unit="sum", amount=amount_of(path, arguments, None), argument=path, **common) for path in sums),
    ]


def _values(plan: Plan, arguments: dict[str, Any]) -> dict[tuple[str, ...], frozenset[str]]:
    found: dict[tuple[str, ...], frozenset[str]] = {}
    for counting in plan.limits:
        path = counting.by_value()
        if path:
            try:
                found[path] = pot_names(path, arguments, None)
            except Unpayable:
                continue
    return found
