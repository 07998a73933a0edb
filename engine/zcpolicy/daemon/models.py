"""The model of each agent: a script in a file, or any model of pydantic-ai by its name.

In: `AgentSettings`. Out: `ResolvedModelAccess` by agent. A script is JSON: `{"steps": […], "repeat": true}`; a step is text, which
ends a turn, or `{"text": …, "calls": [{"tool": NAME, "arguments": {…}}]}`, the name as the policy has it or as models do. With `repeat` it begins again when it is through.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from json import dumps, loads
from typing import Any, Final

from zcpolicy.daemon.settings import AgentSettings, SettingsError
from zcpolicy.exact import is_list, is_object
from zcpolicy.loop.access import Prices, ResolvedModelAccess
from zcpolicy.loop.messages import ModelRequest, ModelResponse
from zcpolicy.loop.scripted import USED, calls
from zcpolicy.registry.wire import wire_name

MAX_SCRIPT_BYTES: Final = 1_048_576
"""Bytes of the script of a model."""


class ScriptError(ValueError):
    """A script that is none. The message says why."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a scripted model says, step by step."""

    steps: tuple[ModelResponse, ...]
    repeat: bool = False


def read_script(data: bytes) -> Script:
    """The script of a file's bytes. Raises ScriptError."""
    try:
        found = loads(data)  # numbers go on as they stand there: the judge of calls reads them exactly
    except (ValueError, RecursionError):
        raise ScriptError("it is not well-formed JSON") from None
    if not is_object(found) or not found.keys() <= {"steps", "repeat"} or not is_list(found.get("steps")):
        raise ScriptError('it is no object of the form {"steps": […], "repeat": true}')
    repeat = found.get("repeat", False)
    if type(repeat) is not bool or not found["steps"]:
        raise ScriptError("it has no steps, or `repeat` is neither true nor false")
    return Script(tuple(_step(number, one) for number, one in enumerate(found["steps"], 1)), repeat)


def _step(number: int, step: Any) -> ModelResponse:
    if type(step) is str:
        return ModelResponse(step, (), USED)
    if not is_object(step) or not step.keys() <= {"text", "calls"}:
        raise ScriptError(f"step {number} is neither text nor an object of `text` and `calls`")
    text, wanted = step.get("text", ""), step.get("calls", [])
    if type(text) is not str or not is_list(wanted):
        raise ScriptError(f"step {number} has a `text` that is no text, or `calls` that are no list")
    return calls(*(_call(number, one) for one in wanted), text=text)


def _call(number: int, call: Any) -> tuple[str, str]:
    if not is_object(call) or not call.keys() <= {"tool", "arguments"} or type(call.get("tool")) is not str:
        raise ScriptError(f"a call of step {number} is no object of `tool` and `arguments`")
    arguments = call.get("arguments", {})
    if not is_object(arguments):
        raise ScriptError(f"the `arguments` of a call of step {number} are no object")
    try:
        return _wire(call["tool"]), dumps(arguments, allow_nan=False)
    except ValueError:
        raise ScriptError(f"the `arguments` of a call of step {number} cannot be sent") from None


def _wire(name: str) -> str:
    """`server/tool` as models call it."""
    server, slash, tool = name.partition("/")
    return wire_name((server, tool)) if slash else name


class FileModel:
    """A model that follows a script. Each turn goes on where its own transcript is: sessions do not take each other's steps."""

    def __init__(self, script: Script, name: str) -> None:
        self.name = name
        self._script = script

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """Text comes line by line, then the whole response. Past the end of the script it raises EOFError."""
        number = sum(message.role == "assistant" for message in request.messages)
        steps = self._script.steps
        if number >= len(steps) and not self._script.repeat:
            raise EOFError("the script has no more steps")
        response = steps[number % len(steps)]
        for piece in response.text.splitlines(keepends=True):
            yield piece
        yield response


def models_of(agents: Mapping[str, AgentSettings]) -> dict[str, ResolvedModelAccess]:
    """Raises SettingsError for a model that cannot be: a file that is no script, a name or a library that is not there."""
    found: dict[str, ResolvedModelAccess] = {}
    for name, agent in agents.items():
        kind, _, rest = agent.model.partition(":")
        if kind == "scripted":
            found[name] = ResolvedModelAccess(_from_file(rest, name), None, agent.max_output_tokens)
        else:
            found[name] = _real(name, agent)
    return found


def _from_file(path: str, agent: str) -> FileModel:
    try:
        with open(path, "rb") as file:
            return FileModel(read_script(file.read(MAX_SCRIPT_BYTES)), f"scripted {agent}")
    except OSError as error:
        raise SettingsError(f"the script of agent `{agent}` cannot be read: {error.strerror}") from None
    except ScriptError as error:
        raise SettingsError(f"the script of agent `{agent}` cannot be used: {error}") from None


def _real(name: str, agent: AgentSettings) -> ResolvedModelAccess:
    try:
        from zcpolicy.loop.pydantic_ai import PydanticAiModel

        model = PydanticAiModel(agent.model)
    except ImportError as error:
        raise SettingsError(f"the model of agent `{name}` cannot be loaded: {error}") from None
    except Exception as error:  # noqa: BLE001 - whatever a provider's library says of a name or a key that it misses
        first = " ".join(str(error).split())[:200]
        raise SettingsError(f"the model `{agent.model}` of agent `{name}` cannot be made: {first}") from None
    return ResolvedModelAccess(model, _prices(), agent.max_output_tokens)


def _prices() -> Prices | None:
    """What tokens cost, where the extra `prices` is there: without it money limits deny."""
    try:
        from zcpolicy.prices import GenaiPrices

        return GenaiPrices()
    except ImportError:
        return None
