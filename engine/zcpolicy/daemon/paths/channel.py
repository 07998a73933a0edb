"""Chat: several senders, text in, text out.

In: messages, each with the sender that the chat's own protocol vouches for. Out: answers to that sender.
Particular: each sender is a client of its own with a session of its own; only who sent is asked, and only the exact words
of the question, from the same sender, after it was put, are a yes. A next message that says anything else is a no.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Final

from zcpolicy.approvals.asking import at_work
from zcpolicy.approvals.question import Answer, Approve, Question, Reject
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.order import Order, TurnRefused
from zcpolicy.daemon.sessions import Full, Seat
from zcpolicy.daemon.wire import answer_of
from zcpolicy.facts import Narrowing
from zcpolicy.refusals import PermitError
from zcpolicy.registry.site import OPEN, Site

MAX_WAITING: Final = 20
"""Messages of one sender that wait for their turn; more are answered with a refusal."""
MAX_SENDERS: Final = 50_000
"""People in one chat; more are refused: names are cheap, and other paths need sessions too. None is forgotten, since that
would take labels off, and give fresh budgets.
"""
MAX_MESSAGE_CHARACTERS: Final = 100_000
"""Characters of one message."""

GO_ON: Final = "go on"
"""What a sender says to a turn that waits for somebody else's answer."""

Send = Callable[[str, str], Awaitable[None]]
"""Sends text to a sender."""


@dataclass(slots=True)
class _Asked:
    """A question that was put to a sender. `code`: what tells its answer from that to another question."""

    code: str
    scopes: tuple[str, ...]
    answer: asyncio.Future[Answer]


@dataclass(slots=True)
class _Sender:
    """One person in the chat."""

    seat: Seat
    waiting: deque[str] = field(default_factory=deque[str])
    asked: _Asked | None = None
    one_question: asyncio.Lock = field(default_factory=asyncio.Lock)
    working: bool = False


class Channel:
    """An adapter of one chat. `name` tells it from other chats; `agent` answers in it."""

    def __init__(
        self, host: Host, agent: str, send: Send, *, name: str = "chat", narrowing: Narrowing | None = None,
        site: Site = OPEN,
    ) -> None:  # fmt: skip
        self._host = host
        self._agent = agent
        self._send = send
        self._name = name
        self._narrowing = narrowing
        self._site = site
        self._senders: dict[str, _Sender] = {}

    async def receive(self, sender: str, text: str) -> None:
        """One message. Returns when it is answered, or was the answer to a question, or waits behind another.

        Raises PermitError inside a running tool: what that says in a sender's name is nobody's message.
        """
        if at_work():
            raise PermitError("a tool does not speak for a person")
        try:
            person = self._person(sender)
        except Full as full:
            await self._send(sender, str(full))
            return
        if person.asked is not None:
            asked, person.asked = person.asked, None
            answer = _read(asked, text)
            if not asked.answer.done():
                asked.answer.set_result(answer or Reject("the person said something else"))
            if answer is not None:
                return
        if len(person.waiting) >= MAX_WAITING or len(text) > MAX_MESSAGE_CHARACTERS:
            await self._send(sender, "that is more than can be taken in")
            return
        person.waiting.append(text)
        if not person.working:
            await self._work(sender, person)

    def _person(self, sender: str) -> _Sender:
        known = self._senders.get(sender)
        if known is None:
            if len(self._senders) >= MAX_SENDERS:
                raise Full("there are as many people in this chat as there may be")
            client = self._host.sessions.client(f"channel {self._name}", sender)
            known = self._senders[sender] = _Sender(self._host.sessions.open(client, interactive=True))
        return known

    async def _work(self, sender: str, person: _Sender) -> None:
        """Answers what waits, one message after the other."""
        person.working = True
        try:
            while person.waiting:
                await self._send(sender, await self._answer(sender, person, person.waiting.popleft()))
        finally:
            person.working = False

    async def _answer(self, sender: str, person: _Sender, text: str) -> str:
        async def ask(question: Question) -> Answer:
            return await self._ask(sender, person, question)

        resume = person.seat.paused is not None and text.strip() == GO_ON
        order = Order(
            self._agent, text, "channel", person.seat, narrowing=self._narrowing, site=self._site, resume=resume,
            approvers=replace(self._host.asked_on("channel"), person=ask),
        )  # fmt: skip
        try:
            result = await self._host.turn(order)
        except TurnRefused as refused:
            return f"this cannot be done: {refused}"
        except Exception:  # noqa: BLE001 - a fault of the host is told as one, with nothing of its insides
            return "the host failed"
        if result.status == "paused":
            return f"This waits for somebody else's answer. Say `{GO_ON}` when it has come."
        return answer_of(result)

    async def _ask(self, sender: str, person: _Sender, question: Question) -> Answer:
        """Puts a question to its sender, one at a time, and waits for that sender's next message."""
        async with person.one_question:
            asked = _Asked(token_hex(2), question.scopes, asyncio.get_running_loop().create_future())
            beyond = "".join(f", `yes {asked.code} {scope}`" for scope in question.scopes if scope != "once")
            person.asked = asked
            try:
                await self._send(sender, f"{question.text}\nSay `yes {asked.code}`{beyond}; anything else is a no.")
                return await asked.answer
            finally:
                if person.asked is asked:
                    person.asked = None


def _read(asked: _Asked, text: str) -> Answer | None:
    """The answer that a message is; None for any other message."""
    said = text.strip()
    if said in ("no", f"no {asked.code}"):
        return Reject()
    if said == f"yes {asked.code}":
        return Approve("once")
    for scope in ("exact", "tool"):
        if scope in asked.scopes and said == f"yes {asked.code} {scope}":
            return Approve(scope)
    return None
