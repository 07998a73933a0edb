"""Who is asked, how long, and what becomes of a call that nobody says yes to."""

import asyncio
import gc
import re
import threading
import warnings
from collections.abc import Awaitable, Callable
from time import monotonic, sleep
from typing import Any

import pytest

from tests.approvals.people import (
    NO,
    YES,
    ask,
    outcomes,
    resolver,
    says,
    session,
    settled,
    shell,
    start,
    word,
)  # fmt: skip
from tests.clock import Clock
from tests.person import Person
from zcpolicy import Session
from zcpolicy.approvals import hearing
from zcpolicy.approvals.asking import over
from zcpolicy.approvals.outcome import Approved, Refusal
from zcpolicy.approvals.question import Absent, Answer, Approve, Approvers, Question, Reject
from zcpolicy.events import Event
from zcpolicy.loop.access import ResolvedIo, ResolvedModelAccess
from zcpolicy.loop.scripted import ScriptedModel
from zcpolicy.refusals import PermitError

ROUTES = """
agent coder {
    autonomy supervised
    allow any
    approval { route "ops", timeout 5s }
    %s
}
ceiling {
    autonomy supervised
    approval { route "security" }
}
"""


def routed(**routes: Any) -> tuple[str, list[str]]:
    """How it ends where these routes are there, and which were asked."""
    run = resolver(text=ROUTES).resolve("coder", session=session())
    outcome = settled(run, Person(), "k1", routes=routes)
    return word(outcome), sorted(name for name, one in routes.items() if isinstance(one, Person) and one.asked)


class TestRoutes:
    def test_every_asking_bodys_route_says_yes(self) -> None:
        assert routed(ops=Person(YES), security=Person(YES)) == ("approved", ["ops", "security"])

    @pytest.mark.parametrize(
        ("ops", "security", "ends"),
        [
            (YES, NO, "rejected"), (NO, YES, "rejected"), (NO, NO, "rejected"), (YES, None, "no-approver"),
            (YES, ValueError("x"), "no-approver"), (YES, True, "no-approver"),
        ],
    )  # fmt: skip
    def test_one_no_is_enough(self, ops: Any, security: Any, ends: str) -> None:
        assert routed(ops=Person(ops), security=Person(security))[0] == ends

    def test_a_route_that_is_not_there_is_nobody_and_the_others_are_not_bothered(self) -> None:
        assert routed(ops=Person(YES)) == ("no-approver", [])

    def test_who_is_named_by_one_body_answers_for_no_other(self) -> None:
        assert routed(ops=Person(YES), audit=Person(YES)) == ("no-approver", [])

    def test_they_are_asked_at_the_same_time(self) -> None:
        met = threading.Barrier(2, timeout=5)

        def both(question: Question) -> Answer:
            met.wait()
            return Approve(by=question.route)

        run = resolver(text=ROUTES).resolve("coder", session=session())
        outcome = settled(run, None, "k1", routes={"ops": both, "security": both})
        assert isinstance(outcome, Approved)
        assert outcome.by == ("ops", "security")

    def test_the_first_no_ends_it_for_the_others(self) -> None:
        ended: list[str] = []

        async def slow(question: Question) -> Answer:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append("async")
                raise
            return YES

        async def story() -> None:
            run = resolver(text=ROUTES).resolve("coder", session=session())
            began = monotonic()
            events: list[Event] = []
            outcome = await ask(run, None, "k1", routes={"ops": slow, "security": Person(NO)}, record=events.append)
            assert (word(outcome), ended, monotonic() - began < 30) == ("rejected", ["async"], True)
            assert outcomes(events) == ["asked", "asked", "withdrawn", "no"]
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(story())

    def test_a_plain_function_can_see_that_it_is_over(self) -> None:
        left = threading.Event()

        def patient(question: Question) -> Answer:
            while not over():
                sleep(0.01)
            left.set()
            return YES

        run = resolver(text=ROUTES).resolve("coder", session=session())
        assert word(settled(run, None, "k1", routes={"ops": patient, "security": Person(NO)})) == "rejected"
        assert left.wait(5)
        assert not over()

    def test_a_route_works_where_no_person_is(self) -> None:
        run = resolver('approval { route "ops" }').resolve("coder", session=session(interactive=False))
        assert word(settled(run, Person(), "k1", routes={"ops": Person(YES)})) == "approved"

    def test_a_route_of_one_body_and_the_person_of_another(self) -> None:
        text = ROUTES.replace('approval { route "security" }', "")
        run = resolver(text=text).resolve("coder", session=session())
        ada, ops = Person(YES), Person(YES)
        outcome = settled(run, ada, "k1", routes={"ops": ops})
        assert (word(outcome), len(ada.asked), len(ops.asked)) == ("approved", 1, 1)
        assert word(settled(run, Person(NO), "k2", routes={"ops": Person(YES)})) == "rejected"

    def test_a_yes_of_one_route_is_none_of_another(self) -> None:
        made = resolver('approval { route "ops", remember exact }')
        run = made.resolve("coder", session=session())
        ops = Person(Approve("exact"))
        assert word(settled(run, None, "k1", routes={"ops": ops})) == "approved"
        assert word(settled(run, None, "k2", routes={})) == "approved"  # on record: nobody has to be there
        assert word(settled(run, None, "k3", shell(run, "ls"), routes={})) == "no-approver"


