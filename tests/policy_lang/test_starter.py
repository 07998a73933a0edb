"""A starter policy compiles and its test holds, whichever of its suggestions are taken, whatever a server calls its tools."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy_lang.catalog.mcp import read_tools
from policy_lang.compile import compile_policy
from policy_lang.format import format_source
from policy_lang.source import Source
from policy_lang.starter import starter
from policy_lang.testing import run_tests

CATALOGS = sorted((Path(__file__).parent.parent / "catalogs").glob("*.json"))


COMMENTED = re.compile(r"^( *)# (?=(?:tool|risk|deny|limit) )")
"""What stands before a suggested statement."""


def written(catalogue: Path, server: str) -> str:
    """The starter for a list of tools."""
    return starter(read_tools(catalogue.read_text(encoding="utf-8")), server, catalogue.as_posix())


def suggestions(text: str) -> Iterator[tuple[str, str]]:
    """The text with each suggestion taken, alone and all together; what was taken first."""
    lines = text.splitlines(keepends=True)
    offered = [number for number, line in enumerate(lines) if COMMENTED.match(line)]
    for taken in [*([number] for number in offered), offered]:
        made = [COMMENTED.sub(r"\1", line) if number in taken else line for number, line in enumerate(lines)]
        yield "".join(lines[number] for number in taken), "".join(made)


def findings(text: str, folder: Path, severities: tuple[str, ...] = ("error", "warning")) -> list[str]:
    """Everything that the checker and the tests of a policy say."""
    policy = folder / "starter.zcpolicy"
    policy.write_text(text, encoding="utf-8")
    made = compile_policy(policy)
    found = [f"{one.code.id}: {one.message}" for one in made.diagnostics if one.severity in severities]
    if made.program is not None:
        for result in run_tests(made.program, made.tests):
            found += [f"{call.complaint} ({call.reason}, {call.note})" for call in result.calls if call.complaint]
    return found


@pytest.mark.parametrize("catalogue", CATALOGS, ids=lambda path: path.stem)
def test_real_servers(catalogue: Path, tmp_path: Path) -> None:
    text = written(catalogue, catalogue.stem)
    assert findings(text, tmp_path) == []
    assert format_source(Source("t", text))[0] == text


@pytest.mark.parametrize("catalogue", CATALOGS, ids=lambda path: path.stem)
def test_every_suggestion_may_be_taken_alone_and_with_all_others(catalogue: Path, tmp_path: Path) -> None:
    taken = {what: findings(text, tmp_path) for what, text in suggestions(written(catalogue, catalogue.stem))}
    assert {what: found for what, found in taken.items() if found} == {}
    assert taken


ODD: dict[str, list[dict[str, Any]]] = {
    "all sound as if they read": [{"name": "get_me", "inputSchema": {"type": "object"}}],
    "no text at all": [
        {
            "name": "add",
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "additionalProperties": False,
            },
        }
    ],
    "a command and a link": [
        {
            "name": "run",
            "inputSchema": {
                "type": "object",
                "properties": {"command": {"type": "string"}, "url": {"type": "string"}},
                "required": ["command", "url"],
            },
        },
        {"name": "read_it", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}},
    ],
    "a default": [
        {"name": "ls", "inputSchema": {"type": "object", "properties": {"where": {"type": "string", "default": "."}}}},
    ],
}


@pytest.mark.parametrize("case", ODD)
def test_odd_servers_and_every_suggestion(case: str, tmp_path: Path) -> None:
    catalogue = tmp_path / "tools.json"
    catalogue.write_text(json.dumps(ODD[case]), encoding="utf-8")
    text = written(catalogue, "s")
    assert findings(text, tmp_path) == []
    assert [(what, found) for what, made in suggestions(text) if (found := findings(made, tmp_path))] == []


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
    text = written(catalogue, server)
    for made in (text, *(made for _, made in suggestions(text))):
        assert [line for line in findings(made, folder, ("error",)) if "not-canonical" not in line] == []
