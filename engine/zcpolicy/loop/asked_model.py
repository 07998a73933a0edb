"""One request to a model: reserved, sent, streamed, settled.

In: an execution, a model, a request. Out: its response. What the limits do not let be sent is not sent.
"""

import asyncio
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

from zcpolicy.combine import Verdict
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.ending import Ended, by_limit
from zcpolicy.loop.history import tokens_of
from zcpolicy.loop.messages import Model, ModelRequest, ModelResponse, Usage
from zcpolicy.loop.report import HostFault, emit, report
from zcpolicy.loop.unbroken import unbroken


class ModelFault(Exception):
    """The model failed; its exception is the cause."""


async def response_to(
    request: ModelRequest,
    run: ResolvedAgentExecution,
    access: ResolvedModelAccess,
    io: ResolvedIo,
    key: str,
    seconds: float,
) -> ModelResponse:
    """The whole response; pieces go to `io.emit` as they come. `key`: of this request. `seconds`: that are left.

    Raises Ended (a limit, the time), ModelFault, HostFault.
    """
    ledger = run.resolver.ledger
    sent: list[ModelRequest] = []  # once it is reserved
    usage, began, took = Usage(0, 0), monotonic(), 0.0
    try:
        denied = await unbroken(ledger, partial(_reserve, sent, request, run, access, key))
        if denied is not None:
            raise by_limit(denied)
        usage, began = Usage(), monotonic()  # from here on it counts, as far as nobody knows better
        response = await _streamed(access.model, sent[0], io, seconds)
        usage = response.usage
    finally:
        if sent:
            took = monotonic() - began
            await unbroken(ledger, partial(run.budgets.model_done, key, access, usage, took))
    report(
        io, "model", run, model=access.model.name, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens,
        seconds=round(took, 3),
    )  # fmt: skip
    return response


def _reserve(
    sent: list[ModelRequest], request: ModelRequest, run: ResolvedAgentExecution, access: ResolvedModelAccess, key: str
) -> Verdict | None:
    """Reserves what the request may spend; its answer is as long as the limits leave room for."""
    needed, output = tokens_of(request), access.max_output_tokens
    left = run.budgets.tokens_left()
    if left is not None:
        output = max(1, min(output, left - needed))
    denied = run.budgets.model_call(key, access, needed, output)
    if denied is None:
        sent.append(replace(request, max_output_tokens=output))
    return denied


async def _streamed(model: Model, request: ModelRequest, io: ResolvedIo, seconds: float) -> ModelResponse:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _whole(model, request, io)
    except HostFault:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ModelFault("the model's request was cancelled") from error
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # what exits inside a model's library ends the turn, and not the host
        if limit.expired():
            raise Ended("stopped", "turn-timeout", "the model did not answer in what was left of it") from None
        raise ModelFault("the model failed") from error


async def _whole(model: Model, request: ModelRequest, io: ResolvedIo) -> ModelResponse:
    stream = model.stream(request)
    heard = False
    try:
        async for piece in stream:
            if isinstance(piece, ModelResponse):
                response = _sound(piece)
                if response.text and not heard:  # of a model that does not stream
                    emit(io, response.text)
                return response
            emit(io, piece)
            heard = True
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    raise ValueError("the model gave no response")


def _sound(response: Any) -> ModelResponse:
    """The response, if it is made of what it should be."""
    texts: list[object] = [response.text]
    for call in response.calls:
        texts += [call.id, call.wire, call.arguments]
    if not all(isinstance(text, str) for text in texts) or not isinstance(response.usage, Usage):
        raise TypeError("a response is not made of text")
    return ModelResponse(response.text, tuple(response.calls), response.usage)
