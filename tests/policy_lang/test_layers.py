"""Layers: a lower layer sees the names above, restricts, and never loosens."""

from pathlib import Path

import pytest

from policy_lang.compile import compile_policy
from tests.policy_lang.bound_case import bound_of, said
from zcpolicy import Resolver, Session

ABOVE = """zcpolicy 1
tool read() risk read
tool shell(command: shell) risk high
server github {}
tool github/get_me()
group readers = read
agent coder { allow @readers, shell }
"""

FORBIDDEN: dict[str, tuple[str, str, str]] = {
    "a granting agent": ("agent mine { allow read }", "ZC2114", "agent `mine` grants in a lower layer"),
    "an agent that exists above": ("agent coder { deny shell }", "ZC2105", "agent `coder` is declared twice"),
    "a lower class": (
        "risk low = shell",
        "ZC2115",
        "a layer below would lower the class of tools from `high` to `low`",
    ),
    "trusting hints": (
        "server github { trust hints }",
        "ZC2115",
        "a layer below would trust the hints of server `github`",
    ),
    "a tool that exists above": ("tool read() risk read", "ZC2105", "tool `read` is declared twice"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_a_lower_layer_may_not(name: str, tmp_path: Path) -> None:
    text, code, message = FORBIDDEN[name]
    files = {"above.zcpolicy": ABOVE, "below.zcpolicy": f"zcpolicy 1\n{text}"}
    found = said(tmp_path, files, ("above.zcpolicy", "below.zcpolicy"))
    assert (code, message) in [(one.code, one.message) for one in found]


ALLOWED = {
    "narrowing an agent of above": "agent mine narrows coder { only @readers }",
    "a ceiling": "ceiling { deny shell }",
    "a higher class": "risk high = read",
    "a tool of its own": "tool mine() risk low\nceiling { deny mine }",
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_a_lower_layer_may(name: str, tmp_path: Path) -> None:
    files = {"above.zcpolicy": ABOVE, "below.zcpolicy": f"zcpolicy 1\n{ALLOWED[name]}"}
    assert said(tmp_path, files, ("above.zcpolicy", "below.zcpolicy")) == []


def test_granting_agents_need_leave_from_every_layer_above(tmp_path: Path) -> None:
    files = {
        "a.zcpolicy": ABOVE,
        "b.zcpolicy": "zcpolicy 1\nagents allowed",
        "c.zcpolicy": "zcpolicy 1\nagent mine { allow read }",
    }
    refused = said(tmp_path, files, ("a.zcpolicy", "b.zcpolicy", "c.zcpolicy"))
    assert [one.code for one in refused] == ["ZC2114"]
    files["a.zcpolicy"] = ABOVE + "agents allowed"
    assert said(tmp_path, files, ("a.zcpolicy", "b.zcpolicy", "c.zcpolicy")) == []


def test_a_raised_class_of_below_counts(tmp_path: Path) -> None:
    files = {"above.zcpolicy": ABOVE, "below.zcpolicy": "zcpolicy 1\nrisk high = read"}
    bound, _ = bound_of(tmp_path, files, ("above.zcpolicy", "below.zcpolicy"))
    number = bound.catalogue.find((None, "read"))
    assert number is not None
    assert bound.classes[number] == "high"


def test_a_policy_beside_a_layer_that_nothing_names(tmp_path: Path) -> None:
    (tmp_path / "forgotten.zcpolicy").write_text("zcpolicy 1\n", encoding="utf-8")
    files = {"above.zcpolicy": ABOVE, "below.zcpolicy": "zcpolicy 1\n"}
    found = said(tmp_path, files, ("above.zcpolicy", "below.zcpolicy"))
    assert {one.message for one in found} == {"`forgotten.zcpolicy` lies beside this layer, and nothing names it"}


LISTED = """[{"name": "get", "inputSchema": {"type": "object", "properties":
    {"q": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}, "x": {}}}}]"""
CATALOGUED = """zcpolicy 1
catalog "list.json" as s
bundle b { server s }
agent coder { autonomy supervised; connect b; allow s/get }
ceiling { deny any when some paths glob "**/.env"; deny any when some urls.host in_domain "evil.test" }
"""


def test_a_tool_statement_of_below_does_not_lower_a_class(tmp_path: Path) -> None:
    files = {"list.json": LISTED, "above.zcpolicy": CATALOGUED, "below.zcpolicy": "zcpolicy 1\ntool s/get() risk read"}
    found = [one for one in said(tmp_path, files, ("above.zcpolicy", "below.zcpolicy")) if one.code == "ZC2115"]
    assert [one.message for one in found] == ["a layer below would lower the class of tools from `high` to `read`"]


@pytest.mark.parametrize("argument", ["q", "l", "x"])
@pytest.mark.parametrize("kind", ["string", "path", "url", "shell"])
def test_a_kind_of_below_takes_nothing_out_of_what_rules_above_read(argument: str, kind: str, tmp_path: Path) -> None:
    written = f"list<{kind}>" if argument == "l" else kind
    files = {
        "list.json": LISTED,
        "above.zcpolicy": CATALOGUED,
        "below.zcpolicy": f"zcpolicy 1\ntool s/get({argument}?: {written})\nagent mine narrows coder {{}}",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    compiled = compile_policy(tmp_path / "below.zcpolicy", layers=[tmp_path / "above.zcpolicy"])
    assert compiled.program is not None
    run = Resolver(compiled.program).resolve("mine", session=Session(interactive=True))
    for value in ("/w/.env", "https://evil.test/"):
        sent = {argument: [value] if argument == "l" else value}
        assert run.decide(("s", "get"), sent).reason == "denied"
