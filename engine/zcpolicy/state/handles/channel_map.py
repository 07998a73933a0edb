"""The conversation that a session goes on in, for tools that ask a person, hold a poll, or react to a message.

In: conversations by the names of their channels, which the host opens for a session. Out: asking in them. What people say is
text for the tool: no answer here is an approval, those have a way of their own that no tool is part of.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Handle, Held, Scope, owners
from zcpolicy.state.handles.named import Named
from zcpolicy.state.handles.outside import Unreachable, reached, reached_in_thread
from zcpolicy.state.versions import SourceVersions, Versions

T = TypeVar("T")

MAX_QUESTION_CHARACTERS: Final = 4_000
"""Characters of a question, of each option, and of a reaction."""
MAX_OPTIONS: Final = 20
"""Options of a question."""
MAX_ANSWER_CHARACTERS: Final = 100_000
"""Characters of an answer; the rest is cut off."""
ANSWER_SECONDS: Final = 300.0
"""How long people may take, where the tool does not say."""
MAX_ANSWER_SECONDS: Final = 86_400.0
"""How long a tool may wait for people."""


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


class _Open(NamedTuple):
    conversation: Conversation
    loop: asyncio.AbstractEventLoop


class ChannelMap(Handle["Conversations"]):
    """`open`, `replace` and `close` are the host's, in its event loop."""

    contract = Contract(
        holds="the conversations in which tools may ask, poll and react",
        owner="daemon",
        concurrency="read-write lock",
        isolation="session",
        reload="replaced",
        depends=frozenset({"config", "policy"}),
    )

    def __init__(self, versions: SourceVersions) -> None:
        self._open: Named[_Open] = Named("conversation", self.contract, versions)

    @owners
    def as_of_now(self) -> Versions:
        """To be taken before the configuration is read that conversations are made of, and given with them."""
        return self._open.as_of_now()

    @owners
    def open(self, who: Who, name: str, conversation: Conversation, as_of: Versions | None = None) -> None:
        """Adds a conversation, or puts another in its place. Raises Full, TypeError, ValueError."""
        self._open.put(who, name, _Open(conversation, asyncio.get_running_loop()), as_of)

    @owners
    def replace(self, who: Who, conversations: Mapping[str, Conversation], as_of: Versions | None = None) -> None:
        """These, and no others: after a reload. Raises as `open`."""
        loop = asyncio.get_running_loop()
        self._open.replace(who, {name: _Open(one, loop) for name, one in conversations.items()}, as_of)

    @owners
    def close(self, who: Who) -> None:
        """Takes out all conversations of a session."""
        self._open.drop(who)

    def _view(self, scope: Scope) -> "Conversations":
        return Conversations(self._open, scope)

    def _held(self) -> Iterable[Held]:
        return self._open.held()


class Conversations:
    """Those of one caller's session. All raise Missing for one that is not open, Unreachable where it fails or nobody answers
    in time, ValueError for more than may be asked, and PermitError once the call is over, also where that is while they wait.
    """

    def __init__(self, opened: Named[_Open], scope: Scope) -> None:
        self._opened = opened
        self._scope = scope

    def names(self) -> tuple[str, ...]:
        """Conversations that are open now."""
        return self._opened.names(self._scope.key)

    async def ask(self, name: str, question: str, options: Sequence[str] = (), seconds: float = ANSWER_SECONDS) -> str:
        """What a person says; it may be something else than the options."""
        return _answer(await self._asked(name, _ask(question, options), seconds))

    def ask_in_thread(
        self, name: str, question: str, options: Sequence[str] = (), seconds: float = ANSWER_SECONDS
    ) -> str:
        """The same for threads."""
        return _answer(self._asked_in_thread(name, _ask(question, options), seconds))

    async def poll(
        self, name: str, question: str, options: Sequence[str], seconds: float = ANSWER_SECONDS
    ) -> dict[str, int]:
        """How many are for each of the options."""
        return _counted(await self._asked(name, _poll(question, options), seconds), options)

    def poll_in_thread(
        self, name: str, question: str, options: Sequence[str], seconds: float = ANSWER_SECONDS
    ) -> dict[str, int]:
        """The same for threads."""
        return _counted(self._asked_in_thread(name, _poll(question, options), seconds), options)

    async def react(self, name: str, reaction: str) -> None:
        """Reacts to the message that the turn is about."""
        await self._asked(name, _react(reaction), ANSWER_SECONDS)

    def react_in_thread(self, name: str, reaction: str) -> None:
        """The same for threads."""
        self._asked_in_thread(name, _react(reaction), ANSWER_SECONDS)

    async def _asked(self, name: str, work: "_Work[T]", seconds: float) -> T:
        one = self._opened.get(self._scope.key, name)
        found = await reached(_told(name), partial(work, one.conversation), _within(seconds))
        self._still(name, one)
        return found

    def _asked_in_thread(self, name: str, work: "_Work[T]", seconds: float) -> T:
        one = self._opened.get(self._scope.key, name)
        found = reached_in_thread(_told(name), partial(work, one.conversation), _within(seconds), one.loop)
        self._still(name, one)
        return found

    def _still(self, name: str, one: _Open) -> None:
        """What was said in a conversation that is not the session's any more, or to a call that is over, is nobody's."""
        if self._opened.get(self._scope.key, name) is not one:
            raise Unreachable(f"{_told(name)} was replaced meanwhile")


_Work = Callable[[Conversation], Coroutine[Any, Any, T]]


def _ask(question: str, options: Sequence[str]) -> _Work[str]:
    given = _checked(question, options)
    return lambda conversation: conversation.ask(question, given)


def _poll(question: str, options: Sequence[str]) -> _Work[Mapping[str, int]]:
    given = _checked(question, options)
    if not given:
        raise ValueError("a poll has options")
    return lambda conversation: conversation.poll(question, given)


def _react(reaction: str) -> _Work[None]:
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


def _within(seconds: float) -> float:
    if not 0 < seconds <= MAX_ANSWER_SECONDS:
        raise ValueError(f"people are waited for from 0 to {MAX_ANSWER_SECONDS:,.0f} seconds")
    return seconds


def _told(name: str) -> str:
    return f"conversation `{name}`"


def _answer(said: object) -> str:
    if not isinstance(said, str):
        raise Unreachable("the conversation answered with something that is no text")
    return said[:MAX_ANSWER_CHARACTERS]


def _counted(found: Mapping[str, int], options: Sequence[str]) -> dict[str, int]:
    counts: Mapping[str, Any] = found
    return {one: count if isinstance(count := counts.get(one, 0), int) and count > 0 else 0 for one in options}
