"""The conversation that a session goes on in, for tools that ask a person, hold a poll, or react to a message.

In: conversations by the names of their channels, which the host opens for a session. Out: asking in them. What people say is
text for the tool: no answer here is an approval, those have a way of their own that no tool is part of.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from zcpolicy.state.caller import Who
from zcpolicy.state.contract import Contract, Handle, Held, Scope, owners
from zcpolicy.state.handles.named import Named
from zcpolicy.state.handles.outside import Unreachable, reached, reached_in_thread
from zcpolicy.state.handles.questions import (
    ANSWER_SECONDS,
    Conversation,
    Work,
    answer,
    ask,
    counted,
    poll,
    react,
)
from zcpolicy.state.handles.waiting import within
from zcpolicy.state.versions import SourceVersions, Versions

T = TypeVar("T")


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
        return answer(await self._asked(name, ask(question, options), seconds))

    def ask_in_thread(
        self, name: str, question: str, options: Sequence[str] = (), seconds: float = ANSWER_SECONDS
    ) -> str:
        """The same for threads."""
        return answer(self._asked_in_thread(name, ask(question, options), seconds))

    async def poll(
        self, name: str, question: str, options: Sequence[str], seconds: float = ANSWER_SECONDS
    ) -> dict[str, int]:
        """How many are for each of the options."""
        return counted(await self._asked(name, poll(question, options), seconds), options)

    def poll_in_thread(
        self, name: str, question: str, options: Sequence[str], seconds: float = ANSWER_SECONDS
    ) -> dict[str, int]:
        """The same for threads."""
        return counted(self._asked_in_thread(name, poll(question, options), seconds), options)

    async def react(self, name: str, reaction: str) -> None:
        """Reacts to the message that the turn is about."""
        await self._asked(name, react(reaction), ANSWER_SECONDS)

    def react_in_thread(self, name: str, reaction: str) -> None:
        """The same for threads."""
        self._asked_in_thread(name, react(reaction), ANSWER_SECONDS)

    async def _asked(self, name: str, work: "Work[T]", seconds: float) -> T:
        one = self._opened.get(self._scope.key, name)
        found = await reached(_told(name), partial(work, one.conversation), within(seconds))
        self._still(name, one)
        return found

    def _asked_in_thread(self, name: str, work: "Work[T]", seconds: float) -> T:
        one = self._opened.get(self._scope.key, name)
        found = reached_in_thread(_told(name), partial(work, one.conversation), within(seconds), one.loop)
        self._still(name, one)
        return found

    def _still(self, name: str, one: _Open) -> None:
        """What was said in a conversation that is not the session's any more, or to a call that is over, is nobody's."""
        if self._opened.get(self._scope.key, name) is not one:
            raise Unreachable(f"{_told(name)} was replaced meanwhile")


def _told(name: str) -> str:
    return f"conversation `{name}`"
