"""What a host imports: all of it stands in `zcpolicy`, for type checkers and at run time alike, and for hosts only."""

import ast
import subprocess
import sys

import pytest

import zcpolicy

from .blocks import ROOT

NAMES = ROOT / "engine/zcpolicy/__init__.py"
PACKAGES = sorted([*(ROOT / "engine").rglob("*.py"), *(ROOT / "policy_lang").rglob("*.py")])


def homes(nodes: list[ast.stmt]) -> dict[str, str]:
    """The module that each name is imported from."""
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in froms for alias in node.names}


TREE = ast.parse(NAMES.read_text(encoding="utf-8"))
AT_ONCE = homes(TREE.body)
LATER = homes(next(node.body for node in TREE.body if isinstance(node, ast.If)))


EXTRA = {"RedisLedger", "StdioServer", "HttpServer", "PydanticAiModel"}
"""Of modules that need an extra: `from zcpolicy import *` does without."""


def test_every_name_is_listed_once() -> None:
    names = [*AT_ONCE, *LATER]
    assert sorted(zcpolicy.__all__) == sorted(set(names) - EXTRA)
    assert set(names) <= set(dir(zcpolicy))


@pytest.mark.parametrize("name", sorted(AT_ONCE | LATER))
def test_a_name_is_what_type_checkers_take_it_for(name: str) -> None:
    module = __import__((AT_ONCE | LATER)[name], fromlist=[name])
    assert getattr(zcpolicy, name) is getattr(module, name)


def test_what_is_loaded_later_is_not_loaded_at_once() -> None:
    code = "import sys, zcpolicy; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(LATER.values()).isdisjoint(loaded)


def test_a_name_that_is_none_is_told() -> None:
    with pytest.raises(AttributeError, match="'zcpolicy' has no attribute 'run_the_tool_call_loop'"):
        _ = zcpolicy.run_the_tool_call_loop  # type: ignore[attr-defined]


def test_inside_a_name_is_taken_from_its_own_module() -> None:
    """So that import contracts see who knows what: by way of the names for hosts, a path would reach the loop."""
    takers: set[str] = set()
    for file in PACKAGES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import) or (
                isinstance(node, ast.ImportFrom) and node.module == "zcpolicy" and file.name != "__init__.py"
            ):
                names = [one.name for one in node.names]
                takers |= {
                    str(file.relative_to(ROOT)) for name in names if name in ("zcpolicy", *zcpolicy.__all__, *EXTRA)
                }
    assert takers == set()
