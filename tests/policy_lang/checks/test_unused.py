"""Declarations that nothing uses, and those that are used from every place that may."""

import pytest

from policy_lang import codes
from tests.policy_lang.checks.judging import Case, judge, mended, of_code

TOOLS = """\
tool ping() risk read
tool gitlab/get() risk read
"""

UNUSED = [
    Case("a group", "group ⟦readers⟧ = ping", "group `readers` is never used", "drop it, or use it"),
    Case("a let", 'let ⟦names⟧ = ["a"]', "let `names` is never used", "drop it, or use it"),
    Case("a bundle", "bundle ⟦forge⟧ { server gitlab }", "bundle `forge` is never used", "connect it in an agent, or drop it"),
    Case("a skill", "skill ⟦s⟧ { only ping }", "skill `s` is never used", "name it in `skills` of an agent, or drop it"),
    Case("a profile", "profile ⟦p⟧ { deny ping }", "profile `p` is never used", "write `use` in an agent, or drop it"),
    Case("a label", "label ⟦hot⟧", "label `hot` is never used", "drop it, or `mark` and test it"),
    Case("a label that is marked only", "label ⟦hot⟧\nceiling { mark hot on ping }",
         "label `hot` is marked, and no rule tests it", "write `ask … when marked hot`, or drop the label"),
    Case("a scope", "scope ⟦team⟧", "scope `team` is never used", "drop it, or name it in `memory`"),
    Case("a fact", "context { ⟦role⟧: string }", "context fact `role` is never used", "drop it, or test `session.role`"),
    Case("a server", "server ⟦gitlab⟧ {}", "server `gitlab` is in no bundle",
         "its tools cannot be called until an agent connects a bundle with `server gitlab`"),
]  # fmt: skip


@pytest.mark.parametrize("case", UNUSED, ids=str)
def test_a_declaration_that_nothing_uses_is_a_warning(case: Case) -> None:
    judge(Case(case.name, f"{TOOLS}{case.policy}\nagent a {{ allow ping }}\n", case.says, case.help), codes.UNUSED_NAME)


USED = {
    "a group in a group": "group x = ping\ngroup y = @x\nceiling { deny @y }",
    "a group in an except": "group x = ping\nceiling { deny any except @x }",
    "a group in a risk statement": "group x = ping\nrisk high = @x",
    "a group in a limit": "group x = ping\nceiling { limit 5 calls to @x }",
    "a group in a require": "group x = ping\nceiling { require @x before gitlab/* }",
    "a let in a condition": 'let names = ["a"]\nceiling { deny any when tool.server == names }',
    "a profile in a profile": "profile p { deny ping }\nprofile q { use p }\nceiling { use q }",
    "a skill in a test": 'skill s { only ping }\ntest "t" { agent a with skill s; call ping() => allow }',
    "a label in a condition": "label hot\nceiling { mark hot on ping; ask ping when marked hot }",
    "a scope in a memory": "scope team\nagent b { allow ping; memory write team }",
    "a fact on the right": "context { role: string }\nceiling { deny ping when agent.name == session.role }",
    "a bare fact": "context { vip: boolean }\nceiling { deny ping unless session.vip }",
    "a server in a bundle": "server gitlab {}\nbundle f { server gitlab }\nagent b { connect f; allow ping }",
}


@pytest.mark.parametrize("policy", USED.values(), ids=USED.keys())
def test_a_declaration_in_use_is_left_alone(policy: str) -> None:
    assert of_code(f"{TOOLS}{policy}\nagent a {{ allow ping }}\n", codes.UNUSED_NAME) == []


def test_a_file_of_shared_names_is_left_alone() -> None:
    assert of_code(f"{TOOLS}group readers = ping\nprofile p {{ deny @readers }}\n", codes.UNUSED_NAME) == []


def test_the_fix_takes_the_declaration_out() -> None:
    policy = f"{TOOLS}group x = ping\nagent a {{ allow ping }}\n"
    (found,) = of_code(policy, codes.UNUSED_NAME)
    assert mended(policy, found.fix) == f"{TOOLS}agent a {{ allow ping }}\n"
