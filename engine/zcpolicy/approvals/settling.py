"""One call that asks, from what is on record to the outcome (SPEC 9).

In: the decision, whom a host can ask. Out: `Approved`, `Edited`, `Refusal` or `Waiting`.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from zcpolicy.approvals.audit import noted
from zcpolicy.approvals.binding import bound, digest, name_of_aside, name_of_open
from zcpolicy.approvals.hearing import Ask, heard
from zcpolicy.approvals.outcome import Edited, Outcome, Refusal, Waiting, approved, refused, rejected
from zcpolicy.approvals.question import Approve, Approver, Approvers, Later, Question, Reject, Scope
from zcpolicy.approvals.weigh import Nothing, Worth, weighed
from zcpolicy.approvals.yeses import Yeses
from zcpolicy.call import judge
from zcpolicy.combine import NOT_INTERACTIVE
from zcpolicy.ledgers.contract import Yes
from zcpolicy.texts import escaped, json_text

if TYPE_CHECKING:
    from zcpolicy.decision import Decision
    from zcpolicy.events import Recorder
    from zcpolicy.shapes import Schema

MAX_WAIT_SECONDS: Final = 86_400.0
"""Seconds after which no answer is a no, where the policy sets no `timeout`."""

NO_LATER: Final = "an answer that comes later cannot be waited for here"

_OPEN: Final[Schema] = {"kind": "object", "extra": "allow"}
_UP_TO: Final[dict[str, tuple[Scope, ...]]] = {
    "never": ("once",), "exact": ("once", "exact"), "tool": ("once", "exact", "tool"),
}  # fmt: skip


class Settling:
    """One call, whom its policy wants to say yes, and whom the host can ask. `outcome` is to be awaited once."""

    def __init__(
        self,
        asked: Decision,
        approvers: Approvers,
        key: str,
        record: Recorder,
        within: float | None,
        *,
        waits: bool,
        later: bool,
    ) -> None:
        self._asked = asked
        self._approvers = approvers
        self._key = key
        self._record = record
        self._waits = waits
        self._later = later and asked.run.parent is None  # whoever delegated waits for the child in one go
        self._wanted: dict[str, Any] = asked.approval or {}
        times = [time for time in (self._wanted["timeout"], within) if time is not None]
        self._seconds = max(0.0, min(times, default=MAX_WAIT_SECONDS))
        self._bound = bound(asked)
        self._yeses = Yeses(asked.run)
        # What differs from what the policy knows is approved call by call: how it differs now is not known later.
        drifted = bool(asked.run.session.drift_of(asked.tool))
        self._scopes = _UP_TO["never" if drifted else self._wanted["remember"]]
        self._questions: dict[str, Question] = {}
        self._ends = monotonic() + self._seconds
        self._gone: set[str] = set()  # routes whose approver says that nobody is there

    async def outcome(self) -> Outcome:
        """How it ends. Raises LedgerUnavailable, NoTime."""
        aside = await self._yeses.find_aside(name_of_aside(self._question("")), self._key)
        if aside is not None:
            return aside if isinstance(aside, Edited) else rejected(self._asked, aside.note, aside.by)
        while True:
            gone = len(self._gone)
            ended = await self._round()
            if len(self._gone) == gone:
                return ended

    async def _round(self) -> Outcome:
        """Asks those who are known to be needed and not known to be gone."""
        whom = [*([""] if self._wanted["person"] else []), *self._wanted["routes"]]
        found = await self._on_record(whom)
        absent = self._absent(whom, found)
        if absent and self._wanted["fallback"]:
            whom = sorted({*whom}.difference(absent).union(self._wanted["fallback"]))
            found = await self._on_record(whom)
            absent = self._absent(whom, found)
        if absent:
            return self._nobody(absent[0])
        if not all(self._note(self._question(route), yes) for route, yes in found.items() if isinstance(yes, Yes)):
            return refused(self._asked, "no-approver", "the approval cannot be recorded")
        missing = [route for route in whom if route not in found]
        ended = await self._ask(missing) if missing else None
        if ended is not None:
            return ended
        found |= await self._on_record(missing)
        return self._ended(whom, found)

    def _ended(self, whom: list[str], found: dict[str, Yes | Question]) -> Outcome:
        """INVARIANT: nothing is approved but by yeses that came out of the ledger for this very key."""
        waiting = tuple(one for one in found.values() if isinstance(one, Question))
        if waiting:
            return Waiting(waiting)
        yeses = {route: one for route, one in found.items() if isinstance(one, Yes)}
        if not all(route in yeses for route in whom):
            return refused(self._asked, "no-approver", "a yes was over before the call could run")
        return approved(self._bound.call, tuple(yeses[route].by for route in whom))

    async def _on_record(self, whom: list[str]) -> dict[str, Yes | Question]:
        """For each route a yes that holds, or the question that waits for its answer."""
        found: dict[str, Yes | Question] = {}
        for route in whom:
            question = self._question(route)
            yes = await self._yeses.find_yes(question)
            if yes is not None:
                found[route] = yes
            elif await self._yeses.find(name_of_open(question), self._key) is not None:
                found[route] = question
        return found

    def _absent(self, whom: list[str], found: dict[str, Yes | Question]) -> list[str]:
        return [route for route in whom if route not in found and self._approver(route) is None]

    def _approver(self, route: str) -> Approver | None:
        """Whom the host has for a route; for the person, if one is there now."""
        if route in self._gone:
            return None
        if route:
            return self._approvers.routes.get(route)
        there = self._wanted["person"] and self._asked.run.session.interactive
        return self._approvers.person if there else None

    def _nobody(self, route: str) -> Refusal:
        note = f"nobody is there for route `{route}`" if route else "nobody is there"
        if not route and not self._asked.run.session.interactive:
            note = NOT_INTERACTIVE
        self._note(self._question(route), Nothing(note))
        return refused(self._asked, "no-approver", note)

    async def _ask(self, missing: list[str]) -> Refusal | Edited | None:
        """Asks all of them at once. None: nobody says no, and what they say is on record."""
        questions = [self._question(route) for route in missing]
        if not all(self._note(question, "asked") for question in questions):
            return refused(self._asked, "no-approver", "the question cannot be recorded")
        worths = await heard(
            self._asked.run, [self._put(question) for question in questions], max(0.0, self._ends - monotonic())
        )
        said = [
            (question, worth if self._note(question, worth) else Nothing("the answer cannot be recorded"))
            for question, worth in zip(questions, worths, strict=True)
        ]
        return await self._kept(said)

    def _put(self, question: Question) -> Ask:
        """The question as its approver gets it, with arguments that may be altered without effect."""
        approver: Any = self._approver(question.route)

        def worth(answer: object) -> Worth:
            found = weighed(answer, question, self._asked.arguments)
            return Nothing(NO_LATER) if isinstance(found, Later) and not self._later else found

        return Ask(replace(question, arguments=judge(_OPEN, self._asked.arguments)), approver, worth, self._waits)

    async def _kept(self, said: list[tuple[Question, Worth | None]]) -> Refusal | Edited | None:
        """Puts it on record. A no beats silence, that an absence, that an edit, all of them a yes."""
        for question, worth in said:
            if isinstance(worth, Reject):
                await self._yeses.put_aside(name_of_aside(question), worth)
                return rejected(self._asked, worth.note, worth.by)
        silent = [(question, worth) for question, worth in said if isinstance(worth, Nothing)]
        for _, worth in silent:
            if not worth.absent:
                return refused(self._asked, "no-approver", worth.why)
        self._gone.update(question.route for question, _ in silent)
        for question, worth in said:
            if isinstance(worth, Edited) and not silent:
                await self._yeses.put_aside(name_of_aside(question), worth)
                return worth
        await self._kept_for_later(said)
        return None

    async def _kept_for_later(self, said: list[tuple[Question, Worth | None]]) -> None:
        for question, worth in said:
            if isinstance(worth, Later):
                await self._yeses.put(name_of_open(question), seconds=self._wanted["timeout"])
            elif isinstance(worth, Approve):
                await self._yeses.put_yes(question, worth)

    def _note(self, question: Question, what: Worth | Yes | str | None) -> bool:
        return noted(self._asked.run, self._record, question, what)

    def _question(self, route: str) -> Question:
        """The question as it is kept; made once."""
        found = self._questions.get(route)
        if found is None:
            found = self._questions[route] = self._made(route)
        return found

    def _made(self, route: str) -> Question:
        asked, session = self._asked, self._asked.run.session
        places = [rule.place for rule in asked.rules]
        return Question(
            id=digest(["question", self._key, route, self._bound.call])[:32],
            key=self._key,
            text=_text(asked),
            agent=asked.agent,
            client=session.client,
            session=session.id,
            tool=asked.tool,
            arguments=asked.arguments,
            route=route,
            scopes=self._scopes,
            remember_for=self._wanted["remember_for"],
            rules=tuple(f"{place[0]}:{place[1]}" for place in places if place is not None),
            because=tuple(dict.fromkeys(rule.because for rule in asked.rules if rule.because)),
            binding=self._bound.call,
            tool_binding=self._bound.tool,
            due=self._seconds,
        )


def _text(asked: Decision) -> str:
    """What a person is asked, and every argument in full: nobody says yes to what was left out."""
    text = asked.for_person
    whole = [f"{escaped(name)}: {escaped(json_text(value, safe=False))}" for name, value in asked.arguments.items()]
    return text if all(one in text for one in whole) else f"{text}\nin full: {', '.join(whole)}"
