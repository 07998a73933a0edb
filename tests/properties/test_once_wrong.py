"""What long campaigns against the oracle once found, as plain cases: the answer stands beside the call."""

from typing import Any

import pytest

import policy_lang
import zcpolicy

TOOLS = """zcpolicy 1
tool fetch(url: url = "file:///etc/x") risk low
tool links(links: list<url>) risk read
tool settings(cfg: object) risk read
tool text(cfg: string) risk read
tool many(cfg: list<object>) risk read
"""

CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], str]] = {
    "a url that the host does not write may be a file": (
        'allow any; deny any when some paths under "/etc"', "fetch", {}, {"supplies_defaults": False}, "deny",
    ),
    "the same in an exception to a grant": (
        'allow any unless some paths under "/etc"', "fetch", {}, {"supplies_defaults": False}, "deny",
    ),
    "a default that the host writes is what it is": (
        'allow any; deny any when some paths under "/srv"', "fetch", {}, {}, "allow",
    ),
    "a member of what has no members is of another kind, not missing": (
        "allow any; deny any when args.cfg.zz == 1", "text", {"cfg": "x"}, {}, "deny",
    ),
    "nor is a member of a list": (
        "allow any; deny any when args.cfg.zz == 1", "many", {"cfg": [{"zz": 1}]}, {}, "deny",
    ),
    "a member of an object is read": (
        "allow any; deny any when args.cfg.zz == 1", "settings", {"cfg": {"zz": 2}}, {}, "allow",
    ),
    "the host of each link": (
        'allow any; deny links when some args.links.host in_domain "y.example"', "links", {"links": ["https://y.example/"]}, {}, "deny",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_was_once_wrong(name: str) -> None:
    body, tool, arguments, facts, effect = CASES[name]
    program = policy_lang.loads(f"{TOOLS}agent a {{ {body} }}")
    run = zcpolicy.Resolver(program).resolve("a", session=zcpolicy.Session(interactive=True, **facts))
    assert run.decide(tool, arguments).effect == effect


def test_a_protected_file_may_be_what_a_default_names() -> None:
    program = policy_lang.loads(f"{TOOLS}agent a {{ allow any }}")
    session = zcpolicy.Session(interactive=True, supplies_defaults=False)
    run = zcpolicy.Resolver(program, protected=("/etc/x",)).resolve("a", session=session)
    assert run.decide("fetch", {}).effect == "ask"
