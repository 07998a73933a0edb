"""What comes between the decision about a call and its start: labels that an earlier call brought, another directory."""

import asyncio
from typing import Any

import pytest

from tests.loop.stage import Stage, play, stage, told
from zcpolicy import Session
from zcpolicy.approvals.question import Answer, Approve, Approvers, Later, Question
from zcpolicy.ledgers.memory import MemoryLedger
from zcpolicy.loop.gate import Admitted, Lapsed, Refused, admit, admit_all
from zcpolicy.loop.scripted import calls
from zcpolicy.registry.host_tools import pipeline_tool
from zcpolicy.registry.sources import InnerCall, ToolContext

URL = {"url": "https://x.org/"}
LOOK = {"tool": "look", "arguments": {"at": "x"}}
MAIL = {"tool": "mail", "arguments": {"to": "x"}}
FETCH = {"tool": "fetch", "arguments": URL}
SHELL = {"tool": "shell", "arguments": {"command": "rm passwd"}}
CHANGED = (
    "The call was not made: the rules or the session changed before it was sent. Make it again if it is still of use."
)
UNMARKED = "deny mail when marked untrusted"


def piped(on: Stage, *steps: dict[str, Any]) -> list[str]:
    on.tools["pipeline"] = pipeline_tool().run
    result, _ = play(on, calls(("pipeline", {"steps": list(steps)})), "done")
    assert on.open_reservations() == []
    return told(result)


def bringing(rules: str, **facts: Any) -> Stage:
    """A stage whose `look` brings a label as what is recalled does, or changes another fact of the session."""

    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        if not facts:
            on.session.mark(["untrusted"])
        for name, value in facts.items():
            setattr(on.session, name, value)
        return "looked"

    on = stage(rules, look=look, session=Session(cwd="/w", interactive=True, client="c", id="s"))
    return on


def test_a_step_is_decided_again_under_the_labels_that_one_before_it_brought() -> None:
    on = bringing(f"allow pipeline, look, mail; {UNMARKED}")
    (answer,) = piped(on, LOOK, MAIL)
    assert answer.startswith("[failed] 1. looked\n2. failed: The call was not made: This call is not permitted.")
    assert on.names == ["pipeline", "look"]


def test_a_step_that_the_labels_do_not_concern_runs() -> None:
    on = bringing(f"allow pipeline, look, mail, fetch; {UNMARKED}")
    assert piped(on, LOOK, FETCH) == ["1. looked\n2. fetch is done"]


def test_after_a_step_that_may_not_run_any_more_none_does_and_the_tool_is_told_which_ran() -> None:
    on = bringing(f"allow pipeline, look, mail, fetch; limit 2 calls to fetch; {UNMARKED}")
    (answer,) = piped(on, FETCH, LOOK, MAIL, FETCH)
    assert answer.splitlines()[0:2] == ["[failed] 1. fetch is done", "2. looked"]
    assert answer.splitlines()[3] == "4. failed: The call was not made, since one before it was not."
    assert on.names == ["pipeline", "fetch", "look"]
    piped(on, FETCH)  # the last of the steps gave back what it reserved
    assert on.names[3:] == ["pipeline", "fetch"]


def test_calls_at_once_are_decided_again_under_the_labels_that_one_of_them_brought() -> None:
    on = bringing(f"allow look, mail; {UNMARKED}; runtime {{ parallel_tools on }}")
    result, _ = play(on, calls(("look", {"at": "x"}), ("mail", {"to": "x"})), "done")
    assert [text.split(".")[0] for text in told(result)] == ["looked", "This call is not permitted"]
    assert on.names == ["look"]