class TestFallback:
    TEXT = 'approval { route "ops", on_no_approver route "duty" }'

    def story(self, **routes: Any) -> str:
        return word(settled(start(self.TEXT), Person(), "k1", routes=routes))

    def test_where_nobody_is_there_another_route_is_asked(self) -> None:
        assert self.story(duty=Person(YES)) == "approved"

    def test_and_is_not_where_somebody_is(self) -> None:
        duty = Person()
        assert (self.story(ops=Person(YES), duty=duty), duty.asked) == ("approved", [])

    @pytest.mark.parametrize("said", [NO, ValueError(), None])
    def test_silence_and_a_no_are_not_passed_on(self, said: Any) -> None:
        duty = Person()
        assert self.story(ops=Person(said), duty=duty) in ("rejected", "no-approver")
        assert duty.asked == []

    def test_whoever_says_that_nobody_is_there_is_as_good_as_nobody(self) -> None:
        assert self.story(ops=Person(Absent("gone home")), duty=Person(YES)) == "approved"
        assert self.story(ops=Person(Absent()), duty=Person(Absent())) == "no-approver"
        assert self.story(ops=Person(Absent())) == "no-approver"

    def test_whom_nobody_can_stand_in_for_is_asked_beside_the_other_route(self) -> None:
        """Both bodies name one; the agent's own route is there all the time."""
        text = ROUTES.replace("timeout 5s", 'on_no_approver route "duty"')
        text = text.replace('route "security"', 'route "security", on_no_approver route "duty"')
        duty = Person(YES)
        routes = {"security": Person(Absent()), "ops": says(YES), "duty": duty}
        run = resolver(text=text).resolve("coder", session=session())
        assert word(settled(run, None, "k1", routes=routes)) == "approved"
        assert len(duty.asked) == 1

    def test_the_other_route_may_say_no(self) -> None:
        assert self.story(duty=Person(NO)) == "rejected"

    def test_or_be_absent_too(self) -> None:
        assert self.story(audit=Person(YES)) == "no-approver"

    def test_every_asking_body_has_to_name_one(self) -> None:
        text = ROUTES.replace("timeout 5s", 'on_no_approver route "duty"')
        run = resolver(text=text).resolve("coder", session=session())
        assert word(settled(run, None, "k1", routes={"duty": Person(YES), "security": Person(YES)})) == "no-approver"

    def test_for_the_person_too(self) -> None:
        run = start('approval { on_no_approver route "duty" }', interactive=False)
        assert word(settled(run, Person(), "k1", routes={"duty": Person(YES)})) == "approved"


class Lies(Approve):
    """A yes that is none of ours."""


async def never(question: Question) -> Answer:
    await asyncio.Event().wait()
    return YES


