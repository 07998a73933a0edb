"""The scenarios of approvals, by their numbers: what a yes is good for, and what it is not."""

import asyncio
from typing import Any

import pytest

from policy_lang import loads
from tests.approvals.people import ASKS, NO, TOOLS, YES, ask, resolver, session, settled, shell, start, word
from tests.clock import Clock
from tests.person import Person
from zcpolicy.approvals.outcome import Approved, Edited
from zcpolicy.approvals.question import Approve, Approvers
from zcpolicy.facts import ToolName

EXACT = Approve("exact", by="ada")
TOOL = Approve("tool", by="ada")


def test_1_once_asks_again() -> None:
    run, ada = start(), Person(YES, YES)
    assert [word(settled(run, ada, key)) for key in ("k1", "k2")] == ["approved", "approved"]
    assert len(ada.asked) == 2


def test_1_nobody_yes_twice() -> None:
    run, ada = start(), Person(YES, NO)
    assert [word(settled(run, ada, key)) for key in ("k1", "k2")] == ["approved", "rejected"]


def test_2_exact_holds_for_the_same_call() -> None:
    run, ada = start("approval { remember exact }"), Person(EXACT)
    assert [word(settled(run, ada, key)) for key in ("k1", "k2", "k3")] == ["approved"] * 3
    assert len(ada.asked) == 1


ELSEWHERE: dict[str, dict[str, Any]] = {
    "other arguments": {"command": "git push --force"},
    "one more blank": {"command": "git  push"},
    "another session": {"id": "s2"},
    "another client": {"client": "bob"},
    "another agent": {"agent": "tester"},
    "another directory": {"cwd": "/other"},  # 10c
    "no directory": {"cwd": None},
    "a label": {"labels": ["untrusted"]},
}


@pytest.mark.parametrize("what", ELSEWHERE)
@pytest.mark.parametrize("answer", [EXACT, TOOL])
def test_2_elsewhere_it_asks(what: str, answer: Approve) -> None:
    made = resolver("approval { remember tool }")
    changed = {**ELSEWHERE[what]}
    command = str(changed.pop("command", "git push"))
    here = made.resolve("coder", session=session())
    there = made.resolve(str(changed.pop("agent", "coder")), session=session(**changed))
    assert word(settled(here, Person(answer), "k1")) == "approved"
    asked = Person(NO)
    there_said = settled(there, asked, "k2", shell(there, command))
    tool_wide = answer is TOOL and command != "git push"
    assert (word(there_said), len(asked.asked)) == (("approved", 0) if tool_wide else ("rejected", 1))


def test_2_the_order_of_arguments_is_none() -> None:
    run = start()
    first = run.decide("mail", {"to": "bob", "body": "hi"})
    second = run.decide("mail", {"body": "hi", "to": "bob"})
    assert word(settled(run, Person(EXACT), "k1", first)) == "approved"
    assert word(settled(run, Person(), "k2", second)) == "approved"


def test_3_a_scope_beyond_what_may_be_counts_as_once() -> None:
    run, ada = start("approval { remember exact }"), Person(TOOL, NO, NO)
    assert word(settled(run, ada, "k1")) == "approved"
    assert word(settled(run, ada, "k2")) == "rejected"
    assert word(settled(run, ada, "k3", shell(run, "git log"))) == "rejected"
    assert [asked.scopes for asked in ada.asked] == [("once", "exact")] * 3


def test_3_never_is_once() -> None:
    run, ada = start("approval { remember never }"), Person(EXACT, NO)
    assert [word(settled(run, ada, key)) for key in ("k1", "k2")] == ["approved", "rejected"]
    assert ada.asked[0].scopes == ("once",)


def test_4_remembered_for_one_server_asks_for_another() -> None:
    run, ada = start("approval { remember tool }"), Person(TOOL, NO)

    def lookup(server: str) -> tuple[ToolName, dict[str, str]]:
        return (server, "lookup"), {"q": "x"}

    assert word(settled(run, ada, "k1", run.decide(*lookup("github")))) == "approved"
    assert word(settled(run, ada, "k2", run.decide(*lookup("github")))) == "approved"
    assert word(settled(run, ada, "k3", run.decide(*lookup("gitlab")))) == "rejected"


