"""How a turn ends, and what is kept of one that waits.

In: what the loop did. Out: `TurnResult`; `TurnState`, JSON from which the turn goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from zcpolicy.approvals.question import Question
from zcpolicy.loop.messages import Message, ToolCall
from zcpolicy.registry.sources import ToolResult
from zcpolicy.sealed import NoTruth

Status = Literal["done", "stopped", "paused", "failed"]
"""`done`: the model has answered. `stopped`: a limit. `paused`: somebody is asked. `failed`: model or host is broken."""

_PLAIN: Final = ("agent", "client", "session", "turn", "batch", "iteration", "seconds")


@dataclass(frozen=True, slots=True)
class TurnState:
    """A turn that waits for a person. `turn`, `batch`: keys of the turn and of the batch in which it waits, minted by the
    loop. `iteration`: in which that is. `seconds`: for which it has run.

    `calls`: the batch, as the model sent it; those without a result in the transcript are still to be made, each once,
    however often the turn is taken up. A state is the host's own record, as its tickets are.
    """

    agent: str
    client: str
    session: str
    turn: str
    batch: str
    iteration: int
    seconds: float
    calls: tuple[ToolCall, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "agent": self.agent, "client": self.client, "session": self.session,
            "turn": self.turn, "batch": self.batch, "iteration": self.iteration, "seconds": self.seconds,
            "calls": [one.to_json() for one in self.calls],
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "TurnState":
        """What `to_json` gave. Raises ValueError for anything else."""
        try:
            state = cls(
                **{name: data[name] for name in _PLAIN},
                calls=tuple(map(ToolCall.from_json, data["calls"])),
            )
        except (KeyError, TypeError, ValueError):
            raise ValueError("this is no state of a turn") from None
        texts = [state.agent, state.client, state.session, state.turn, state.batch]
        numbers = type(state.iteration) is int and type(state.seconds) in (int, float)
        if not numbers or not all(type(one) is str for one in texts) or not _sound(state):
            raise ValueError("this is no state of a turn")
        return state


def _sound(state: TurnState) -> bool:
    return state.iteration > 0 and 0 <= state.seconds < float("inf")


@dataclass(frozen=True, slots=True)
class TurnResult(NoTruth):
    """How a turn ended. `text`: the model's last words. `messages`: the whole transcript, with what was added.

    `reason`: a code: `answered`, `asked`, `iterations`, `budget`, `ledger-unavailable`, `stale-policy`, `turn-timeout`,
    `context`, `model-failed`, `host-failed`. `note`: a sentence for a person: what happened and what to do.
    `retry_after`: seconds until a limit may have room. `state`, `questions`: of a paused turn. `error`: what was raised.
    """

    status: Status
    text: str
    reason: str
    messages: tuple[Message, ...]
    note: str = ""
    retry_after: float | None = None
    state: TurnState | None = None
    questions: tuple[Question, ...] = ()
    error: Exception | None = None

    _ask = 'compare `.status` with "done"'

    def for_delegator(self) -> ToolResult:
        """What the call that handed the task over comes to: the answer, or that there is none. Fit for a model."""
        done = self.status == "done"
        return ToolResult(self.text if done else f"There is no answer ({self.reason}).", ok=done)