async def stubborn(question: Question) -> Answer:
    """Does not let itself be cancelled, for a while."""
    ends = monotonic() + 1.5
    while monotonic() < ends:
        try:
            await asyncio.sleep(ends - monotonic())
        except asyncio.CancelledError:
            continue
    return YES


def by_a_coroutine(question: Question) -> Awaitable[Answer]:
    """A plain function whose answer is to be awaited."""
    return plainly(question)


def hangs(question: Question) -> Answer:
    sleep(3)
    return YES


async def cancels_itself(question: Question) -> Answer:
    raise asyncio.CancelledError


def exits(question: Question) -> Answer:
    raise SystemExit(0)


async def exits_in_the_loop(question: Question) -> Answer:
    raise SystemExit(0)


async def panics(question: Question) -> Answer:
    raise BaseExceptionGroup("two", [SystemExit(1), ValueError("secret")])


async def generator_exits(question: Question) -> Answer:
    raise GeneratorExit


def exits_when_awaited(question: Question) -> Awaitable[Answer]:
    return exits_in_the_loop(question)


def of_a_future(question: Question) -> Awaitable[Answer]:
    return never(question)


def raises(question: Question) -> Answer:
    raise RuntimeError("secret")


SILENT: dict[str, Any] = {
    "raises": raises,
    "exits": exits,
    "exits in the loop": exits_in_the_loop,
    "exits when it is awaited": exits_when_awaited,
    "ends in what is no exception": panics,
    "ends as a generator does": generator_exits,
    "never ends": never,
    "hangs in its thread": hangs,
    "will not be cancelled": stubborn,
    "cancels itself": cancels_itself,
    "gives a coroutine that never ends": of_a_future,
    "true": says(True),
    "none": says(None),
    "text": says("yes"),
    "the class": says(Approve),
    "a subclass": says(Lies()),
    "a scope that is none": says(Approve("forever")),  # type: ignore[arg-type]  # on purpose
    "time that is none": says(Approve("exact", float("nan"))),
    "no time": says(Approve("exact", 0)),
    "time before": says(Approve("exact", -1.0)),
    "endless time": says(Approve("exact", float("inf"))),
    "somebody who is nobody": says(Approve(by=None)),  # type: ignore[arg-type]  # on purpose
    "edits that are none": says(Approve(arguments=[("command", "ls")])),  # type: ignore[arg-type]  # on purpose
    "edits that are no JSON": says(Approve(arguments={"command": object()})),
    "edits that are not finite": says(Approve(arguments={"command": float("inf")})),
    "a tool that is none": says(Approve(tool=("github", "x", "y"))),  # type: ignore[arg-type]  # on purpose
    "a list as a tool": says(Approve(tool=["github", "x"])),  # type: ignore[arg-type]  # on purpose
    "takes nothing": lambda: YES,
}


@pytest.mark.parametrize("who", SILENT)
def test_8_what_is_no_answer_is_no_yes(who: str) -> None:
    run, events = start(), list[Event]()
    began = monotonic()

    async def story() -> Any:
        return await ask(run, SILENT[who], "k1", record=events.append, within=0.3)

    loop = asyncio.new_event_loop()
    outcome = loop.run_until_complete(story())
    assert (word(outcome), outcomes(events)) == ("no-approver", ["asked", "nothing"])
    assert "secret" not in outcome.text
    assert monotonic() - began < 2.5
    assert (SILENT[who] is stubborn) == bool(asyncio.all_tasks(loop))  # it is left alone
    assert outcome.decision.effect == "deny"
    while asyncio.all_tasks(loop):
        loop.run_until_complete(asyncio.sleep(0.2))
    loop.close()


@pytest.mark.parametrize(("who", "kind"), [(raises, "RuntimeError: secret"), (exits_in_the_loop, "SystemExit: 0")])
def test_8_the_record_says_how_an_approver_failed(who: Callable[[Question], Any], kind: str) -> None:
    events: list[Event] = []
    settled(start(), who, "k1", record=events.append)
    assert events[-1].data["note"] == f"the approver failed: {kind}"


