"""What an agent connects, what a narrowing may not, what a delegation gives and takes, which limits are never reached."""

import pytest

from policy_lang import codes
from policy_lang.codes import Code
from tests.policy_lang.checks.judging import Case, judge, mended, of_code

TOOLS = """\
tool github/get_me() risk read
tool github/delete_repo(name: string) risk high
tool gitlab/get_me() risk read
tool ping() risk read
tool pay(amount: integer, to: string) risk high
server github {}
server gitlab {}
bundle forge { server github }
bundle little { server github only get_me }
"""


def check(case: Case, code: Code, tools: str = TOOLS) -> None:
    judge(Case(case.name, tools + case.policy, case.says, case.help, case.labels), code)


OUTSIDE = [
    Case("no bundle at all",
         "agent a { allow ⟦github/get_me⟧, ping }",
         "`a` does not connect `github`, so `github/get_me` can never be called", "write `connect forge` in the agent"),
    Case("a server without a bundle",
         "agent a { allow ⟦gitlab/*⟧, ping }",
         "`a` does not connect `gitlab`, so `gitlab/*` can never be called",
         "declare `bundle gitlab { server gitlab }`, and write `connect gitlab` in the agent"),
    Case("left out of the bundle",
         "agent a { connect little; allow github/get_me, ⟦github/delete_*⟧ }",
         "`github/delete_*` is outside the bundles that `a` connects", "write `connect forge` in the agent",
         (("without `github/delete_repo`", "connect little"),)),
    Case("in an ask",
         "agent a { allow ping; ask ⟦gitlab/get_me⟧ }",
         "`a` does not connect `gitlab`, so `gitlab/get_me` can never be called",
         "declare `bundle gitlab { server gitlab }`, and write `connect gitlab` in the agent"),
    Case("in an auto_approve",
         "agent a { autonomy supervised; allow ping; auto_approve ⟦*/get_me⟧ }",
         "`a` does not connect `github` or `gitlab`, so `*/get_me` can never be called", "write `connect forge` in the agent"),
    Case("a group",
         "group remote = gitlab/*; agent a { allow ping, ⟦@remote⟧ }",
         "`a` does not connect `gitlab`, so `@remote` can never be called",
         "declare `bundle gitlab { server gitlab }`, and write `connect gitlab` in the agent"),
    Case("in a narrowing, by what its root connects",
         "agent a { connect little; allow ping, github/get_me }\nagent b narrows a { ask ⟦github/delete_repo⟧ }",
         "`b` does not connect `github`, so `github/delete_repo` can never be called", "write `connect forge` in the agent"),
]  # fmt: skip


@pytest.mark.parametrize("case", OUTSIDE, ids=str)
def test_a_reference_outside_the_bundles_is_an_error(case: Case) -> None:
    check(case, codes.OUTSIDE_BUNDLES)


INSIDE = {
    "connected": "agent a { connect forge; allow github/* }",
    "any reaches host tools": "agent a { allow any }",
    "a part of the reference is inside": "agent a { connect little; allow github/* }",
    "a deny says what it likes": "agent a { allow ping; deny github/* }",
    "a profile serves several agents": "profile p { allow github/get_me, ping }\nagent a { use p }",
}


@pytest.mark.parametrize("policy", INSIDE.values(), ids=INSIDE.keys())
def test_what_is_connected_is_left_alone(policy: str) -> None:
    assert of_code(TOOLS + policy, codes.OUTSIDE_BUNDLES) == []


def test_the_fix_connects_a_fitting_bundle() -> None:
    (found,) = of_code(TOOLS + "agent a { allow github/get_me }", codes.OUTSIDE_BUNDLES)
    assert (
        mended(TOOLS + "agent a { allow github/get_me }", found.fix)
        == TOOLS + "agent a { connect forge; allow github/get_me }"
    )


NARROWS = "a narrowing only restricts: `only` and `deny` narrow the tools; leave this out to have what the parent has"