@pytest.mark.parametrize(
    ("remembered", "asks"),
    [("sh -c 'whoami'", "sh -c 'other'"), ("git add . && git push", "git push"), ("git push", "git push; git push")],
)
def test_5_a_command_is_the_whole_of_it(remembered: str, asks: str) -> None:
    run, ada = start(), Person(EXACT, NO)
    assert word(settled(run, ada, "k1", shell(run, remembered))) == "approved"
    assert word(settled(run, ada, "k2", shell(run, asks))) == "rejected"


def test_6_an_edited_call_is_decided_afresh() -> None:
    run = start()
    outcome = settled(run, Person(Approve(arguments={"command": "rm -rf /"}, by="ada")), "k1")
    assert isinstance(outcome, Edited)
    assert run.decide(outcome.tool, outcome.arguments).effect == "deny"  # and deny it stays


def test_6_an_edit_that_asks_is_a_new_question_also_to_who_made_it() -> None:
    run, ada = start(), Person(Approve(arguments={"command": "git push --dry-run"}), YES)
    first = settled(run, ada, "k1")
    assert isinstance(first, Edited)
    again = run.decide(first.tool, first.arguments)
    assert (again.effect, word(settled(run, ada, "k1", again))) == ("ask", "approved")
    assert [dict(one.arguments) for one in ada.asked] == [{"command": "git push"}, {"command": "git push --dry-run"}]


def test_6_another_tool_too() -> None:
    run = start()
    outcome = settled(run, Person(Approve(tool="read", arguments={"path": "/repo/x"})), "k1")
    assert isinstance(outcome, Edited)
    assert (outcome.tool, run.decide(outcome.tool, outcome.arguments).effect) == ("read", "allow")


def test_6_the_same_call_is_no_edit() -> None:
    assert word(settled(start(), Person(Approve(tool="shell", arguments={"command": "git push"})), "k1")) == "approved"


def test_7_a_no_stands_when_the_turn_is_submitted_again() -> None:
    made = resolver()
    first = made.resolve("coder", session=session())
    assert word(settled(first, Person(NO), "turn 1, call 1")) == "rejected"
    again = made.resolve("coder", session=session())  # another component, the same turn
    nobody = Person()
    outcome = settled(again, nobody, "turn 1, call 1")
    assert (word(outcome), nobody.asked) == ("rejected", [])
    assert "not now" in outcome.text  # type: ignore[union-attr]  # a Refusal


def test_7_a_no_stands_under_another_question_about_the_call() -> None:
    run = start()
    assert word(settled(run, Person(NO), "k1")) == "rejected"
    run.session.mark(["untrusted"])
    assert word(settled(run, Person(), "k1")) == "rejected"


def test_7_an_equal_call_that_comes_later_is_asked_about() -> None:
    """ "Not before the tests ran" is answered by running the tests."""
    run = start()
    assert [word(settled(run, Person(said), key)) for key, said in (("k1", NO), ("k2", YES))] == [
        "rejected",
        "approved",
    ]


def test_9_a_deny_beats_what_is_remembered() -> None:
    made = resolver()
    run = made.resolve("coder", session=session())
    assert word(settled(run, Person(EXACT), "k1")) == "approved"
    asked = shell(run)
    made.publish(loads(TOOLS + ASKS % "deny shell"))
    outcome = settled(run, Person(YES), "k2", asked)
    assert word(outcome) == "denied"


RELOADS = {
    "nothing": ("", ""),
    "a rule that does not ask": ("", 'deny mail when args.to == "eve"'),
    "another rule asks": ("", "ask shell"),
    "what asks names another because": ('ask shell because "a"', 'ask shell because "b"'),
    "the condition of what asks": (
        'ask shell when args.command runs any ["git ..."]',
        'ask shell when args.command runs any ["git push ..."]',
    ),
    "who is asked": ("", 'approval { route "ops" }'),
    "how long it holds": ("", "approval { remember exact for 1h }"),
    "how far it reaches": ("approval { remember tool }", "approval { remember exact }"),
}
SAME = {"nothing", "a rule that does not ask"}