def test_8_the_log_has_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    for who in (raises, exits_in_the_loop):
        settled(start(), who, "k1")
    said = ["RuntimeError: secret", "SystemExit: 0"]
    assert [one.getMessage() for one in caplog.records] == [f"the approver of the person failed: {one}" for one in said]
    assert "in raises\n" in caplog.text


WRONG: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "`approvers` is an `Approvers`": (ResolvedIo, {"approvers": raises}),
    "`record` is a function": (ResolvedIo, {"record": []}),
    "`person` is a function of a `Question`": (Approvers, {"person": Approve()}),
    "a route is a function of a `Question`": (Approvers, {"routes": {"ops": "ann"}}),
    "`routes` maps names to functions": (Approvers, {"routes": [raises]}),
    "`model` has a `name`": (ResolvedModelAccess, {"model": "gpt"}),
    "`prices` has a `cost`": (ResolvedModelAccess, {"model": ScriptedModel(), "prices": {"gpt": 1}}),
    "`max_output_tokens` is a whole number": (
        ResolvedModelAccess,
        {"model": ScriptedModel(), "max_output_tokens": "9"},
    ),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_is_no_approver_recorder_or_model_is_told_where_it_is_given(said: str) -> None:
    make, given = WRONG[said]
    with pytest.raises(TypeError, match=re.escape(said)):
        make(**given)


def test_8_a_session_that_is_not_interactive_is_the_cause() -> None:
    found = start(interactive=False).decide("shell", {"command": "git push"})
    assert (found.reason, found.note) == (
        "no-approver",
        "the session is not interactive, so that nobody is there to be asked",
    )


def test_8_nobody_is_there() -> None:
    events: list[Event] = []
    outcome = settled(start(), None, "k1", record=events.append)
    assert isinstance(outcome, Refusal)
    assert (outcome.reason, outcomes(events)) == ("no-approver", ["nothing"])
    assert outcome.text == "This call needs somebody's approval, and nobody can be asked. Go on without it."


def test_8_a_session_without_a_person_is_denied_before() -> None:
    run = start(interactive=False)
    assert word(settled(run, Person(), "k1")) == "no-approver"


def test_a_person_who_left_is_not_asked() -> None:
    run = start()
    decision = shell(run)
    run.session.interactive = False
    assert word(settled(run, Person(), "k1", decision)) == "no-approver"


@pytest.mark.parametrize("interactive", [True, False])
def test_a_child_is_asked_about_where_its_delegator_is(interactive: bool) -> None:
    """The child's rules ask; whether somebody is there is the parent's to say."""
    made = resolver()
    above = made.resolve("coder", session=session(interactive=interactive))
    child = made.resolve("tester", session=session(id="s2", interactive=True), parent=above)
    assert word(settled(child, Person(YES), "k1")) == ("approved" if interactive else "no-approver")


def test_every_argument_stands_in_the_question_in_full_under_its_name() -> None:
    """What is elided does not count as shown because its text stands somewhere else."""
    long, run, ada = "a" * 500, start(), Person(NO)
    settled(run, ada, "k1", run.decide("mail", {"to": long, "body": f"{long} b"}))
    text = ada.asked[0].text
    assert f'to: "{long}"' in text
    assert f'body: "{long} b"' in text
    settled(run, ada := Person(NO), "k2", run.decide("mail", {"to": "bob"}))
    assert "in full" not in ada.asked[0].text


@pytest.mark.parametrize(
    ("approval", "within", "due"),
    [
        ("", None, 86_400),
        ("approval { timeout 2m }", None, 120),
        ("approval { timeout 2m }", 7.0, 7),
        ("", 7.0, 7),
        ("", -1.0, 0),
    ],
)
def test_the_shortest_time_holds(approval: str, within: float | None, due: float) -> None:
    ada = Person(YES)
    settled(start(approval), ada, "k1", within=within)
    assert [one.due for one in ada.asked] == [due]


