"""A model that says what a script tells it to: for tests, examples and the parity harness.

In: steps, each a response or a function of the request. Out: `ScriptedModel`, which remembers what it was shown.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from json import dumps
from typing import Any

from zcpolicy.loop.messages import ModelRequest, ModelResponse, ToolCall, Usage

Step = str | ModelResponse | Callable[[ModelRequest], "str | ModelResponse"]
"""Text alone is an answer that ends the turn."""

USED = Usage(10, 5)
"""What a scripted response uses unless it says otherwise."""


def calls(*wanted: tuple[str, Mapping[str, Any] | str], text: str = "", usage: Usage = USED) -> ModelResponse:
    """A response that makes calls: pairs of wire name and arguments (an object, or the very JSON text)."""
    made = tuple(
        ToolCall(f"call-{number}", wire, given if isinstance(given, str) else dumps(given))
        for number, (wire, given) in enumerate(wanted, 1)
    )
    return ModelResponse(text, made, usage)


class ScriptedModel:
    """`requests`: what the model was shown, in order. Past the end of its script it raises EOFError."""

    def __init__(self, *steps: Step, name: str = "scripted") -> None:
        self.name = name
        self.steps: Sequence[Step] = steps
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """Text comes line by line, then the whole response."""
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self.steps):
            raise EOFError("the script has no more steps")
        step = self.steps[number]
        said = step(request) if callable(step) else step
        response = ModelResponse(said, (), USED) if isinstance(said, str) else said
        for piece in response.text.splitlines(keepends=True):
            yield piece
        yield response
