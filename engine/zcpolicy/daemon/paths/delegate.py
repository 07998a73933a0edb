"""Delegation: an agent hands a task to another. Bounded, or independent where the policy says so.

In: the delegating execution and its order, an agent, a task. Out: a `ToolResult`; a child that cannot be is a failed one.
Particular: the child has a session and a transcript of its own below its delegator's, its own model and tools; whom it
may ask is whom its delegator may; its labels join the delegator's with the answer, also when it fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zcpolicy.daemon.order import Order, TurnRefused, below
from zcpolicy.daemon.sessions import Full
from zcpolicy.daemon.wire import answer_of
from zcpolicy.registry.sources import ToolResult

if TYPE_CHECKING:
    from zcpolicy.daemon.host import Host
    from zcpolicy.execution import ResolvedAgentExecution


async def delegated(
    host: Host, order: Order, parent: ResolvedAgentExecution, agent: str, task: str, independent: bool
) -> ToolResult:
    """What the child answers. `independent=False` is bounded, whatever the policy would let it be."""
    try:
        seat = host.sessions.open(parent.session.client, interactive=True, above=parent.session)
    except Full as full:
        return ToolResult(f"agent `{agent}` cannot be delegated to: {full}", ok=False)
    child = below(order, agent=agent, text=task, surface="delegate", seat=seat, parent=parent, independent=independent)
    try:
        result = await host.turn(child)
    except TurnRefused as refused:
        return ToolResult(f"agent `{agent}` cannot be delegated to: {refused}", ok=False)
    finally:
        host.sessions.close(seat)
    return ToolResult(answer_of(result), ok=result.status == "done")
