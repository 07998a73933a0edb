"""Evaluations: what is true, what is false, and why; the semantics of many; nothing is spent by asking."""

from typing import Any

import pytest

from policy_lang import loads
from zcpolicy import Session

from .pdp import POLICY, agent, answers, asked, resolver_of, tool

EU = {"context": {"region": "eu"}}

CASES: dict[str, tuple[Any, bool, str, str]] = {
    "allowed": (asked("lookup", order=1), True, "allow", "allowed"),
    "a tool of a server": (asked("github/get_issue", number=1), True, "allow", "allowed"),
    "a name in quotes": (asked('"odd name"'), True, "allow", "allowed"),
    "no rule": (asked("shell", command="ls"), False, "deny", "not-granted"),
    "asked": (asked("refund", {"interactive": True}, order=1, amount=15), False, "ask", "asked"),
    "nobody is there to be asked": (asked("refund", order=1, amount=15), False, "deny", "no-approver"),
    "a label": (asked("refund", {"labels": ["untrusted"]}, order=1, amount=1), False, "deny", "denied"),
    "without it": (asked("refund", order=1, amount=1), True, "allow", "allowed"),
    "a fact of the context": (asked("github/create_issue", EU, title="x"), True, "allow", "allowed"),
    "another one": (asked("github/create_issue", {"context": {"region": "us"}}, title="x"), False, "deny", "not-granted"),
    "no fact": (asked("github/create_issue", title="x"), False, "deny", "not-granted"),
    "what is none of ours in the context": (asked("lookup", {"time": "1985-10-26T01:22-07:00"}, order=1), True, "allow", "allowed"),
    "members that nobody knows": ({**asked("lookup", order=1), "more": 1}, True, "allow", "allowed"),
    "an agent that is none": (asked("lookup", subject=agent("x"), order=1), False, "deny", "unknown-agent"),
    "a user": (asked("lookup", subject={"type": "user", "id": "coder"}, order=1), False, "deny", "unknown-agent"),
    "a tool that is none": (asked("look_up", order=1), False, "deny", "unknown-tool"),
    "several tools": (asked("github/*"), False, "deny", "unknown-tool"),
    "a pair in one name": (asked('"github/get_issue"', number=1), False, "deny", "unknown-tool"),
    "a document": ({**asked(), "resource": {"type": "document", "id": "lookup"}}, False, "deny", "unknown-tool"),
    "another action": ({**asked("lookup", order=1), "action": {"name": "read"}}, False, "deny", "not-granted"),
    "arguments that do not fit": (asked("lookup", order="one"), False, "deny", "malformed"),
    "arguments that are no object": ({**asked(), "resource": {"type": "tool", "id": "lookup", "properties": {"arguments": [1]}}}, False, "deny", "malformed"),
    "arguments elsewhere": ({**asked(), "resource": {"type": "tool", "id": "lookup", "properties": {"order": 1}}}, False, "deny", "malformed"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_decision(case: str) -> None:
    request, decision, effect, reason = CASES[case]
    (answer,) = answers("evaluation", request)
    assert (answer["decision"], answer["context"]["effect"], answer["context"]["reason"]) == (decision, effect, reason)


def test_reasons_for_admins_name_places_and_those_for_users_do_not() -> None:
    (answer,) = answers("evaluation", asked("refund", {"labels": ["untrusted"]}, order=1, amount=1))
    context = answer["context"]
    line = next(i for i, one in enumerate(POLICY.splitlines(), 1) if "marked untrusted" in one)
    assert context["reason_admin"]["en"].startswith(f"denied\nteam.zcpolicy:{line}: deny refund when marked untrusted")
    assert "no money on a stranger's word" in context["reason_user"]["en"]
    for one in (context["reason_user"]["en"], context["for_model"]):
        assert "zcpolicy" not in one
        assert "marked" not in one
    assert len(context["digest"]) == 64
    assert context["generation"] == 1


def test_what_is_to_run_is_what_was_judged() -> None:
    exact = asked("refund", order=1, amount=10)
    exact["resource"]["properties"]["arguments"]["note"] = "é\u2028\n\u202e"
    defaults, spelt = answers("evaluation", asked('"odd name"'), exact)
    assert defaults["context"]["arguments"] == {"x": 7}
    assert spelt["context"]["arguments"] == {"order": 1, "amount": 10, "note": "é\u2028\n\u202e"}


def test_an_ask_says_what_yes_is_wanted() -> None:
    (answer,) = answers("evaluation", asked("refund", {"interactive": True}, order=1, amount=15))
    approval = answer["context"]["approval"]
    assert (approval["person"], approval["routes"], approval["remember"]) == (True, [], "exact")
    assert answer["context"]["arguments"] == {"order": 1, "amount": 15}


def test_asking_spends_nothing_and_sees_what_the_host_has_spent() -> None:
    resolver = resolver_of()
    mine, other = (asked("lookup", {"client": name}, order=1) for name in ("ann", "ben"))
    assert [one["decision"] for one in answers("evaluation", mine, mine, mine, resolver=resolver)] == [True] * 3
    session = Session(client="ann")
    run = resolver.resolve("coder", session=session)
    run.permit(run.decide("lookup", {"order": 1}))
    spent, _ = answers("evaluation", mine, other, resolver=resolver)
    assert (spent["decision"], spent["context"]["reason"]) == (False, "budget")
    assert 0 < spent["context"]["retry_after"] <= 3600


def test_the_newest_policy_decides_whichever_resolver_was_given() -> None:
    first = resolver_of()
    stricter = loads(POLICY.replace("allow lookup, github/get_issue", "allow github/get_issue"), name="team.zcpolicy")
    (before,) = answers("evaluation", asked("lookup", order=1), resolver=first)
    first.publish(stricter)
    (after,) = answers("evaluation", asked("lookup", order=1), resolver=first)
    (called,) = answers("evaluation", asked("lookup", order=1), resolver=lambda: first)
    assert [one["decision"] for one in (before, after, called)] == [True, False, False]
    assert [one["context"]["generation"] for one in (before, after, called)] == [1, 2, 2]
    first.suspend("it is being looked at")
    (suspended,) = answers("evaluation", asked("github/get_issue", number=1), resolver=first)
    assert (suspended["decision"], suspended["context"]["reason"]) == (False, "stale-policy")


# --- many ------------------------------------------------------------------------------------------------------------

THREE = {
    "subject": agent(),
    "action": {"name": "call"},
    "evaluations": [
        {"resource": tool("lookup", order=1)},
        {"resource": tool("shell", command="ls")},
        {"resource": tool("github/get_issue", number=1)},
    ],
}
SEMANTICS = {
    None: [True, False, True],
    "execute_all": [True, False, True],
    "deny_on_first_deny": [True, False],
    "permit_on_first_permit": [True],
}


@pytest.mark.parametrize("semantic", SEMANTICS)
def test_the_semantics_of_many(semantic: str | None) -> None:
    options = {} if semantic is None else {"options": {"evaluations_semantic": semantic, "another_option": "value"}}
    (answer,) = answers("evaluations", {**THREE, **options})
    assert [one["decision"] for one in answer["evaluations"]] == SEMANTICS[semantic]
    assert answer.keys() == {"evaluations"}


NOTHING: dict[str, Any] = {}


def test_defaults_hold_where_an_evaluation_says_nothing_itself() -> None:
    request: Any = {
        "subject": agent("reader"),
        "action": {"name": "call"},
        "context": {"labels": ["untrusted"]},
        "resource": tool("refund", order=1, amount=1),
        "evaluations": [
            NOTHING,
            {"subject": agent()},
            {"subject": agent(), "context": NOTHING},
            {"action": {"name": "read"}},
        ],
    }
    (answer,) = answers("evaluations", request)
    told = [(one["decision"], one["context"]["reason"]) for one in answer["evaluations"]]
    assert told == [(False, "not-granted"), (False, "denied"), (True, "allowed"), (False, "not-granted")]


def test_without_evaluations_it_is_one() -> None:
    single = asked("lookup", order=1)
    for answer in answers("evaluations", single, {**single, "evaluations": []}):
        assert answer["decision"] is True


def test_what_is_wrong_with_one_is_told_in_its_place_and_is_a_deny() -> None:
    request: Any = {
        "subject": agent(),
        "action": {"name": "call"},
        "evaluations": [{}, 7, {"resource": tool("lookup", order=1)}],
    }
    every, first = answers(
        "evaluations", request, {**request, "options": {"evaluations_semantic": "deny_on_first_deny"}}
    )
    assert [one["decision"] for one in every["evaluations"]] == [False, False, True]
    assert every["evaluations"][0]["context"]["error"] == {
        "status": 400,
        "message": "`resource` is missing, or no object",
    }
    assert len(first["evaluations"]) == 1


def test_one_evaluation_does_not_see_what_another_would_spend() -> None:
    twice: Any = {**asked("lookup", {"client": "ann"}, order=1), "evaluations": [NOTHING, NOTHING]}
    (answer,) = answers("evaluations", twice, resolver=resolver_of())
    assert [one["decision"] for one in answer["evaluations"]] == [True, True]


def test_evaluations_that_come_too_late_are_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zcpolicy.hosts.authzen.answers.MAX_EVALUATIONS_SECONDS", -1.0)
    (answer,) = answers("evaluations", THREE)
    told = [(one["decision"], one["context"]["error"]["status"]) for one in answer["evaluations"]]
    assert told == [(False, 503)] * 3