def test_a_time_out_asks_again_when_the_turn_is_submitted_again() -> None:
    run = start("approval { timeout 1s }")
    assert word(settled(run, never, "k1", within=0.05)) == "no-approver"
    assert word(settled(run, Person(YES), "k1")) == "approved"


def test_a_turn_that_is_cancelled_leaves_nobody_asked() -> None:
    ended: list[bool] = []

    async def waits(question: Question) -> Answer:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return YES

    async def story() -> None:
        run = start()
        turn = asyncio.create_task(ask(run, waits, "k1"))
        await asyncio.sleep(0.05)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert (ended, asyncio.all_tasks()) == ([True], {asyncio.current_task()})
        assert word(await ask(run, Person(NO), "k1")) == "rejected"  # and nothing was said

    asyncio.run(story())


def test_a_late_coroutine_is_not_forgotten() -> None:
    """A plain function gives an awaitable after its time: it is closed, and nothing warns of it."""

    def late(question: Question) -> Awaitable[Answer]:
        sleep(0.2)
        return never(question)

    async def story() -> None:
        assert word(await ask(start(), late, "k1", within=0.05)) == "no-approver"
        await asyncio.sleep(0.3)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(story())
        gc.collect()


class Office:
    """An approver that is an object."""

    async def __call__(self, question: Question) -> Answer:
        await asyncio.sleep(0)
        return YES


async def plainly(question: Question) -> Answer:
    await asyncio.sleep(0)
    return YES


@pytest.mark.parametrize("who", [Office(), plainly, by_a_coroutine, says(YES)])
def test_approvers_of_every_kind(who: Callable[[Question], Any]) -> None:
    assert word(settled(start(), who, "k1")) == "approved"


def test_a_plain_function_does_not_hold_up_the_loop() -> None:
    async def story() -> None:
        ticks = 0
        done = threading.Event()

        def thinks(question: Question) -> Answer:
            done.wait(5)
            return YES

        asked = asyncio.create_task(ask(start(), thinks, "k1"))
        for _ in range(10):
            await asyncio.sleep(0.01)
            ticks += 1
        done.set()
        assert (word(await asked), ticks) == ("approved", 10)

    asyncio.run(story())


def test_threads_of_approvers_that_never_return_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "_threads", threading.BoundedSemaphore(2))
    run, free, events = start(), threading.Event(), list[Event]()
    both = threading.Barrier(3, timeout=10)

    def stuck(question: Question) -> Answer:
        both.wait()
        free.wait(10)
        return NO

    async def story() -> None:
        waiting = [asyncio.create_task(ask(run, stuck, key)) for key in ("k1", "k2")]
        await asyncio.to_thread(both.wait)
        assert word(await ask(run, says(YES), "k3", record=events.append)) == "no-approver"
        assert events[-1].data["note"] == "the approver failed: too many approvers have not returned"
        free.set()
        assert [word(await one) for one in waiting] == ["rejected", "rejected"]
        assert word(await ask(run, says(YES), "k4")) == "approved"

    asyncio.run(story())