WIDER = [
    Case("a limit above the parent's",
         "agent a { allow ping; limit 5 calls to ping per hour }\nagent b narrows a { limit ⟦6⟧ calls to ping per hour }",
         "a limit of 6 is above the 5 of `a`, which `b` narrows",
         "write at most 5, or leave the limit out; to narrow the tools write `only`",
         (("`a` has this limit", "limit 5 calls to ping per hour"),)),
    Case("above the root's, two steps up",
         "agent a { allow ping; limit 1.00 usd per day }\nagent b narrows a {}\nagent c narrows b { limit ⟦1.50 usd⟧ per day }",
         "a limit of 1.50 usd is above the 1.00 usd of `a`, which `c` narrows",
         "write at most 1.00 usd, or leave the limit out; to narrow the tools write `only`",
         (("`a` has this limit", "limit 1.00 usd per day"),)),
    Case("by a profile",
         "profile p { limit 60s time per turn }\nagent a { allow ping; limit 30s time per turn }\nagent b narrows a { use ⟦p⟧ }",
         "a limit of 60s is above the 30s of `a`, which `b` narrows",
         "write at most 30s, or leave the limit out; to narrow the tools write `only`",
         (("`a` has this limit", "limit 30s time per turn"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", WIDER, ids=str)
def test_a_limit_above_the_parents_is_an_error(case: Case) -> None:
    check(case, codes.WIDER_LIMIT)


OTHER_LIMITS = {
    "lower": "limit 4 calls to ping per hour",
    "another window": "limit 6 calls to ping per day",
    "other tools": "limit 6 calls to pay per hour",
    "another unit": "limit 6 iterations per hour",
    "another pot": "limit 6 calls to ping per hour for each client",
}


@pytest.mark.parametrize("limit", OTHER_LIMITS.values(), ids=OTHER_LIMITS.keys())
def test_a_limit_of_another_shape_is_no_widening(limit: str) -> None:
    policy = f"agent a {{ allow ping, pay; limit 5 calls to ping per hour }}\nagent b narrows a {{ {limit} }}"
    assert of_code(TOOLS + policy, codes.WIDER_LIMIT) == []


SURFACES = [
    Case("a wider bundle",
         "agent a { connect little; allow ping }\nagent b narrows a { connect ⟦forge⟧ }",
         "`connect forge` is more than `a` has, which `b` narrows", NARROWS, (("`a` has only this", "connect little"),)),
    Case("a bundle where the parent has none",
         "agent a { allow ping }\nagent b narrows a { connect ⟦little⟧ }",
         "`connect little` is more than `a` has, which `b` narrows", NARROWS, (("`a` has no `connect`", "a"),)),
    Case("a skill more",
         "skill s { only ping }\nskill t { only pay }\nagent a { skills s; allow ping }\nagent b narrows a { skills s, ⟦t⟧ }",
         "`skills t` is more than `a` has, which `b` narrows", NARROWS, (("`a` has only this", "skills s"),)),
    Case("memory that the parent only reads",
         "scope team\nagent a { memory read own, team; allow ping }\nagent b narrows a { memory read own write ⟦team⟧ }",
         "`memory write team` is more than `a` has, which `b` narrows", NARROWS, (("`a` has only this", "memory read own, team"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", SURFACES, ids=str)
def test_more_than_the_parent_has_is_an_error(case: Case) -> None:
    check(case, codes.WIDER_SURFACE)


def test_as_much_as_the_parent_or_less_is_no_widening() -> None:
    policy = (
        "scope team\nskill s { only ping }\nskill t { only pay }\n"
        "agent a { connect forge; skills s, t; memory read own, team write own; allow ping }\n"
        "agent b narrows a { connect little; skills s; memory read team }\n"
        "agent c narrows b { connect none; skills none; memory none }"
    )
    assert of_code(TOOLS + policy, codes.WIDER_SURFACE) == []


DELEGATIONS = [
    (codes.SELF_DELEGATION, Case(
        "to itself",
        "agent a { allow ping; delegate to ⟦a⟧ }",
        "`a` delegates to itself",
        "drop it; for a weaker copy declare `agent NEW narrows a { … }` and delegate to that")),
    (codes.CHILD_WITH_NOTHING, Case(
        "nothing in common",
        "agent a { allow ping; delegate to ⟦b⟧ }\nagent b { allow pay }",
        "under `a` nothing is left of `b`: `pay` is taken from it",
        'allow in `a` what `b` needs, or write `independent because "…"`',
        (("the delegate", "b"),))),
    (codes.INDEPENDENT_ADDS, Case(
        "more than the delegator",
        'agent a { allow ping; delegate to ⟦b⟧ independent because "pays" }\nagent b { allow ping, pay }',
        "independent, `b` may call `pay`, and `a` may not",
        "keep it if `because` covers that; without `independent` it is left with what both may",
        (("the delegate", "b"),))),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), DELEGATIONS, ids=[str(case) for _, case in DELEGATIONS])
def test_delegations(code: Code, case: Case) -> None:
    check(case, code)


def test_a_delegation_with_something_in_common_is_left_alone() -> None:
    policy = "agent a { allow ping; delegate to b }\nagent b { allow ping, pay; delegate to a }"
    assert [of_code(TOOLS + policy, code) for code, _ in DELEGATIONS] == [[], [], []]


def test_agents_that_delegate_to_each_other_are_bounded_by_depth_and_no_error() -> None:
    policy = "agent a { allow ping; delegate to b }\nagent b { allow ping; delegate to a }"
    assert of_code(TOOLS + policy, codes.SELF_DELEGATION) == []


LIMITS = [
    Case("a larger one of the same shape",
         "agent a { allow ping; limit 5 calls to ping per hour; ⟦limit 6 calls to ping per 60m⟧ }",
         "this limit is never reached: another limit of 5 comes first", "drop it, or lower it",
         (("this one is reached first", "limit 5 calls to ping per hour"),)),
    Case("the same one again",
         "agent a { allow ping; limit 5 calls; ⟦limit 5 calls per session⟧ }",
         "a limit of 5 is said twice: another limit is the same", "drop it, or lower it", (("the same limit", "limit 5 calls"),)),
    Case("above a ceiling's",
         "ceiling { limit 1.00 usd per day }\nagent a { allow ping; ⟦limit 2.00 usd per day⟧ }",
         "this limit is never reached: the ceiling's limit of 1.00 usd comes first", "drop it, or lower it",
         (("this one is reached first", "limit 1.00 usd per day"),)),
    Case("more tools count",
         "agent a { allow ping, pay; limit 5 calls per hour; ⟦limit 6 calls to ping per hour⟧ }",
         "this limit is never reached: another limit of 5 comes first", "drop it, or lower it",
         (("this one is reached first", "limit 5 calls per hour"),)),
    Case("a longer window",
         "agent a { allow ping; ⟦limit 9 calls per minute⟧; limit 9 calls per hour }",
         "this limit is never reached: another limit of 9 comes first", "drop it, or lower it",
         (("this one is reached first", "limit 9 calls per hour"),)),
    Case("a session of several turns",
         "agent a { allow ping; ⟦limit 60s time per turn⟧; limit 50s time }",
         "this limit is never reached: another limit of 50s comes first", "drop it, or lower it",
         (("this one is reached first", "limit 50s time"),)),
    Case("one pot for all",
         "agent a { allow pay; limit 5 calls to pay per day; ⟦limit 5 calls to pay per day for each args.to⟧ }",
         "this limit is never reached: another limit of 5 comes first", "drop it, or lower it",
         (("this one is reached first", "limit 5 calls to pay per day"),)),
    Case("the parent's again",
         "agent a { allow ping; limit 5 calls }\nagent b narrows a { ⟦limit 5 calls⟧ }",
         "a limit of 5 is said twice: the parent's limit is the same", "drop it, or lower it", (("the same limit", "limit 5 calls"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", LIMITS, ids=str)
def test_a_limit_that_is_never_reached_is_a_warning(case: Case) -> None:
    check(case, codes.REDUNDANT_LIMIT)


def test_limits_of_different_shapes_are_left_alone() -> None:
    policy = (
        "agent a { allow ping, pay; limit 5 calls per hour; limit 6 calls per day; limit 4 calls to pay per hour; "
        "limit 8 sum args.amount to pay per hour; limit 3 calls to pay per hour for each args.to; limit 1.00 usd; limit 2.00 eur; "
        'limit 4 calls per turn; limit 7 calls per calendar day in "Europe/Berlin"; limit 7 concurrent calls }'
    )
    assert of_code(TOOLS + policy, codes.REDUNDANT_LIMIT) == []


def test_the_fix_of_a_limit_takes_it_out() -> None:
    policy = TOOLS + "agent a {\n    allow ping\n    limit 5 calls\n    limit 6 calls\n}\n"
    (found,) = of_code(policy, codes.REDUNDANT_LIMIT)
    assert found.fix is not None
    assert found.fix.safe
    assert mended(policy, found.fix) == TOOLS + "agent a {\n    allow ping\n    limit 5 calls\n}\n"


SERVERS = """tool hub/look(name: string) risk read
tool clock() risk read
bundle all { server hub }
profile linked { connect all }
"""
FOR_NOTHING = [
    Case("a pattern of the host only", "agent a { connect ⟦all⟧; allow * }",
         "`a` allows no tool of `all`, so it is connected for nothing", "write `allow hub/*`, or drop it",
         (("`*` means tools of the host only", "allow *"),)),
    Case("other tools", "agent a { connect ⟦all⟧; allow clock }",
         "`a` allows no tool of `all`, so it is connected for nothing", "write `allow hub/*`, or drop it"),
]  # fmt: skip


@pytest.mark.parametrize("case", FOR_NOTHING, ids=str)
def test_a_bundle_of_which_nothing_is_allowed_is_a_warning(case: Case) -> None:
    check(case, codes.CONNECTED_FOR_NOTHING, SERVERS)


@pytest.mark.parametrize(
    "agent",
    [
        "agent a { connect all; allow hub/look }",
        "agent a { connect all; allow *, */* }",
        "agent a { connect all; allow any }",
        "agent a { use linked; allow clock }",
        "agent a { connect none; allow clock }",
        "agent a { connect all; allow any }\nagent b narrows a { connect all; only clock }",
    ],
)
def test_a_bundle_of_which_something_is_allowed_is_left_alone(agent: str) -> None:
    assert of_code(SERVERS + agent, codes.CONNECTED_FOR_NOTHING) == []
