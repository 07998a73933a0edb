"""Many calls, many people, one ledger: a yes is taken once, whoever comes first."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.approvals.people import NO, YES, ask, resolver, says, session, settled, shell, start, word
from tests.clock import Clock
from zcpolicy import Resolver
from zcpolicy.approvals.binding import bound, name_of_yes
from zcpolicy.approvals.outcome import Outcome, Waiting
from zcpolicy.approvals.question import Answer, Approve, Approvers, Later, Question
from zcpolicy.events import Event
from zcpolicy.ledgers.contract import LedgerUnavailable, Yes
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.ledgers.sqlite import SqliteLedger
from zcpolicy.refusals import PermitError


def ledger_of(kind: str, folder: Path) -> Any:
    return MemoryLedger() if kind == "memory" else SqliteLedger(str(folder / "ledger"))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_10b_one_yes_on_record_and_many_equal_calls(kind: str, tmp_path: Path) -> None:
    """A yes that is for whichever call comes first: of twenty at once exactly one runs."""
    made = resolver(ledger=ledger_of(kind, tmp_path))
    run = made.resolve("coder", session=session(clock=Clock()))
    waits = settled(run, says(Later()), "first")
    assert isinstance(waits, Waiting)
    made.ledger.approve(Yes(name_of_yes("once", waits.questions[0]), once=True, use="", expires=None, by="ada"))

    async def all_of_them() -> list[str]:
        return [word(one) for one in await asyncio.gather(*(ask(run, says(NO), f"k{n}") for n in range(20)))]

    assert Counter(asyncio.run(all_of_them())) == {"approved": 1, "rejected": 19}
    made.ledger.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_from_many_threads(kind: str, tmp_path: Path) -> None:
    made = resolver(ledger=ledger_of(kind, tmp_path))
    run = made.resolve("coder", session=session(clock=Clock()))
    waits = settled(run, says(Later()), "first")
    assert isinstance(waits, Waiting)
    made.ledger.approve(Yes(name_of_yes("once", waits.questions[0]), once=True, use="", expires=None, by="ada"))

    def one(number: int) -> str:
        return word(run.approvals.settle_now(shell(run), Approvers(says(NO)), f"k{number}"))

    with ThreadPoolExecutor(8) as threads:
        assert Counter(threads.map(one, range(16))) == {"approved": 1, "rejected": 15}
    made.ledger.close()


def test_every_yes_is_of_its_own_call() -> None:
    """Of fifty equal calls a person approves every second: those run, and no other."""
    run = start()
    said: dict[str, bool] = {}

    async def ada(question: Question) -> Answer:
        await asyncio.sleep(0.001 * (len(said) % 7))
        said[question.key] = len(said) % 2 == 0
        return YES if said[question.key] else NO

    async def story() -> dict[str, Outcome]:
        keys = [f"k{n}" for n in range(50)]
        return dict(zip(keys, await asyncio.gather(*(ask(run, ada, key) for key in keys)), strict=True))

    ended = asyncio.run(story())
    assert {key: word(one) == "approved" for key, one in ended.items()} == said


def test_one_call_settled_twice_at_once_is_still_one_call() -> None:
    """A turn that is submitted twice under one key: what happens to it is settled by the ledger's keys, not twice here."""
    run = start()

    async def story() -> list[str]:
        return [word(one) for one in await asyncio.gather(*(ask(run, says(YES), "k1") for _ in range(3)))]

    assert asyncio.run(story()) == ["approved"] * 3
    assert word(settled(run, says(NO), "k2")) == "rejected"


def test_many_people_who_never_answer_hold_up_nobody() -> None:
    run = start()

    async def never(question: Question) -> Answer:
        await asyncio.Event().wait()
        return YES

    async def story() -> None:
        asked = [asyncio.create_task(ask(run, never, f"k{n}", within=0.2)) for n in range(100)]
        assert word(await ask(run, says(YES), "other")) == "approved"
        assert {word(await one) for one in asked} == {"no-approver"}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())


class Store(MemoryLedger):
    """A ledger whose named methods fail."""

    def __init__(self, *fails: str) -> None:
        super().__init__()
        self.fails = fails

    def approve(self, yes: Yes) -> None:
        if "approve" in self.fails:
            raise LedgerUnavailable("the store is away")
        super().approve(yes)

    def consume(self, binding: str, use: str, clock: float) -> Yes | None:
        if "consume" in self.fails:
            raise LedgerUnavailable("the store is away")
        return super().consume(binding, use, clock)


