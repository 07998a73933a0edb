"""Rules that never decide, rules that others cover, statements that take nothing away, agents that can call nothing."""

import pytest

from policy_lang import codes
from policy_lang.codes import Code
from tests.policy_lang.checks.judging import Case, judge, mended, of_code

TOOLS = """\
tool ping() risk read
tool note(text: string) risk low
tool mail(to: string) risk medium
tool pay(amount: integer) risk high
label seen
"""


def check(case: Case, code: Code) -> None:
    judge(Case(case.name, TOOLS + case.policy, case.says, case.help, case.labels), code)


DEAD = [
    Case("denied in the same body",
         "agent a { allow ⟦pay⟧, ping; deny pay }".replace("⟦pay⟧, ping", "ping; allow ⟦pay⟧"),
         "this `allow` never decides: `pay` is withheld on every call", "drop it, or withhold less", (("denied here", "deny pay"),)),
    Case("outside an only",
         "agent a { allow ping; allow ⟦pay, mail⟧; only ping, note }",
         "this `allow` never decides: `mail` and `pay` are withheld on every call", "drop it, or withhold less",
         (("outside this `only`", "only ping, note"),)),
    Case("denied by autonomy",
         "agent a { autonomy readonly; allow ping; allow ⟦pay⟧ }",
         "this `allow` never decides: `pay` is withheld on every call", "drop it, or withhold less",
         (("denied by this `autonomy`", "autonomy readonly"),)),
    Case("denied by a ceiling",
         "ceiling { deny pay }\nagent a { allow ping; allow ⟦pay⟧ }",
         "this `allow` never decides: `pay` is withheld on every call", "drop it, or withhold less", (("denied here", "deny pay"),)),
    Case("two reasons",
         "agent a { allow ping; allow ⟦mail, pay⟧; deny mail; autonomy { read allow; low allow; medium allow; high deny } }",
         "this `allow` never decides: `mail` and `pay` are withheld on every call", "drop it, or withhold less",
         (("denied here", "deny mail"), ("denied by this `autonomy`", "autonomy { read allow; low allow; medium allow; high deny }"))),
    Case("an ask about what is denied",
         "agent a { allow ping, pay; deny pay; ask ⟦pay⟧ when args.amount > 5 }",
         "this `ask` never decides: `pay` is withheld on every call", "drop it, or withhold less", (("denied here", "deny pay"),)),
    Case("a deny outside an only",
         "agent a { allow any; only ping, note; deny ⟦pay⟧ }",
         "this `deny` adds nothing: `pay` lies outside the `only` of this body", "drop it", (("forbidden here", "only ping, note"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", DEAD, ids=str)
def test_a_rule_that_never_decides_is_a_warning(case: Case) -> None:
    check(case, codes.DEAD_RULE)


ALIVE = {
    "a part of it is left": "agent a { allow any; deny pay }",
    "denied on a condition": "agent a { allow pay; deny pay when args.amount > 5 }",
    "autonomy that asks": "agent a { autonomy supervised; allow pay }",
    "a profile's rule": "profile p { allow pay }\nagent a { use p; allow ping; deny pay }",
    "a deny inside an only": "agent a { allow any; only ping, pay; deny pay }",
}


@pytest.mark.parametrize("policy", ALIVE.values(), ids=ALIVE.keys())
def test_a_rule_that_may_decide_is_left_alone(policy: str) -> None:
    assert of_code(TOOLS + policy, codes.DEAD_RULE) == []


UNGRANTED = [
    Case("an ask", "agent a { allow ping; ask ⟦pay⟧ }",
         "`pay` is not allowed in `a`, so this `ask` never applies",
         "`ask` grants nothing: write `allow … with approval` to grant with a question"),
    Case("an auto_approve", "agent a { autonomy supervised; allow ping; auto_approve ⟦pay⟧ }",
         "`pay` is not allowed in `a`, so this `auto_approve` never applies",
         "`auto_approve` grants nothing: write `allow` as well, or drop it"),
    Case("a mark", "agent a { allow ping; mark seen on ⟦pay⟧; deny ping when marked seen }",
         "`pay` is not allowed in `a`, so this `mark` never applies", "drop it, or `allow` the tools"),
    Case("a limit", "agent a { allow ping; limit 5 calls to ⟦pay⟧ per hour }",
         "`pay` cannot be called by `a`, so this limit counts nothing", "drop it, or `allow` the tools"),
    Case("in a narrowing", "agent a { allow ping }\nagent b narrows a { ask ⟦pay⟧ }",
         "`pay` is not allowed in `b`, so this `ask` never applies",
         "`ask` grants nothing: write `allow … with approval` to grant with a question"),
]  # fmt: skip


@pytest.mark.parametrize("case", UNGRANTED, ids=str)
def test_a_rule_on_tools_that_nothing_grants_is_a_warning(case: Case) -> None:
    check(case, codes.NOTHING_GRANTED)


def test_a_rule_on_tools_of_which_some_are_granted_is_left_alone() -> None:
    policy = "agent a { allow ping, pay; ask any; limit 5 calls to ping, pay; deny mail }\nceiling { ask mail }"
    assert of_code(TOOLS + policy, codes.NOTHING_GRANTED) == []


WAIVING = [
    Case("no autonomy", "agent a { allow ping, pay; auto_approve ⟦pay⟧ }",
         "this `auto_approve` waives nothing: `a` has no `autonomy` that asks",
         "drop it; it waives only the questions of this body's own `autonomy`"),
    Case("a class that is not asked about", "agent a { autonomy supervised; allow any; auto_approve ⟦ping⟧ }",
         "this `auto_approve` waives nothing: `autonomy` asks about none of these tools",
         "drop it; it waives only the questions of this body's own `autonomy`",
         (("asks about none of these tools", "autonomy supervised"),)),
    Case("an ask that asks all the same", "agent a { autonomy supervised; allow any; ask pay; auto_approve ⟦pay⟧ }",
         "this `auto_approve` waives nothing: an `ask` asks all the same",
         "drop it; it waives only the questions of this body's own `autonomy`", (("still asked about here", "ask pay"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", WAIVING, ids=str)
def test_an_auto_approve_with_nothing_to_waive_is_a_warning(case: Case) -> None:
    check(case, codes.NOTHING_TO_WAIVE)


def test_an_auto_approve_that_waives_is_left_alone() -> None:
    policy = "agent a { autonomy supervised; allow any; auto_approve pay, ping; ask pay when args.amount > 5 }"
    assert of_code(TOOLS + policy, codes.NOTHING_TO_WAIVE) == []


COVERED = [
    Case("the same again", "agent a { allow ping, pay; allow ⟦ping⟧ }",
         "this `allow` adds nothing: `ping` is allowed already", "drop it", (("allowed here", "allow ping, pay"),)),
    Case("covered by two", "agent a { allow ping; allow note; allow ⟦ping, note⟧ }".replace("allow ping; allow note; allow ⟦ping, note⟧", "deny ⟦ping⟧; deny ping, note; allow any"),
         "this `deny` adds nothing: `ping` is denied already", "drop it", (("denied here", "deny ping, note"),)),
    Case("on the same condition, otherwise written",
         "agent a { allow any; deny pay when args.amount > 5 and args.amount != 7; deny ⟦pay⟧ when not args.amount == 7 and args.amount > 5 }",
         "this `deny` adds nothing: `pay` is denied already on the same condition", "drop it", (("denied here", "deny pay"),)),
    Case("a condition under an unconditional rule",
         "agent a { allow pay; allow pay when ⟦args.amount < 5⟧ }",
         "this condition decides nothing: `pay` is allowed on every call",
         "drop this rule, or take its tools out of the other `allow`", (("allowed here without a condition", "allow pay"),)),
    Case("by a profile", "profile p { deny pay }\nagent a { use p; allow any; deny ⟦pay⟧ }",
         "this `deny` adds nothing: `pay` is denied already", "drop it", (("denied here", "deny pay"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", COVERED, ids=str)
def test_a_rule_that_another_covers_is_a_warning(case: Case) -> None:
    check(case, codes.REDUNDANT_RULE)


DISTINCT = {
    "different tools": "allow ping; allow note",
    "overlapping tools": "allow ping, note; allow note, mail",
    "different conditions": "allow pay when args.amount < 5; allow pay when args.amount == 7",
    "different labels": "allow any; mark seen on ping; mark other on ping; deny pay when marked seen or marked other",
    "an approval beside a condition": "allow pay when args.amount < 5; allow pay with approval",
    "an unclear deny": "allow pay; deny pay when args.amount > 5; deny pay when args.amount > 5 unclear ask",
}


@pytest.mark.parametrize("rules", DISTINCT.values(), ids=DISTINCT.keys())
def test_rules_that_say_something_of_their_own_are_left_alone(rules: str) -> None:
    assert of_code(f"{TOOLS}label other\nagent a {{ {rules} }}", codes.REDUNDANT_RULE) == []


def test_a_duplicate_is_taken_out_by_its_fix() -> None:
    policy = TOOLS + "agent a { allow ping, pay; allow ping; deny mail }"
    (found,) = of_code(policy, codes.REDUNDANT_RULE)
    assert found.fix is not None
    assert found.fix.safe
    assert mended(policy, found.fix) == TOOLS + "agent a { allow ping, pay; deny mail }"


def test_a_reason_of_its_own_is_not_dropped_without_asking() -> None:
    policy = TOOLS + 'agent a { allow any; deny ping, pay because "one"; deny pay because "two" }'
    (found,) = of_code(policy, codes.REDUNDANT_RULE)
    assert found.fix is not None
    assert not found.fix.safe


def test_an_approval_under_a_plain_allow_is_a_warning() -> None:
    check(Case("", "agent a { allow ping, pay; allow ⟦mail, pay⟧ with approval }",
               "nobody is asked: `pay` is allowed without approval as well",
               "take the tools out of the plain `allow`, or write `ask` instead of `allow … with approval`",
               (("allowed here", "allow ping, pay"),)), codes.COVERED_APPROVAL)  # fmt: skip


def test_an_approval_beside_a_conditional_allow_is_left_alone() -> None:
    policy = TOOLS + "agent a { allow pay with approval; allow pay when args.amount < 5 }"
    assert of_code(policy, codes.COVERED_APPROVAL) == []


ONLYS = [
    Case("all that is allowed is inside", "agent a { allow ping, note; ⟦only ping, note, pay⟧ }",
         "this `only` forbids nothing: all that `a` allows is inside", "drop it, or name fewer tools"),
    Case("a wider one beside it", "agent a { allow any; only ping; ⟦only ping, note⟧ }",
         "this `only` forbids nothing that another one does not", "drop it, or name fewer tools",
         (("this one forbids all that it does", "only ping"),)),
    Case("all that the parent may", "agent a { allow any; deny pay }\nagent b narrows a { ⟦only ping, note, mail⟧ }",
         "this `only` forbids nothing: all that `a` may call is inside", "drop it, or name fewer tools"),
    Case("any, in a ceiling", "agent a { allow ping }\nceiling { ⟦only any⟧ }",
         "this `only` forbids nothing: all that this body applies to is inside", "drop it, or name fewer tools"),
]  # fmt: skip


@pytest.mark.parametrize("case", ONLYS, ids=str)
def test_an_only_that_forbids_nothing_is_a_warning(case: Case) -> None:
    check(case, codes.REDUNDANT_ONLY)


def test_an_only_that_forbids_is_left_alone() -> None:
    policy = (
        "agent a { allow any; only ping, note; only note, pay }\nagent b narrows a { only none }\nskill s { only ping }"
    )
    assert of_code(TOOLS + policy, codes.REDUNDANT_ONLY) == []


CAPS = [
    Case("weaker than another", "agent a { allow any; autonomy readonly; ⟦autonomy supervised⟧ }",
         "this `autonomy` caps nothing that another one does not", "drop it, or make it stricter",
         (("at least as strict", "autonomy readonly"),)),
    Case("full, where nothing grants", "agent a { allow ping }\nceiling { ⟦autonomy full⟧ }",
         "this `autonomy` caps nothing", "drop it, or make it stricter"),
    Case("the ceiling's again", "ceiling { autonomy supervised }\nagent a { allow ping; ⟦autonomy supervised⟧ }",
         "this `autonomy` caps nothing that another body does not", "drop it, or make it stricter",
         (("at least as strict", "autonomy supervised"),)),
    Case("a history above the parent's",
         "agent a { allow ping; runtime { history 5 } }\nagent b narrows a { runtime { ⟦history 9⟧ } }",
         "this `history` changes nothing: it is not below that of what `b` narrows", "drop it, or write less",
         (("the lower number holds", "history 5"),)),
    Case("a depth above the parent's",
         "agent a { allow ping; delegate depth 2 }\nagent b narrows a { ⟦delegate depth 3⟧ }",
         "this `delegate depth` changes nothing: it is not below that of what `b` narrows", "drop it, or write less",
         (("the lower number holds", "delegate depth 2"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", CAPS, ids=str)
def test_a_cap_that_caps_nothing_is_a_warning(case: Case) -> None:
    check(case, codes.REDUNDANT_CAP)


CAPPING = {
    "full, said by a granting agent": "agent a { autonomy full; allow ping }",
    "stricter in one class": "agent a { allow any; autonomy supervised; autonomy { read ask; low allow; medium allow; high allow } }",
    "a question that the parent waives": "agent a { allow any; autonomy supervised; auto_approve pay }\nagent b narrows a { autonomy supervised }",
    "a switch turned off": "agent a { allow ping; runtime { parallel_tools on } }\nagent b narrows a { runtime { parallel_tools off } }",
}


@pytest.mark.parametrize("policy", CAPPING.values(), ids=CAPPING.keys())
def test_a_cap_that_caps_is_left_alone(policy: str) -> None:
    assert of_code(TOOLS + policy, codes.REDUNDANT_CAP) == []


IDLE = [
    Case("allows nothing", "agent ⟦a⟧ {}", "`a` can call nothing: it allows no tool", "write `allow` with the tools that it needs"),
    Case("all is withheld", "agent ⟦a⟧ { allow ping, pay; only note }",
         "`a` can call nothing: all that it allows is withheld, `pay` and `ping`",
         "drop the `deny`, `only` or `autonomy` that withholds it, or the agent"),
    Case("a narrowing that leaves nothing", "agent a { allow ping }\nagent ⟦b⟧ narrows a { only pay }",
         "`b` can call nothing: it withholds all that `a` may, `ping`", "leave it something with `only`, or drop the agent"),
]  # fmt: skip


@pytest.mark.parametrize("case", IDLE, ids=str)
def test_an_agent_that_can_call_nothing_is_a_warning(case: Case) -> None:
    check(case, codes.CALLS_NOTHING)


def test_a_narrowing_of_an_agent_that_can_call_nothing_is_not_told_again() -> None:
    policy = "agent a { allow ping; deny ping }\nagent b narrows a { deny pay }\nagent c {}\nagent d narrows c {}"
    assert [finding.message.split(" ")[0] for finding in of_code(TOOLS + policy, codes.CALLS_NOTHING)] == ["`a`", "`c`"]


def test_an_agent_that_only_delegates_independently_is_left_alone() -> None:
    policy = 'agent a { delegate to b independent because "it works" }\nagent b { allow ping }'
    assert of_code(TOOLS + policy, codes.CALLS_NOTHING) == []


def test_a_granting_agent_without_autonomy_is_a_warning() -> None:
    check(Case("", "agent ⟦a⟧ { allow ping }",
               "`a` has no `autonomy`: what it allows runs without a question, whatever its class",
               "write `autonomy supervised`, or `autonomy full` if that is meant"), codes.NO_AUTONOMY)  # fmt: skip


@pytest.mark.parametrize("policy", [
    "agent a { autonomy full; allow ping }",
    "agent a { allow ping }\nceiling { autonomy supervised }",
    "profile p { autonomy supervised }\nagent a { use p; allow ping }",
])  # fmt: skip
def test_an_autonomy_anywhere_above_is_enough(policy: str) -> None:
    assert of_code(TOOLS + policy, codes.NO_AUTONOMY) == []
