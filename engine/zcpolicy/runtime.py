"""The runtime knobs of an execution (SPEC 4, `runtime`): numbers narrow to the least, switches to `off`.

In: the bodies of an execution. Out: `RuntimeKnobs`, in which nothing is left open: what no body says has a default.
"""

from __future__ import annotations

from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from zcpolicy.stack import Stack

DEFAULT_HISTORY: Final = 50
"""Messages of a transcript that a model is shown where no body says."""
DEFAULT_CONTEXT: Final = 32_000
"""Tokens of a request where no body says."""
DEFAULT_TOOL_RESULT: Final = 50_000
"""Characters of one tool's result where no body says."""
DEFAULT_RECALL: Final = 5
"""Memory entries that one recall gives where no body says."""
DEFAULT_CALL_TIMEOUT: Final = 120.0
"""Seconds of one tool call where no body says."""
DEFAULT_TURN_TIMEOUT: Final = 3_600.0
"""Seconds of one turn where no body says."""
DEFAULT_ITERATIONS: Final = 50
"""Requests to the model in one turn where no limit on iterations per turn says."""


class RuntimeKnobs(NamedTuple):
    """What the loop keeps to. `parallel_tools`: only where every body that speaks of it says `on`, and one does.

    `history`: messages. `context`: tokens. `tool_result`: characters. `recall`: entries. Time-outs: seconds.
    `iterations`: requests to the model in one turn.
    """

    parallel_tools: bool
    history: int
    context: int
    tool_result: int
    recall: int
    call_timeout: float
    turn_timeout: float
    iterations: int


def knobs_of(stack: Stack) -> RuntimeKnobs:
    """The knobs of an execution with these bodies: its own and those of every execution that bounds it."""
    said: list[dict[str, str]] = [body.data["runtime"] for body in stack.bodies() if "runtime" in body.data]

    def least(name: str, otherwise: float) -> float:
        return min((float(one[name]) for one in said if name in one), default=otherwise)

    switches = {one["parallel_tools"] for one in said if "parallel_tools" in one}
    return RuntimeKnobs(
        parallel_tools=switches == {"on"},
        history=int(least("history", DEFAULT_HISTORY)),
        context=int(least("context", DEFAULT_CONTEXT)),
        tool_result=int(least("tool_result", DEFAULT_TOOL_RESULT)),
        recall=int(least("recall", DEFAULT_RECALL)),
        call_timeout=least("call_timeout", DEFAULT_CALL_TIMEOUT),
        turn_timeout=least("turn_timeout", DEFAULT_TURN_TIMEOUT),
        iterations=min(_iterations(stack), default=DEFAULT_ITERATIONS),
    )


def _iterations(stack: Stack) -> Iterator[int]:
    """The limits on iterations per turn, of which a turn can never have more than the least."""
    for level in stack.counted:
        for body in level.bodies:
            limits: Any = body.data.get("limits", ())
            for limit in limits:
                if limit["unit"] == "iterations" and limit["window"]["kind"] == "turn":
                    yield int(limit["amount"])
