"""What goes between the loop and a model.

In: nothing. Out: messages, requests, responses, usage; `Model`, what the loop needs of one.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

from zcpolicy.registry.sources import ToolSpec


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for. `id`: the model's own, only to pair it with its result. `arguments`: JSON text as sent."""

    id: str
    wire: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """`tool`: the result of a call; `call_id` pairs it. `assistant`: text and calls. `labels` of what it carries."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a response used. None: the host does not know, which under a limit counts as what was reserved."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """`system`: the host's prompt with the registry's sections. `max_output_tokens`: None where nothing bounds it."""

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
