"""Which `require`s can never be met, and that nothing of what they wait for ever runs."""

import random
from itertools import product
from pathlib import Path

import pytest

from policy_lang import ast, codes
from policy_lang.cache import Cache
from policy_lang.compile import compile_policy
from policy_lang.gather import Root, gather
from policy_lang.lower.program import lower
from policy_lang.names.bind import bind
from policy_lang.source import Source
from tests.policy_lang.checks.judging import PROJECT, Case, judge, of_code
from zcpolicy import Program, Resolver, Session

TOOLS = "tool login() risk read\ntool test() risk read\ntool look() risk read\ntool push() risk high\n"
ALL = "agent a { autonomy full; allow any }\n"
FIRST = "let one of them go first: leave it out of what waits, with `except`"
ALLOWED = "drop it, or `allow` what it waits for"

NEVER = [
    Case("it waits for itself, in a ceiling",
         ALL + "ceiling { ⟦require login before any⟧ }",
         "this `require` can never be met: `login` waits as well", FIRST),
    Case("whoever there is",
         "ceiling { ⟦require login before any⟧ }",
         "this `require` can never be met: `login` waits as well", FIRST),
    Case("whoever a lower layer adds",
         "agents allowed\nceiling { ⟦require login before any⟧ }",
         "this `require` can never be met: `login` waits as well", FIRST),
    Case("in the only agent",
         "agent a { autonomy full; allow any; ⟦require login before any⟧ }",
         "this `require` can never be met: `login` waits as well", FIRST),
    Case("in a profile",
         "profile p { ⟦require login, test before any⟧ }\nagent a { autonomy full; allow any; use p }\n"
         "agent b { autonomy full; allow any; use p }",
         "this `require` can never be met: `login` and `test` wait as well", FIRST),
    Case("nobody may call what it waits for",
         "agent a { autonomy full; allow any except login; ⟦require login before push⟧ }",
         "this `require` can never be met: no agent may call `login`", ALLOWED),
    Case("nobody may, in a ceiling and for a child",
         "agent a { autonomy full; allow push; delegate to b }\nagent b { autonomy full; allow push, look }\n"
         "ceiling { ⟦require login, test before push⟧ }",
         "this `require` can never be met: no agent may call `login` and `test`", ALLOWED),
    Case("a cause, and what follows from it",
         ALL + "ceiling { ⟦require login before any⟧; require test before push }",
         "this `require` can never be met: `login` waits as well", FIRST),
    Case("in a skill",
         "agent a { autonomy full; allow look, push; skills s }\nskill s { ⟦require login before push⟧ }",
         "this `require` can never be met: no agent may call `login`", ALLOWED),
]  # fmt: skip


@pytest.mark.parametrize("case", NEVER, ids=str)
def test_it_can_never_be_met(case: Case) -> None:
    judge(Case(case.name, TOOLS + case.policy, case.says, case.help, case.labels), codes.NEVER_MET)


def test_two_that_wait_for_each_other_point_at_each_other() -> None:
    found = of_code(f"{TOOLS}{ALL}ceiling {{ require login before test; require test before login }}", codes.NEVER_MET)
    assert [one.message for one in found] == [
        "this `require` can never be met: `login` waits as well",
        "this `require` can never be met: `test` waits as well",
    ]
    assert [one.labels[0].span for one in found] == [found[1].span, found[0].span]
    assert found[0].witness == "call test() => deny"


MET = {
    "it goes first": ALL + "ceiling { require login before any except login }",
    "one of several goes first": ALL + "ceiling { require login, test before any except test }",
    "another agent may have called it": "agent a { autonomy full; allow push; require login before push }\n"
    "agent b { autonomy full; allow login }",
    "it is held back for this agent only": "agent a { autonomy full; allow any; require login before any }\n"
    "agent b { autonomy full; allow login }",
    "it is held back for those below only": ALL + "agent b narrows a { require login before any }",
    "it is allowed on a condition": "agent a { autonomy full; allow push; allow login when session.interactive }\n"
    "ceiling { require login before push }",
    "a lower layer may add who calls it": "agents allowed\nagent a { autonomy full; allow push }\n"
    "ceiling { require login before push }",
    "there are no agents yet": "ceiling { require login before push }",
    "a chain": ALL + "ceiling { require login before test; require test before push }",
    "nobody may call what waits": "agent a { autonomy full; allow look }\nceiling { require login before push }",
    "a skill holds back what was called before": "skill s { require login before any }\n"
    "agent a { autonomy full; allow any; skills s }",
}


@pytest.mark.parametrize("name", MET)
def test_it_can_be_met(name: str) -> None:
    assert of_code(TOOLS + MET[name], codes.NEVER_MET) == []


def test_what_an_agents_file_is_told_does_not_hang_on_those_that_are_not_looked_at(tmp_path: Path) -> None:
    """Agents whose file holds nothing else are not looked at again where it is as it was."""
    head = 'zcpolicy 1\nimport "tools.zcpolicy"\n'
    (tmp_path / "tools.zcpolicy").write_text(f"zcpolicy 1\n{TOOLS}")
    (tmp_path / "a.zcpolicy").write_text(head + "agent a { autonomy full; allow any; require login before any }")
    root = f'{head}import "a.zcpolicy"\nimport "b.zcpolicy"\nceiling {{ require login before push }}\n'
    (tmp_path / "root.zcpolicy").write_text(root + "agent c narrows a { require test before look }")
    cache, said = Cache(), list[list[tuple[str, str]]]()
    for allowed in ("look", "login", "push", "look"):
        (tmp_path / "b.zcpolicy").write_text(f"{head}agent b {{ autonomy full; allow {allowed} }}")
        again, anew = (compile_policy(tmp_path / "root.zcpolicy", cache=one).diagnostics for one in (cache, None))
        assert again == anew
        said.append([(one.code.id, one.message) for one in again])
    assert said[0] == said[3]


SETS = ["login", "test", "look", "push", "any", "login, test", "any except login", "look, push"]


def _policy(rng: random.Random) -> str:
    def body() -> str:
        wanted = [f"require {rng.choice(SETS)} before {rng.choice(SETS)}" for _ in range(rng.randrange(3))]
        return "; ".join([*wanted, *rng.choice([[], [], ["deny login"], ["only login, push"]])])

    agents = "".join(f"agent {name} {{ autonomy full; allow {rng.choice(SETS)}; {body()} }}\n" for name in "ab")
    return f"{TOOLS}{agents}agent c narrows a {{ {body()} }}\nceiling {{ {body() or 'autonomy full'} }}\n"


@pytest.mark.parametrize("seed", range(60))
def test_what_one_waits_for_never_runs_whoever_calls(seed: int) -> None:
    policy = _policy(random.Random(seed))
    gathered, _ = gather([Root(Source("policy", f"zcpolicy 1\n{policy}"), PROJECT)])
    bound, _ = bind(gathered)
    resolver, session = Resolver(Program.build(*lower(bound))), Session()
    for agent, tool in [*product("abc", ("login", "test", "look", "push"))] * 4:
        run = resolver.resolve(agent, session=session)
        if (decision := run.decide(tool, {})).effect == "allow":
            run.permit(decision)
    ran = {entry.tool for entry in session.history or ()}
    names = {number: info.key[1] for number, info in enumerate(bound.catalogue.tools)}
    told = {finding.span for finding in of_code(policy, codes.NEVER_MET)}
    for node in (node for body in bound.bodies() for node, _ in body.every(ast.Require)):
        if node.span in told:
            assert not {names[number] for number in bound.ids(node.earlier)} & ran, policy