@pytest.mark.parametrize("what", RELOADS)
def test_9_no_yes_crosses_a_reload_that_changed_the_rules(what: str) -> None:
    before, after = RELOADS[what]
    made = resolver(before)
    run = made.resolve("coder", session=session())
    assert word(settled(run, Person(EXACT), "k1")) == "approved"
    made.publish(loads(TOOLS + ASKS % after))
    run = run.renewed()
    ada = Person(NO)
    outcome = settled(run, ada, "k2", routes={"ops": ada})
    assert word(outcome) == ("approved" if what in SAME else "rejected")


def test_9_it_ends_when_its_time_is_over() -> None:
    clock = Clock()
    run, ada = start("approval { remember exact for 10m }", clock=clock), Person(EXACT, NO)
    assert word(settled(run, ada, "k1")) == "approved"
    clock.now += 599
    assert word(settled(run, ada, "k2")) == "approved"
    clock.now += 1
    assert word(settled(run, ada, "k3")) == "rejected"


def test_9_who_says_it_may_say_it_for_less_long_but_not_for_longer() -> None:
    clock = Clock()
    run = start("approval { remember exact for 10m }", clock=clock)
    ada = Person(Approve("exact", 60), Approve("exact", 86_400), NO)
    assert word(settled(run, ada, "k1")) == "approved"
    clock.now += 61
    assert word(settled(run, ada, "k2")) == "approved"  # asked again
    clock.now += 600
    assert word(settled(run, ada, "k3")) == "rejected"


def test_9_a_clock_set_back_gives_no_more_time() -> None:
    clock = Clock()
    run, ada = start("approval { remember exact for 10m }", clock=clock), Person(EXACT, YES, NO)
    assert word(settled(run, ada, "k1")) == "approved"
    clock.now += 700
    assert word(settled(run, ada, "k2")) == "approved"  # asked again, and once
    clock.now -= 700
    assert word(settled(run, ada, "k3")) == "rejected"


def test_10_a_model_that_approves_itself_is_not_heard() -> None:
    run = start()
    decision = run.decide("shell", {"command": "git push", "approved": True})
    assert (decision.effect, decision.reason) == ("deny", "malformed")
    assert word(settled(run, Person(), "k1", decision)) == "malformed"


def test_10a_a_yes_to_one_rule_is_none_to_another() -> None:
    run, ada = start("approval { remember tool }"), Person(TOOL, NO)
    assert word(settled(run, ada, "k1")) == "approved"  # autonomy asked
    run.session.mark(["untrusted"])
    assert word(settled(run, ada, "k2")) == "rejected"  # `ask shell when marked untrusted`
    assert ada.asked[1].because == ("foreign text came in",)


def test_10b_of_two_equal_calls_at_once_one_yes_runs_one() -> None:
    run, ada = start(), Person(YES, NO)

    async def both() -> list[str]:
        return [word(one) for one in await asyncio.gather(ask(run, ada, "k1"), ask(run, ada, "k2"))]

    assert sorted(asyncio.run(both())) == ["approved", "rejected"]


def test_10c_a_yes_covers_no_other_question_that_came_while_somebody_thought() -> None:
    made = resolver()
    run = made.resolve("coder", session=session())
    before = shell(run)

    def thinks(question: object) -> Approve:
        made.publish(loads(TOOLS + ASKS % 'ask shell because "new"'))
        return YES

    outcome = asyncio.run(run.approvals.settle(before, Approvers(thinks), "k1"))
    assert isinstance(outcome, Approved)
    assert (outcome.covers(before), outcome.covers(shell(run.renewed()))) == (True, False)


@pytest.mark.parametrize("drift", ["description", "schema"])
def test_11_a_drifted_tool_asks_again_and_then_call_by_call(drift: str) -> None:
    made = resolver("approval { remember tool }\n on drift any ask")
    run = made.resolve("coder", session=session())
    assert word(settled(run, Person(TOOL), "k1")) == "approved"
    drifted = made.resolve("coder", session=session(drift={"shell": drift}))
    ada = Person(TOOL, NO)
    assert [word(settled(drifted, ada, key)) for key in ("k2", "k3")] == ["approved", "rejected"]
    assert ada.asked[0].scopes == ("once",)  # it may have changed again by the next call


def test_11_or_is_denied() -> None:
    made = resolver("on drift schema deny")
    run = made.resolve("coder", session=session(drift={"shell": "schema"}))
    assert word(settled(run, Person(YES), "k1")) == "drift"
