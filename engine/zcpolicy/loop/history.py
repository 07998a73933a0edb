"""What of a transcript a model is shown, and how much of a tool's result.

In: messages, the knobs `history`, `context`, `tool_result`. Out: fewer messages; shorter text. Calls and their results
stay together. Tokens are estimated, on the high side for most text: one for every three bytes of UTF-8, and eight for
each message, call and tool.
"""

from collections.abc import Sequence
from json import dumps
from typing import Final

from zcpolicy.loop.messages import Message, ModelRequest
from zcpolicy.registry.sources import ToolSpec

BYTES_PER_TOKEN: Final = 3
TOKENS_AROUND: Final = 8


def tokens_of_text(text: str) -> int:
    """Estimated tokens."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def tokens_of_message(message: Message) -> int:
    """Estimated tokens, calls included."""
    calls = sum(tokens_of_text(call.wire + call.arguments) + TOKENS_AROUND for call in message.calls)
    return tokens_of_text(message.text) + calls + TOKENS_AROUND


def tokens_of_tools(tools: Sequence[ToolSpec]) -> int:
    """Estimated tokens of the list of tools."""
    return sum(
        tokens_of_text(tool.wire + tool.description + dumps(tool.parameters, default=str)) + TOKENS_AROUND
        for tool in tools
    )


def tokens_of(request: ModelRequest) -> int:
    """Estimated tokens of a whole request."""
    messages = sum(map(tokens_of_message, request.messages))
    return tokens_of_text(request.system) + tokens_of_tools(request.tools) + messages


def trimmed(messages: Sequence[Message], history: int, tokens: int) -> tuple[Message, ...] | None:
    """The newest messages, at most `history` of them and `tokens` long, beginning with one of the user's.

    The user's newest message and what came last are always among them, however small `history` is: without them there
    is no turn. None where these alone are longer than `tokens`.
    """
    groups = _groups(messages)
    if not groups:
        return () if tokens >= 0 else None
    asked = max((index for index, group in enumerate(groups) if group[0].role == "user"), default=len(groups) - 1)
    kept = {asked, len(groups) - 1}
    count = sum(len(groups[index]) for index in kept)
    size = sum(_size(groups[index]) for index in kept)
    if size > tokens:
        return None
    for index in (one for one in reversed(range(len(groups))) if one not in kept):
        count += len(groups[index])
        size += _size(groups[index])
        if count > history or size > tokens:
            break
        kept.add(index)
    first = min((index for index in kept if groups[index][0].role == "user"), default=0)
    return tuple(message for index in sorted(kept) if index >= first for message in groups[index])


def _size(group: list[Message]) -> int:
    return sum(map(tokens_of_message, group))


def _groups(messages: Sequence[Message]) -> list[list[Message]]:
    """Each message, and with one that makes calls their results; a result without its call is left out."""
    groups: list[list[Message]] = []
    open_calls: set[str] = set()
    for message in messages:
        if message.role != "tool":
            groups.append([message])
            open_calls = {call.id for call in message.calls}
        elif message.call_id in open_calls:
            groups[-1].append(message)
    return groups


def cut(text: str, limit: int) -> str:
    """A result at most `limit` characters long, with a note where it was cut; half surrogate pairs are replaced."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    note = f"\n[cut: this result has {len(text)} characters; ask for less of it]"
    return text[: limit - len(note)] + note if len(note) < limit else text[:limit]
