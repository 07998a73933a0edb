"""The loop with models of pydantic-ai: the real library, with the models that it has for tests."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import messages as theirs
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from tests.loop.stage import Stage, stage, told
from zcpolicy.loop.loop import TurnResult
from zcpolicy.loop.pydantic_ai import PydanticAiModel


def play(on: Stage, model: PydanticAiModel) -> TurnResult:
    return asyncio.run(on.turn(model))


def tokens(on: Stage) -> list[int]:
    """What was charged for requests, in order."""
    return [int(entry.charge.amount) for entry in on.resolver.ledger.entries() if entry.charge.unit == "tokens"]


def test_their_test_model_calls_the_tools_that_it_is_shown_and_no_others() -> None:
    on = stage("allow look, mail")
    result = play(on, PydanticAiModel(TestModel()))
    assert result.status == "done"
    assert on.ran == [("look", {"at": "a"}), ("mail", {"to": "a", "body": "hello"})]
    assert result.text == '{"look":"look is done","mail":"mail is done"}'


def test_text_comes_in_pieces_and_calls_come_whole() -> None:
    seen: list[list[theirs.ModelMessage]] = []

    async def story(messages: list[theirs.ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        seen.append(messages)
        if len(seen) == 1:
            yield "let "
            yield "me see"
            yield {0: DeltaToolCall("look", '{"at": ', tool_call_id="one")}
            yield {0: DeltaToolCall(json_args='"x"}')}
        else:
            yield "seen"

    on = stage("allow look; limit 1_000_000 tokens")
    result = play(on, PydanticAiModel(FunctionModel(stream_function=story)))
    assert on.ran == [("look", {"at": "x"})]
    assert "".join(on.heard) == "let me seeseen"
    assert result.text == "seen"
    assert [type(part).__name__ for message in seen[1] for part in message.parts] == [
        "SystemPromptPart", "UserPromptPart", "TextPart", "ToolCallPart", "ToolReturnPart",
    ]  # fmt: skip
    answer = seen[1][-1].parts[0]
    assert isinstance(answer, theirs.ToolReturnPart)
    assert (answer.tool_name, answer.content, answer.tool_call_id) == ("look", "look is done", "one")
    assert len(tokens(on)) == 2
    assert all(0 < spent < 200 for spent in tokens(on)), "what the model reports, not what was reserved"


def test_a_model_that_does_not_stream() -> None:
    async def once(messages: list[theirs.ModelMessage], info: AgentInfo) -> theirs.ModelResponse:
        assert info.model_settings == {"temperature": 0.0, "max_tokens": 4096}
        assert [tool.name for tool in info.function_tools] == ["look"]
        if len(messages) > 1:
            return theirs.ModelResponse([theirs.TextPart("seen")])
        return theirs.ModelResponse(
            [theirs.ToolCallPart("look", {"at": "x"}), theirs.ToolCallPart("shell", '{"command": "ls"}')]
        )

    on = stage("allow look")
    result = play(on, PydanticAiModel(FunctionModel(once), settings={"temperature": 0.0}, streams=False))
    assert on.names == ["look"]
    assert told(result)[1].startswith("This call is not permitted.")
    assert result.text == "seen"
    assert on.heard == ["seen"]


def test_the_text_of_arguments_is_judged_as_it_came() -> None:
    sent = ['{"at": "x", "at": "y"}', '["x"]', '{"at"', ""]

    async def once(messages: list[theirs.ModelMessage], info: AgentInfo) -> theirs.ModelResponse:
        if len(messages) > 1:
            return theirs.ModelResponse([theirs.TextPart("seen")])
        return theirs.ModelResponse([theirs.ToolCallPart("look", text) for text in sent])

    on = stage("allow look")
    result = play(on, PydanticAiModel(FunctionModel(once), streams=False))
    assert on.names == []
    assert [text.partition(": ")[2].partition(".")[0] for text in told(result)] == [
        "an object has the same name twice",
        "the arguments are not an object",
        "the arguments are not well-formed JSON",
        "`at` is missing",
    ]


def test_what_their_model_raises_fails_the_turn() -> None:
    async def broken(messages: list[theirs.ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "well"
        raise ConnectionError("no route to the model")

    on = stage("allow look; limit 1_000_000 tokens")
    result = play(on, PydanticAiModel(FunctionModel(stream_function=broken)))
    assert (result.status, result.reason, result.note) == (
        "failed",
        "model-failed",
        "the model failed: ConnectionError",
    )
    assert on.open_reservations() == []
    assert tokens(on)[0] > 4_000, "what came of it is not known: it counts as reserved"