@pytest.mark.parametrize(
    ("rule", "facts", "step"),
    {
        "cwd": ('deny shell when some paths under "/etc"', {"cwd": "/etc"}, SHELL),
        "interactive": ("ask shell", {"interactive": False}, SHELL),
        "context": ('deny mail when session.channel == "public"', {"context": {"channel": "public"}}, MAIL),
        "platform": ('deny shell when some paths under "/etc"', {"platform": "windows"}, SHELL),
        "env": ('deny shell when some paths under "/etc"', {"env": {"HOME": "/etc"}, "cwd": "/w"}, {"tool": "shell", "arguments": {"command": "rm ~/x"}}),
        "ledger": ("limit 5 calls to mail", {"ledger": False}, MAIL),
    }.values(),
)  # fmt: skip
def test_a_step_is_decided_again_under_the_facts_of_now(rule: str, facts: dict[str, Any], step: dict[str, Any]) -> None:
    async def yes(_question: Question) -> Answer:
        return Approve()

    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        for name, value in facts.items():
            setattr(on.session, name, value)
        return "looked"

    on = stage(
        f"allow pipeline, look, mail, shell; {rule}",
        above="context { channel: string }",
        look=look,
        session=Session(cwd="/w", interactive=True, client="c", id="s", context={"channel": "ops"}, env={"HOME": "/h"}),
    )
    on.approvers = Approvers(yes)
    piped(on, LOOK, step)
    assert on.names == ["pipeline", "look"]


def test_a_context_that_is_altered_in_place_is_another() -> None:
    async def look(_arguments: dict[str, Any], _context: ToolContext) -> str:
        on.session.context["channel"] = "public"
        return "looked"

    on = stage(
        'allow pipeline, look, mail; deny mail when session.channel == "public"',
        above="context { channel: string }",
        look=look,
        session=Session(interactive=True, context={"channel": "ops"}),
    )
    piped(on, LOOK, MAIL)
    assert on.names == ["pipeline", "look"]


# --- what is no news -----------------------------------------------------------------------------------------------


def test_the_mark_of_a_call_does_not_unsettle_itself() -> None:
    on = stage("allow fetch; mark untrusted on fetch; deny fetch when marked untrusted")
    play(on, calls(("fetch", URL)), "done")
    assert on.names == ["fetch"]


MARKED_LATER = "allow pipeline, mail, fetch; mark untrusted on fetch; deny mail when marked untrusted"


def test_the_mark_of_a_later_step_does_not_unsettle_those_before_it() -> None:
    on = stage(MARKED_LATER)
    assert piped(on, MAIL, FETCH) == ["1. mail is done\n2. fetch is done"]


@pytest.mark.parametrize("switch", ["on", "off"])
def test_the_mark_of_a_later_call_does_not_unsettle_those_before_it(switch: str) -> None:
    on = stage(f"{MARKED_LATER}; runtime {{ parallel_tools {switch} }}")
    play(on, calls(("mail", {"to": "x"}), ("fetch", URL), ("mail", {"to": "y"})), "done")
    assert on.names == ["mail", "fetch"]


@pytest.mark.parametrize("switch", ["on", "off"])
def test_the_mark_of_a_later_call_does_not_hide_a_label_that_came_meanwhile(switch: str) -> None:
    rules = f"allow pipeline, look, mail, fetch; mark untrusted on fetch; {UNMARKED}"
    on = bringing(f"{rules}; runtime {{ parallel_tools {switch} }}")
    piped(on, LOOK, MAIL, FETCH)
    assert on.names == ["pipeline", "look"]
    on = bringing(f"{rules}; runtime {{ parallel_tools {switch} }}")
    play(on, calls(("look", {"at": "x"}), ("mail", {"to": "x"}), ("fetch", URL)), "done")
    assert on.names == ["look", "fetch"]


def test_two_marks_of_one_call_are_one() -> None:
    twice = 'mark untrusted on fetch; mark untrusted on fetch when args.url.host == "x.org"'
    on = stage(f"allow pipeline, mail, fetch; {twice}; {UNMARKED}")
    assert piped(on, MAIL, FETCH) == ["1. mail is done\n2. fetch is done"]