class TestWithoutAnEventLoop:
    def now(self, person: Any, **more: Any) -> str:
        run = start("approval { timeout 1s }")
        return word(run.approvals.settle_now(shell(run), Approvers(person), "k1", **more))

    def test_it_is_the_same(self) -> None:
        assert [self.now(says(one)) for one in (YES, NO, None)] == ["approved", "rejected", "no-approver"]
        assert self.now(hangs) == "no-approver"

    def test_a_coroutine_function_is_refused(self) -> None:
        with pytest.raises(PermitError, match="await settle"):
            self.now(plainly)

    def test_a_coroutine_is_no_answer(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert self.now(by_a_coroutine) == "no-approver"
            gc.collect()

    def test_inside_an_event_loop_it_says_so(self) -> None:
        async def story() -> None:
            with pytest.raises(PermitError, match="await settle"):
                self.now(says(YES))

        asyncio.run(story())


class TestMistakes:
    def test_a_decision_of_another_execution(self) -> None:
        decision = shell(start())
        with pytest.raises(PermitError, match="another execution"):
            settled(start(), Person(YES), "k1", decision)

    @pytest.mark.parametrize("key", ["", None, 7, b"k"])
    def test_a_call_without_a_key(self, key: Any) -> None:
        with pytest.raises(PermitError, match="key"):
            settled(start(), Person(YES), key)

    def test_what_is_allowed_needs_nobody(self) -> None:
        run = start()
        outcome = settled(run, None, "k1", run.decide("read", {"path": "/repo/x"}))
        assert isinstance(outcome, Approved)
        assert not outcome.covers(shell(run))

    def test_a_decision_is_not_believed(self) -> None:
        run = start()
        decision = shell(run, "rm -rf /")
        decision.effect = "ask"
        assert word(settled(run, Person(YES), "k1", decision)) == "denied"
        asked = shell(run)
        asked.arguments["command"] = "rm -rf /"
        assert word(settled(run, Person(YES), "k2", asked)) == "denied"

    def test_a_clock_that_does_not_tell_the_time(self) -> None:
        run = start(clock=lambda: float("nan"))
        assert word(settled(run, Person(YES), "k1")) == "ledger-unavailable"

    def test_the_time_of_a_yes_begins_when_it_is_given(self) -> None:
        clock = Clock()
        run = start("approval { remember exact for 1s }", clock=clock)

        def slow(question: Question) -> Answer:
            return YES

        def record(event: Event) -> None:
            clock.now += 0.6  # asked, yes: time goes on between the yes and its use

        assert word(settled(run, slow, "k1", record=record)) == "approved"


def test_the_question_tells_what_is_asked() -> None:
    ada = Person(NO)
    run = start(labels=["untrusted"])
    settled(run, ada, "k7")
    (one,) = ada.asked
    assert one.text.split("\n") == [
        'Allow shell(command: "git push") for agent coder?',
        "because: foreign text came in",
        "reason: asked",
    ]
    assert (one.agent, one.client, one.session, one.tool, one.route) == ("coder", "ada", "s1", "shell", "")
    assert (one.key, one.because, one.scopes, one.remember_for) == (
        "k7",
        ("foreign text came in",),
        ("once", "exact"),
        None,
    )
    assert len(one.rules) == 2


def test_nothing_of_the_call_is_left_out() -> None:
    ada = Person(NO)
    run = start()
    settled(run, ada, "k1", run.decide("mail", {"to": "bob", "body": "a" * 400 + "SEND EVERYTHING TO EVE" + "a" * 400}))
    assert "SEND EVERYTHING TO EVE" in ada.asked[0].text


def test_an_approver_that_alters_the_question_alters_nothing() -> None:
    def alters(question: Question) -> Answer:
        arguments: Any = question.arguments
        arguments["command"] = "rm -rf /"
        object.__setattr__(question, "scopes", ("once", "exact", "tool"))
        return Approve("tool")

    run = start("approval { remember exact }")
    outcome = settled(run, alters, "k1")
    assert isinstance(outcome, Approved)
    assert outcome.covers(shell(run))
    assert word(settled(run, Person(NO), "k2", shell(run, "ls"))) == "rejected"


def test_an_edit_that_is_altered_later_is_not() -> None:
    wanted: dict[str, Any] = {"command": "ls"}
    outcome = settled(start(), Person(Approve(arguments=wanted)), "k1")
    wanted["command"] = "git push"
    assert (outcome.arguments) == {"command": "ls"}  # type: ignore[union-attr]  # an Edited


def test_a_no_tells_the_model_why_without_what_a_terminal_acts_on() -> None:
    outcome = settled(start(), Person(Reject("use\x1b[2J the mirror", "ada")), "k1")
    assert isinstance(outcome, Refusal)
    assert outcome.text.endswith(r"They say: use\u{1b}[2J the mirror")
    assert (outcome.by, outcome.decision.reason) == ("ada", "denied")


def test_sessions_need_no_client() -> None:
    run = resolver().resolve("coder", session=Session(interactive=True))
    assert word(settled(run, Person(YES), "k1")) == "approved"
