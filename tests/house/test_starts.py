"""What a start loads. Asserted by the modules that are there afterwards, since times differ from machine to machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import policy_lang

HEAVY = {
    "lark", "pydantic", "click", "rich", "dataclasses", "inspect", "asyncio", "policy_lang", "z3", "ssl", "socket",
    "importlib.metadata", "email", "unittest", "logging", "argparse", "sqlite3",
}  # fmt: skip
LIBRARIES = {"re2", "ada_url", "tree_sitter", "tree_sitter_bash", "idna"}
POLICY = """\
zcpolicy 1
tool pay(amount: integer) risk high
tool shell(command: shell) risk high
tool fetch(url: url) risk low
agent a {
    allow pay when args.amount < 100
    allow shell when args.command runs only ["git status ..."]
    allow fetch when args.url.host in_domain "docs.example"
}
"""
DECIDE = """
import sys, zcpolicy
program = zcpolicy.load_compiled(sys.argv[1])
run = zcpolicy.Resolver(program).resolve("a")
import json
print(json.dumps([run.decide(sys.argv[2], json.loads(sys.argv[3])).effect, sorted(sys.modules)]))
"""


def python(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("starts") / "a.zcpc"
    path.write_bytes(policy_lang.loads(POLICY).dump())
    return path


def test_importing_the_engine_loads_nothing_heavy() -> None:
    modules = set(json.loads(python("import sys, zcpolicy, json; print(json.dumps(sorted(sys.modules)))")))
    bare = set(json.loads(python("import sys, json; print(json.dumps(sorted(sys.modules)))")))
    assert modules & (HEAVY | LIBRARIES) - bare == set()


@pytest.mark.parametrize(
    ("tool", "arguments", "may_load"),
    [
        ("pay", {"amount": 5}, set[str]()),
        ("shell", {"command": "git status -s"}, {"tree_sitter", "tree_sitter_bash"}),
        ("fetch", {"url": "https://docs.example/"}, {"ada_url", "idna"}),
    ],
)
def test_a_decision_loads_what_its_rule_needs(
    compiled: Path, tool: str, arguments: dict[str, object], may_load: set[str]
) -> None:
    effect, modules = json.loads(python(DECIDE, str(compiled), tool, json.dumps(arguments)))
    assert effect == "allow"
    assert set(modules) & LIBRARIES <= may_load
    assert set(modules) & {"lark", "pydantic", "click", "rich", "policy_lang", "sqlite3"} == set()