def test_a_label_that_a_child_brings_is_news_whoever_brought_it_before() -> None:
    session = Session(labels=["private"])
    child = Session(above=session)
    session.mark(["untrusted"])
    assert (session.marked("untrusted"), session.marked("private")) == (1, 0)
    child.mark(["untrusted"])
    assert session.marked("untrusted") == 2


def test_a_context_that_cannot_be_told_runs_nothing() -> None:
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError("inside")

    on = stage("allow mail", session=Session(context={"channel": Mute()}))
    result, _ = play(on, calls(("mail", {"to": "x"})), "done")
    assert (result.status, told(result), on.names) == ("done", [CHANGED], [])


def test_nobody_is_asked_twice_for_what_did_not_change() -> None:
    asked: list[str] = []

    async def person(question: Question) -> Answer:
        asked.append(str(question.tool))
        return Approve()

    on = stage(f"{MARKED_LATER}; ask mail, fetch; runtime {{ parallel_tools on }}")
    on.approvers = Approvers(person)
    play(on, calls(("mail", {"to": "x"}), ("fetch", URL)), "done")
    assert (sorted(on.names), asked) == (["fetch", "mail"], ["mail", "fetch"])


# --- approvals -----------------------------------------------------------------------------------------------------


def test_a_yes_given_under_other_labels_is_asked_for_again() -> None:
    asked: list[str] = []

    async def person(question: Question) -> Answer:
        asked.append(str(question.tool))
        return Approve()

    on = bringing("allow pipeline, look, mail; ask mail")
    on.approvers = Approvers(person)
    assert piped(on, LOOK, MAIL) == ["1. looked\n2. mail is done"]
    assert asked == ["mail", "mail"]


def test_a_step_that_would_have_to_wait_for_a_person_by_now_is_not_made() -> None:
    async def person(question: Question) -> Answer:
        asked.append(question.key)
        return Approve() if len(asked) == 1 else Later()

    asked: list[str] = []
    on = bringing("allow pipeline, look, mail; ask mail")
    on.approvers = Approvers(person)
    (answer,) = piped(on, LOOK, MAIL)
    assert "2. failed: The call was not made: it needs an approval" in answer
    assert on.names == ["pipeline", "look"]


# --- what never settles, and what is given back --------------------------------------------------------------------


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_call_whose_facts_never_stand_still_is_given_up(switch: str) -> None:
    class Restless(MemoryLedger):
        """Whenever a place is taken, the session is somewhere else."""

        def reserve(self, *given: Any, **more: Any) -> Any:
            found = super().reserve(*given, **more)
            where.append("x")
            session.cwd = f"/{len(where)}"
            return found

    where: list[str] = []
    session = Session(interactive=True, client="c", id="s")
    on = stage(f"allow look, mail; runtime {{ parallel_tools {switch} }}", session=session, ledger=Restless())
    result, _ = play(on, calls(("look", {"at": "x"}), ("mail", {"to": "x"})), "done")
    assert told(result) == [CHANGED] * 2
    assert (on.names, on.open_reservations()) == ([], [])


def test_in_a_loop_of_the_hosts_own_labels_that_came_meanwhile_lapse_a_call() -> None:
    on = stage(f"allow mail; {UNMARKED}")

    async def story() -> None:
        call = await admit(on.run, "mail", {"to": "x"}, on.io)
        assert isinstance(call, Admitted)
        on.session.mark(["untrusted"])
        with pytest.raises(Lapsed):
            await call.start()
        assert isinstance(await admit(on.run, "mail", {"to": "x"}, on.io), Refused)

    asyncio.run(story())
    assert on.open_reservations() == []


def test_in_a_loop_of_the_hosts_own_calls_that_are_admitted_together_do_not_lapse_each_other() -> None:
    on = stage(MARKED_LATER)

    async def story() -> None:
        found = await admit_all(on.run, [InnerCall("mail", {"to": "x"}), InnerCall("fetch", URL)], on.io)
        assert isinstance(found, list)
        for call in found:
            await call.start()
            await call.finish(ok=True)

    asyncio.run(story())