@pytest.mark.parametrize("fails", ["approve", "consume"])
@pytest.mark.parametrize("said", [YES, NO, Later(), Approve(arguments={"command": "ls"})])
def test_a_ledger_that_cannot_be_reached_is_a_no(fails: str, said: Any) -> None:
    store = Store(fails)
    run = resolver(ledger=store).resolve("coder", session=session())
    assert word(settled(run, says(said), "k1")) == "ledger-unavailable"
    store.fails = ()
    assert word(settled(run, says(NO), "k1")) == "rejected"


class Forgetful(MemoryLedger):
    """A ledger that loses what it was told."""

    def approve(self, yes: Yes) -> None:
        """Forgets it at once."""


def test_a_yes_that_is_not_on_record_is_none() -> None:
    run = resolver(ledger=Forgetful()).resolve("coder", session=session())
    assert word(settled(run, says(YES), "k1")) == "no-approver"


def full(event: Event) -> None:
    raise OSError("disk full")


class FailsAt:
    """A recorder that fails at one outcome."""

    def __init__(self, outcome: str) -> None:
        self.outcome = outcome

    def __call__(self, event: Event) -> None:
        if event.data["outcome"] == self.outcome:
            raise OSError("disk full")


@pytest.mark.parametrize(
    ("at", "said", "ends"),
    [
        ("asked", YES, "no-approver"), ("yes", YES, "no-approver"), ("no", NO, "no-approver"), ("later", Later(), "no-approver"),
        ("edited", Approve(arguments={"command": "ls"}), "no-approver"), ("nothing", None, "no-approver"),
    ],
)  # fmt: skip
def test_what_cannot_be_recorded_is_no_yes(at: str, said: Any, ends: str) -> None:
    run = start()
    assert word(settled(run, says(said), "k1", record=FailsAt(at))) == ends
    assert word(settled(run, says(NO), "k2")) == "rejected"


def test_a_recorder_that_would_have_to_be_awaited_records_nothing() -> None:
    async def waits(event: Event) -> None:
        """A mistake that type checkers find."""

    run = start()
    plain: Any = waits
    assert word(settled(run, says(YES), "k1", record=plain)) == "no-approver"


def test_a_remembered_yes_that_cannot_be_recorded_neither() -> None:
    run = start()
    assert word(settled(run, says(Approve("exact")), "k1")) == "approved"
    assert word(settled(run, None, "k2", record=full)) == "no-approver"
    assert word(settled(run, None, "k2")) == "approved"


def test_no_agent_of_the_tree_is_set_to_work_by_its_approver() -> None:
    made: Resolver = resolver()
    above = made.resolve("coder", session=session())
    child = made.resolve("tester", session=session(id="s2"), parent=above)
    other = made.resolve("coder", session=session(id="other"))
    refused: list[str] = []

    async def judge(question: Question) -> Answer:
        for run in (above, child, made.resolve("coder", session=above.session), above.renewed()):
            try:
                await run.approvals.settle(shell(run), Approvers(says(YES)), "inner")
            except PermitError as error:
                refused.append(str(error))
        inner = await other.approvals.settle(shell(other), Approvers(says(YES)), "inner")  # another tree may judge
        return YES if word(inner) == "approved" else NO

    assert word(settled(child, judge, "k1")) == "approved"
    assert refused == ["an approver cannot set the agents to work that it is asked about"] * 4


def test_nor_in_the_thread_of_a_plain_function() -> None:
    run = start()

    def judge(question: Question) -> Answer:
        run.approvals.settle_now(shell(run), Approvers(says(YES)), "inner")
        return YES

    assert word(settled(run, judge, "k1")) == "no-approver"


def test_events_name_who_acts_and_what_was_said() -> None:
    made = resolver()
    above = made.resolve("coder", session=session())
    child = made.resolve("tester", session=session(id="s2"), parent=above)
    events: list[Event] = []
    decision = shell(child)
    settled(child, says(Approve("exact", by="ada")), "k1", decision, record=events.append)
    asked, said = events
    assert {event.identity.line for event in events} == {(("coder", "s1"),)}
    assert (asked.kind, asked.data["outcome"], asked.identity.agent) == ("approval", "asked", "tester")
    assert (said.data["outcome"], said.data["by"], said.data["scope"]) == ("yes", "ada", "exact")
    assert said.data["binding"] == bound(decision).call
    assert said.data["arguments"] == '{"command": "git push"}'
    assert [rule.partition(":")[0] for rule in said.data["rules"]] == ["<text>"] * len(said.data["rules"])
