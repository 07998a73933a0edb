"""Questions that wait for operators: those of all surfaces of a daemon, in one queue.

In: questions of turns that run, answers of operators. Out: what a turn is told. A turn waits for the answer; one that can be
taken up again pauses after a while, and what is said then is put on record for it. The queue lives as long as the daemon, and its
turns do too; a yes on record is in the ledger.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from time import monotonic, time
from typing import Any, Final, Literal

from zcpolicy.approvals.asking import under_way
from zcpolicy.approvals.binding import bound
from zcpolicy.approvals.outcome import NotAsked
from zcpolicy.approvals.question import Absent, Answer, Approve, Approvers, Later, Question, Reject
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.order import Order, TurnRefused
from zcpolicy.daemon.sessions import Seat
from zcpolicy.daemon.settings import ApprovalSettings
from zcpolicy.decision import Decision
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.ledgers.contract import LedgerUnavailable
from zcpolicy.loop.unbroken import unbroken
from zcpolicy.refusals import PermitError
from zcpolicy.texts import json_text

MAX_QUESTIONS: Final = 1_000
"""Questions that wait for operators of one daemon; of the next one nobody hears."""
MAX_QUESTIONS_OF_CLIENT: Final = 32
"""Questions of one client that wait for operators."""
MAX_QUESTION_CHARACTERS: Final = 400_000
"""Characters of a question, its arguments included; nobody reads a longer one, and nobody is asked it."""
MAX_HELD_CHARACTERS: Final = 20_000_000
"""Characters of all questions that wait for operators."""
MAX_HELD_OF_CLIENT: Final = 1_000_000
"""Characters of the questions of one client that wait for operators."""
MAX_LISTED_CHARACTERS: Final = 4_000_000
"""Characters of the questions that one listing tells; the others are counted."""
MAX_REMEMBERED: Final = 10_000
"""Questions that are over, of which it is known how; of older ones it is only known that they do not wait."""
MAX_WATCHERS: Final = 100
"""Requests that wait for news of the queue; more are answered at once."""
AGAIN_SECONDS: Final = 0.2
"""After which an answer is given again that could not be put on record because of a call that was under way."""

_SOON: Final = 0.9  # of the time that a turn has: then it pauses, and does not end

How = Literal["unknown", "answered", "over", "wider", "own", "later"]


class NotTaken(Exception):
    """An answer that is not taken. `how`: no such question; one that was answered; is asked no more; a scope that it does not
    offer; a route's question to whoever asks it; not now, and the question waits on.
    """

    def __init__(self, how: How, message: str) -> None:
        super().__init__(message)
        self.how: How = how


@dataclass(eq=False, slots=True)
class Open:
    """A question that waits. `heard`: takes the answer while its turn waits for it; None: the turn pauses. `ends`: on the monotonic
    clock. `said`: the answer that was given. `generation`: under which it was last seen to be asked; `print`: what is asked, by
    which rules, as this queue sees it: without the live definition of the tool, which a registry alone has.
    """

    question: Question
    seat: Seat
    order: Order
    characters: int
    asked: float
    ends: float
    generation: int
    heard: asyncio.Future[Answer] | None
    print: str = ""
    said: Approve | Reject | None = None

    def to_json(self) -> dict[str, Any]:
        """What an operator is told: the call as it would run, and all that a yes depends on."""
        told = self.question.to_json()
        for inner in ("key", "binding", "tool_binding"):
            del told[inner]
        left = None if self.ends == inf else round(max(0.0, self.ends - monotonic()), 3)
        return {
            **told, "due": left, "surface": self.order.surface, "asked": round(self.asked, 3), "paused": self.heard is None,
            "answered": self.said is not None,
        }  # fmt: skip


class Questions:
    """The queue of one daemon. It belongs to one event loop. `host`: whose turns ask; it is there before the first does."""

    def __init__(self, settings: ApprovalSettings, host: Callable[[], Host]) -> None:
        self._settings = settings
        self._host = host
        self._open: dict[str, Open] = {}
        self._over: dict[str, Literal["answered", "over"]] = {}
        self._watching: set[asyncio.Event] = set()
        self._keeping: set[asyncio.Task[None]] = set()
        self._closed = False
        self._sweeping = asyncio.Lock()
        self.revision = 0

    def __len__(self) -> int:
        """How many wait; from any thread."""
        return len(self._open)

    def approvers(self) -> dict[str, Approvers]:
        """Whom the surfaces of the host can ask, as the settings say; the person of a surface that has its own is left to it."""
        routes = dict.fromkeys(self._settings.routes, self.ask)
        found = {"": Approvers(routes=routes)}
        for surface in self._settings.person:
            found[surface] = Approvers(self.ask, routes)
        return found

    # --- asking --------------------------------------------------------------------------------------------------------

    async def ask(self, question: Question) -> Answer:
        """An approver: waits for an operator. Where there is no room for the question, nobody is there."""
        host = self._host()
        seat = host.sessions.seat(question.session)
        order = None if seat is None else seat.order
        if seat is None or order is None:
            return Absent("the question is of no turn of this daemon")
        size, ends = len(question.text) + len(json_text({**question.arguments})), monotonic() + question.due
        await self._sweep()
        if full := self._full(question.client, size):
            return Absent(full)
        heard: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        generation = host.resolver.newest.generation
        one = Open(question, seat, order, size, time(), ends, generation, heard)
        self._add(one)
        try:
            return await self._answer_to(one, heard)
        finally:
            if one.heard is not None:
                self._remove(one, "over" if one.said is None else "answered")

    async def _answer_to(self, one: Open, heard: asyncio.Future[Answer]) -> Answer:
        """What an operator says while the turn waits, or that the turn pauses. Whoever asks ends it when the time is over."""
        pauses = await self._pauses(one)
        await asyncio.wait((heard,), timeout=None if pauses is None else pauses[0])
        if pauses is None or heard.done():
            return heard.result()
        one.heard, one.ends = None, monotonic() + pauses[1]
        self._moved()
        return Later()

    async def _pauses(self, one: Open) -> tuple[float, float] | None:
        """After how long the turn pauses, and for how long the question waits then; None: it does not pause.

        A call that another call has led to cannot: whatever is under way would have to wait with it.
        """
        if not one.order.waits or one.order.parent is not None or under_way(one.seat.session):
            return None
        decision = await self._decided(one)
        if decision is None or decision.approval is None:
            return None
        one.print = bound(decision).call
        timeout: float | None = decision.approval["timeout"]
        after = min(self._settings.pause_after, one.question.due * _SOON)
        if timeout is not None and timeout <= self._settings.pause_after:
            return None
        return after, inf if timeout is None else timeout

    def _full(self, client: str, size: int) -> str:
        """Why there is no room; "": there is."""
        if self._closed:
            return "the daemon is about to stop"
        if size > MAX_QUESTION_CHARACTERS:
            return f"the question has more than {MAX_QUESTION_CHARACTERS} characters"
        theirs = [one.characters for one in self._open.values() if one.question.client == client]
        if len(theirs) >= MAX_QUESTIONS_OF_CLIENT or sum(theirs) + size > MAX_HELD_OF_CLIENT:
            return "the client has as many questions waiting as it may"
        held = sum(one.characters for one in self._open.values())
        if len(self._open) >= MAX_QUESTIONS or held + size > MAX_HELD_CHARACTERS:
            return "there are as many questions waiting as there may be"
        return ""

    # --- answering -----------------------------------------------------------------------------------------------------

    async def waiting(self) -> list[Open]:
        """Those that wait, oldest first; without what nobody asks any more."""
        await self._sweep()
        return list(self._open.values())

    async def answer(self, name: str, said: Approve | Reject, *, client: str = "") -> bool:
        """Takes an operator's answer to the question of an id. False: it is put on record once the turn has paused.

        `client`: as whom the operator is a client. Raises NotTaken, LedgerUnavailable.
        """
        await self._sweep()
        one = self._found(name, said, client)
        one.said = said
        self._moved()
        if one.heard is not None:
            one.heard.set_result(said)
            return True
        try:
            if await self._kept(one, said, at_once=True):
                return True
        except BaseException:
            one.said = None  # where it waits on, it can be answered again
            self._moved()
            raise
        self._keep_later(one, said)
        return False

    def _found(self, name: str, said: Approve | Reject, client: str) -> Open:
        """Raises NotTaken."""
        one = self._open.get(name)
        over = self._over.get(name)
        if one is None and over is None:
            raise NotTaken("unknown", "there is no such question here: it is answered at the daemon that asks it")
        if over == "answered" or (one is not None and one.said is not None):
            raise NotTaken("answered", "the question was answered before")
        if one is None:
            raise NotTaken("over", "the question is asked no more")
        if isinstance(said, Approve) and said.scope not in one.question.scopes:
            raise NotTaken("wider", f"a yes reaches {' or '.join(f'`{scope}`' for scope in one.question.scopes)} here")
        if one.question.route and client == one.question.client:
            raise NotTaken(
                "own", "a route is not answered by whoever asks: this token's own turn has led to the question"
            )
        return one

    async def _kept(self, one: Open, said: Approve | Reject, *, at_once: bool) -> bool:
        """Puts an answer on record, between the turns of its session. Raises NotTaken, LedgerUnavailable."""
        if at_once and one.seat.busy.locked():
            return False
        async with one.seat.busy:
            run = self._run(one)
            asked = run is not None and await self._is_asked(one, closely=True)
            if asked is None and isinstance(said, Approve):
                raise NotTaken("later", "a limit has no room for the call now: answer again once it has")
            if run is None or asked is False:
                self._remove(one, "over")
                raise NotTaken("over", "the question is asked no more: its turn is over, or the rules have changed")
            try:
                await run.approvals.answer(one.question, said, record=self._host().record)
            except NotAsked:
                self._remove(one, "over")
                raise NotTaken("over", "the question is asked no more") from None
            except PermitError:  # a call below the session is under way
                return False
            self._remove(one, "answered")
            return True

    def _keep_later(self, one: Open, said: Approve | Reject) -> None:
        async def keep() -> None:
            try:
                while not await self._kept(one, said, at_once=False):  # noqa: ASYNC110 - calls tell nobody that they end
                    await asyncio.sleep(AGAIN_SECONDS)
            except Exception:  # noqa: BLE001 - it is over, or a ledger fails: then it waits again, and can be answered again
                one.said = None
                self._moved()

        task = asyncio.get_running_loop().create_task(keep())
        self._keeping.add(task)
        task.add_done_callback(self._keeping.discard)

    # --- what is so ----------------------------------------------------------------------------------------------------

    def _run(self, one: Open) -> ResolvedAgentExecution | None:
        """The execution that asks, by the newest policy; None: there is none any more."""
        try:
            return self._host().execution(one.order)
        except TurnRefused:
            return None

    async def _decided(self, one: Open) -> Decision | None:
        """What the call would be told now. A ledger that waits is looked at beside all else that goes on."""
        run = self._run(one)
        if run is None:
            return None
        question = one.question
        return await unbroken(run.resolver.ledger, partial(run.decide, question.tool, question.arguments))

    async def _is_asked(self, one: Open, *, closely: bool = False) -> bool | None:
        """Whether a paused turn still waits for the answer: it may have ended, and the rules may have changed; None: a limit has no
        room for now. `closely`: also its labels, by what else it did before it paused. Raises LedgerUnavailable: it is not known.
        """
        paused = one.seat.paused
        if self._host().sessions.seat(one.question.session) is not one.seat or monotonic() >= one.ends:
            return False
        if paused is None or not one.question.key.startswith(f"{paused.batch}."):
            return False
        newest = self._host().resolver.newest.generation
        if newest == one.generation and not closely:
            return True
        decision = await self._decided(one)
        if decision is not None and decision.reason == "ledger-unavailable":
            raise LedgerUnavailable(decision.note)
        if decision is not None and decision.reason == "budget":
            return None
        if decision is None or decision.effect != "ask" or bound(decision).call != one.print:
            return False
        one.generation = newest
        return True

    async def _sweep(self) -> None:
        """Removes what nobody waits for any more. A turn that runs, or waits itself, removes its own."""
        async with self._sweeping:  # whoever comes second finds it done
            for one in list(self._open.values()):
                try:
                    over = self._rests(one) and await self._is_asked(one) is False
                except LedgerUnavailable:  # nor would it be known of the next one
                    return
                if over and self._rests(one):
                    self._remove(one, "over")

    def _rests(self, one: Open) -> bool:
        """Whether its turn has paused, and nobody has answered it."""
        return one.heard is None and one.said is None and not one.seat.busy.locked()

    def _add(self, one: Open) -> None:
        self._over.pop(one.question.id, None)
        self._open[one.question.id] = one
        self._moved()

    def _remove(self, one: Open, how: Literal["answered", "over"]) -> None:
        name = one.question.id
        if self._open.get(name) is one:
            del self._open[name]
            self._over[name] = how
            if len(self._over) > MAX_REMEMBERED:
                del self._over[next(iter(self._over))]
            self._moved()

    # --- news ----------------------------------------------------------------------------------------------------------

    def _moved(self) -> None:
        self.revision += 1
        for event in self._watching:
            event.set()

    async def changed(self, since: int, seconds: float) -> None:
        """Returns once the queue is not what it was at a revision, or the time is over."""
        if len(self._watching) >= MAX_WATCHERS:
            return
        event = asyncio.Event()
        self._watching.add(event)
        try:
            async with asyncio.timeout(seconds):
                while self.revision == since and not self._closed:
                    event.clear()
                    await event.wait()
        except TimeoutError:
            return
        finally:
            self._watching.discard(event)

    async def close(self) -> None:
        """Nobody is asked any more; who waits for news hears that there are none."""
        self._closed = True
        self._moved()
        keeping = tuple(self._keeping)
        for task in keeping:
            task.cancel()
        if keeping:
            await asyncio.wait(keeping)
