"""Any model of pydantic-ai as a model of the loop. Needs the extra `pydantic-ai`.

In: a pydantic-ai model, or its name (`"anthropic:…"`). Out: `PydanticAiModel`. Only requests are made through
pydantic-ai: its agents, tools and approvals have no part in them, so that the gate is the only way to a tool.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence

from zcpolicy.extras import missing
from zcpolicy.loop.messages import Message, ModelRequest, ModelResponse, ToolCall, Usage
from zcpolicy.registry.sources import ToolSpec

try:
    from pydantic_ai import messages as theirs
    from pydantic_ai.direct import model_request, model_request_stream
    from pydantic_ai.models import Model, ModelRequestParameters, infer_model
    from pydantic_ai.settings import ModelSettings, merge_model_settings
    from pydantic_ai.tools import ToolDefinition
except ImportError:
    raise missing("a model of pydantic-ai", "pydantic-ai") from None


class PydanticAiModel:
    """`settings`: of every request; the loop's bound on output tokens is put over them. `streams`: False for models that
    cannot. Arguments of calls go on as the very text that came, where it came as text.
    """

    def __init__(self, model: Model | str, *, settings: ModelSettings | None = None, streams: bool = True) -> None:
        self._model = infer_model(model)
        self._settings = settings
        self._streams = streams
        self.name = self._model.model_name

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """Text as it comes, then the whole response. Raises what the model raises."""
        messages = _messages(request)
        parameters = ModelRequestParameters(function_tools=[_definition(one) for one in request.tools])
        settings = self._settings
        if request.max_output_tokens is not None:
            settings = merge_model_settings(settings, ModelSettings(max_tokens=request.max_output_tokens))
        if not self._streams:
            whole = await model_request(
                self._model, messages, model_settings=settings, model_request_parameters=parameters
            )
            yield _response(whole)
            return
        async with model_request_stream(
            self._model, messages, model_settings=settings, model_request_parameters=parameters
        ) as stream:
            async for event in stream:
                piece = _piece(event)
                if piece:
                    yield piece
            yield _response(stream.get())


def _definition(tool: ToolSpec) -> ToolDefinition:
    return ToolDefinition(name=tool.wire, parameters_json_schema=dict(tool.parameters), description=tool.description)


def _piece(event: object) -> str:
    if isinstance(event, theirs.PartStartEvent) and isinstance(event.part, theirs.TextPart):
        return event.part.content
    if isinstance(event, theirs.PartDeltaEvent) and isinstance(event.delta, theirs.TextPartDelta):
        return event.delta.content_delta
    return ""


def _response(whole: theirs.ModelResponse) -> ModelResponse:
    text = "".join(part.content for part in whole.parts if isinstance(part, theirs.TextPart))
    calls = tuple(_call(part) for part in whole.parts if isinstance(part, theirs.ToolCallPart))
    known = whole.usage.has_values() and not whole.usage.unmeasured_requests
    usage = Usage(whole.usage.input_tokens, whole.usage.output_tokens) if known else Usage()
    return ModelResponse(text, calls, usage)


def _call(part: theirs.ToolCallPart) -> ToolCall:
    """Their own JSON text would hide what was sent: two values under one name, or what is no object."""
    arguments = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
    return ToolCall(part.tool_call_id, part.tool_name, arguments or "{}")


def _messages(request: ModelRequest) -> list[theirs.ModelMessage]:
    """The transcript in their types: what is said to the model in one stretch is one request."""
    found: list[theirs.ModelMessage] = []
    said: list[theirs.ModelRequestPart] = [theirs.SystemPromptPart(request.system)] if request.system else []
    names: dict[str, str] = {}
    for message in request.messages:
        if message.role == "user":
            said.append(theirs.UserPromptPart(message.text))
        elif message.role == "tool":
            name = names.get(message.call_id, "")
            said.append(theirs.ToolReturnPart(name, message.text, message.call_id))
        else:
            names.update((call.id, call.wire) for call in message.calls)
            found += [theirs.ModelRequest(said)] if said else []
            found.append(theirs.ModelResponse(_parts(message)))
            said = []
    return [*found, theirs.ModelRequest(said)] if said else found


def _parts(message: Message) -> Sequence[theirs.ModelResponsePart]:
    text = [theirs.TextPart(message.text)] if message.text else []
    calls: Iterable[theirs.ToolCallPart] = (
        theirs.ToolCallPart(call.wire, call.arguments, call.id) for call in message.calls
    )
    return [*text, *calls]
