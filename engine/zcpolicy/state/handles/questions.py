"""What may be asked of people, and what may come back.

In: questions, options, reactions of a tool. Out: `Work` that a conversation does; answers within bounds.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, TypeGuard, TypeVar

from zcpolicy.state.handles.outside import Unreachable

T = TypeVar("T")

MAX_QUESTION_CHARACTERS: Final = 4_000
"""Characters of a question, of each option, and of a reaction."""
MAX_OPTIONS: Final = 20
"""Options of a question."""
MAX_ANSWER_CHARACTERS: Final = 100_000
"""Characters of an answer; the rest is cut off."""
ANSWER_SECONDS: Final = 300.0
"""How long people may take, where the tool does not say."""


class Conversation(Protocol):
    """One session's conversation, as the host's channel has it."""

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        """What the person says."""
        ...

    async def poll(self, question: str, options: tuple[str, ...]) -> Mapping[str, int]:
        """How many are for each option."""
        ...

    async def react(self, reaction: str) -> None:
        """Reacts to the message that the turn is about."""
        ...


Work = Callable[[Conversation], Coroutine[Any, Any, T]]
"""What a conversation is to do."""


def ask(question: str, options: Sequence[str]) -> Work[str]:
    """A question. Raises ValueError."""
    given = _checked(question, options)
    return lambda conversation: conversation.ask(question, given)


def poll(question: str, options: Sequence[str]) -> Work[Mapping[str, int]]:
    """A poll. Raises ValueError."""
    given = _checked(question, options)
    if not given:
        raise ValueError("a poll has options")
    return lambda conversation: conversation.poll(question, given)


def react(reaction: str) -> Work[None]:
    """A reaction. Raises ValueError."""
    _checked(reaction, ())
    return lambda conversation: conversation.react(reaction)


def _checked(question: str, options: Sequence[str]) -> tuple[str, ...]:
    given: tuple[Any, ...] = tuple(options)
    if len(given) > MAX_OPTIONS:
        raise ValueError(f"a question has up to {MAX_OPTIONS} options")
    for text in (question, *given):
        if not isinstance(text, str) or not 0 < len(text) <= MAX_QUESTION_CHARACTERS:
            raise ValueError(f"what is asked is a text of 1 to {MAX_QUESTION_CHARACTERS:,} characters")
    return given


def answer(said: object) -> str:
    """What a person said. Raises Unreachable for what is no text."""
    if not isinstance(said, str):
        raise Unreachable("the conversation answered with something that is no text")
    return said[:MAX_ANSWER_CHARACTERS]


def counted(found: object, options: Sequence[str]) -> dict[str, int]:
    """Whole numbers, for the options that were asked about and no others. Raises Unreachable for what is no table."""
    if not _is_table(found):
        raise Unreachable("the conversation answered with something that is no table")
    return {one: count if isinstance(count := found.get(one, 0), int) and count > 0 else 0 for one in options}


def _is_table(found: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(found, Mapping)
