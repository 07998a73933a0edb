"""Delegation: an agent hands a task to another. Bounded, or independent where the policy says so.

In: the delegating execution and its order, an agent, a task. Out: a `ToolResult`.
Particular: the child has a session and a transcript of its own below its delegator's, its own model and tools; whom it
may ask is whom its delegator may; its labels join the delegator's with the answer, also when it fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zcpolicy.daemon.order import Order, TurnRefused, below
from zcpolicy.daemon.sessions import Full
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.sources import ToolResult

if TYPE_CHECKING:
    from zcpolicy.daemon.host import Host
    from zcpolicy.execution import ResolvedAgentExecution


async def delegated(
    host: Host, order: Order, parent: ResolvedAgentExecution, agent: str, task: str, independent: bool
) -> ToolResult:
    """What the child answers. `independent=False` is bounded, whatever the policy would let it be.

    Raises ResolveError, which the loop records, where there is no child: a model is not told what policies say.
    """
    try:
        seat = host.sessions.open(parent.session.client, interactive=True, above=parent.session)
    except Full as full:
        raise ResolveError(str(full)) from None
    child = below(order, agent=agent, text=task, surface="delegate", seat=seat, parent=parent, independent=independent)
    try:
        return (await host.turn(child)).for_delegator()
    except TurnRefused as refused:
        raise ResolveError(str(refused)) from None
    finally:
        host.sessions.close(seat)
