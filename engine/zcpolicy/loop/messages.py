"""What goes between the loop and a model.

In: nothing, or messages as JSON. Out: messages, requests, responses, usage; `Model`, what the loop needs of one.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, get_args

from zcpolicy.exact import is_list, is_object
from zcpolicy.registry.sources import ToolSpec


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for. `id`: the model's own, only to pair it with its result. `arguments`: JSON text as sent."""

    id: str
    wire: str
    arguments: str

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return {"id": self.id, "wire": self.wire, "arguments": self.arguments}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ToolCall":
        """What `to_json` gave. Raises ValueError for anything else."""
        if not is_object(data) or data.keys() != {"id", "wire", "arguments"} or not _texts(*data.values()):
            raise ValueError("this is no call of a model")
        return cls(**data)


Role = Literal["user", "assistant", "tool"]
_MESSAGE: Final = {"role", "text", "calls", "call_id"}


@dataclass(frozen=True, slots=True)
class Message:
    """`tool`: the result of a call; `call_id` pairs it. `assistant`: text and calls."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "role": self.role, "text": self.text, "calls": [one.to_json() for one in self.calls], "call_id": self.call_id,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Message":
        """What `to_json` gave; `calls` and `call_id` may be left out. Raises ValueError for anything else."""
        if not is_object(data) or not {"role", "text"} <= data.keys() <= _MESSAGE or not _is_message(data):
            raise ValueError("this is no message of a transcript")
        calls = tuple(map(ToolCall.from_json, data.get("calls", ())))
        return cls(data["role"], data["text"], calls, data.get("call_id", ""))


def _is_message(data: Mapping[str, Any]) -> bool:
    texts = _texts(data["role"], data["text"], data.get("call_id", ""))
    return texts and data["role"] in get_args(Role) and is_list(data.get("calls", []))


def _texts(*values: object) -> bool:
    return all(type(one) is str for one in values)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a response used. None: the host does not know, which under a limit counts as what was reserved."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model is asked. `system`: the host's prompt with the sections of the registry (`registry.prompt.text`).
    `messages`: the transcript, the newest last. `tools`: what it may call (`registry.specs()`), each by its `wire` name.
    `max_output_tokens`: the longest answer; None where nothing bounds it.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """One whole response."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()


class Model(Protocol):
    """A model. `stream` yields pieces of text as they come, and last the whole response."""

    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]: ...
