"""A starter policy compiles without an error and its test holds, whatever a server calls its tools."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy_lang.catalog.mcp import read_tools
from policy_lang.compile import compile_policy
from policy_lang.starter import starter
from policy_lang.testing import run_tests

CATALOGS = sorted((Path(__file__).parent.parent / "catalogs").glob("*.json"))


def errors_and_failures(catalogue: Path, server: str, folder: Path) -> list[str]:
    policy = folder / "starter.zcpolicy"
    listed = read_tools(catalogue.read_text(encoding="utf-8"))
    policy.write_text(starter(listed, server, catalogue.as_posix()), encoding="utf-8")
    made = compile_policy(policy)
    found = [f"{one.code.id}: {one.message}" for one in made.diagnostics if one.severity == "error"]
    if made.program is not None:
        for result in run_tests(made.program, made.tests):
            found += [f"{call.complaint} ({call.reason}, {call.note})" for call in result.calls if call.complaint]
    return found


@pytest.mark.parametrize("catalogue", CATALOGS, ids=lambda path: path.stem)
def test_real_servers(catalogue: Path, tmp_path: Path) -> None:
    assert errors_and_failures(catalogue, catalogue.stem, tmp_path) == []


_NAMES = st.one_of(
    st.sampled_from(
        ["when", "any", "none", "a/b", 'say "hi"', "back\\slash", "a*", "@x", "7up", "x y", "日本", "path"]
    ),
    st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), min_size=1, max_size=8),
)
_KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")
_LEAVES: list[dict[str, Any]] = [
    *({"type": kind} for kind in _KINDS),
    *({"enum": ["ä", 'q"']}, {"const": 7}, {}, {"type": ["string", "null"]}, {"enum": [{"a": [1]}]}),
]


def _object(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    parts: dict[str, st.SearchStrategy[Any]] = {
        "type": st.just("object"),
        "properties": st.dictionaries(_NAMES, inner, max_size=3),
    }
    return st.fixed_dictionaries(parts, optional={"required": st.lists(_NAMES, max_size=2)})


_SCHEMAS = st.recursive(st.sampled_from(_LEAVES), _object, max_leaves=5)
_TOOL: dict[str, st.SearchStrategy[Any]] = {"name": _NAMES, "inputSchema": _SCHEMAS}
_TOOLS = st.lists(
    st.fixed_dictionaries(_TOOL, optional={"annotations": st.just({"readOnlyHint": True})}),
    min_size=1,
    max_size=4,
    unique_by=lambda tool: str(tool["name"]),
)


@settings(max_examples=30, deadline=None)
@given(_TOOLS, _NAMES)
def test_any_list_of_tools(tmp_path_factory: pytest.TempPathFactory, tools: list[dict[str, Any]], server: str) -> None:
    folder = tmp_path_factory.mktemp("starter")
    catalogue = folder / "tools.json"
    catalogue.write_text(json.dumps(tools), encoding="utf-8")
    found = errors_and_failures(catalogue, server, folder)
    assert [line for line in found if "not-canonical" not in line] == []
