"""The three shapes of a tools list, and what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy_lang.catalog.mcp import CatalogError, read_tools

CATALOGS = Path(__file__).parent.parent / "catalogs"
_KEYS = ["tools", "name", "inputSchema", "result", "nextCursor", "annotations", "description", "error", "type"]
TOOL = {"name": "get", "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}}}


@pytest.mark.parametrize(
    ("shape", "answer"),
    [
        ("the result", {"tools": [TOOL]}),
        ("the JSON-RPC response", {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}}),
        ("the bare list", [TOOL]),
        ("a file with further keys", {"server": "s", "serverInfo": {"name": "s"}, "tools": [TOOL]}),
        ("an empty cursor is no cursor", {"tools": [TOOL], "nextCursor": ""}),
        ("a null cursor is no cursor", {"tools": [TOOL], "nextCursor": None}),
    ],
)
def test_shapes(shape: str, answer: object) -> None:
    assert [tool.name for tool in read_tools(json.dumps(answer))] == ["get"], shape


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON: expecting value at line 1, column 1"),
        ("{", "not JSON: expecting property name enclosed in double quotes at line 1, column 2"),
        ("7", "the catalogue is neither an object nor a list"),
        ("{}", "the catalogue holds no `tools`"),
        ('{"error": {"code": -32601}}', "the catalogue is the server's error answer, not its list of tools"),
        ('{"tools": []}', "the catalogue holds no tools"),
        ('{"tools": 7}', "tools: input should be a valid list"),
        ('{"tools": [7]}', "tool 1: the tool: input should be an object"),
        ('{"tools": [{}]}', "tool 1: name: field required"),
        ('{"tools": [{"name": "a"}, {"name": 7}]}', "tool 2: name: input should be a valid string"),
        ('[{"name": "a"}, {"name": "a"}]', "two tools are called `a`"),
        ('[{"name": "a", "name": "b"}]', 'the key "name" stands twice in one object'),
        (
            '[{"name": "\\ud800"}]',
            "tool 1: name: input should be a valid string, unable to parse raw data as a unicode string",
        ),
        (
            '{"tools": [], "nextCursor": "x"}',
            "the list is one page of several: `nextCursor` is set; list all pages into one file",
        ),
        (
            '{"tools": [{"name": "a"}], "nextCursor": "x"}',
            "the list is one page of several: `nextCursor` is set; list all pages into one file",
        ),
        ('[{"name": "a", "x": NaN}]', "not JSON: `NaN` is no number"),
        ('[{"name": "a", "x": %s}]' % ("9" * 401), "a number is longer than 400 characters"),
        ("[" * 100_000, "the catalogue is nested too deeply"),
    ],
)
def test_refused(text: str, complaint: str) -> None:
    with pytest.raises(CatalogError) as raised:
        read_tools(text)
    assert str(raised.value) == complaint


def test_hints_are_kept_where_they_are_booleans() -> None:
    hints = {"readOnlyHint": True, "destructiveHint": "yes", "openWorldHint": False, "title": "Get"}
    (tool,) = read_tools(json.dumps([{**TOOL, "annotations": hints, "description": "gets"}]))
    assert tool.hints == {"readOnlyHint": True, "openWorldHint": False}
    assert tool.description == "gets"


@pytest.mark.parametrize(
    ("file", "tools"),
    [
        ("awslabs.aws-documentation-mcp-server", 5),
        ("mcp-server-fetch", 1),
        ("mcp-server-git", 12),
        ("mcp-server-time", 2),
        ("notion-mcp-server", 24),
        ("playwright-mcp", 25),
        ("server-github", 26),
    ],
)
def test_real_servers(file: str, tools: int) -> None:
    read = read_tools((CATALOGS / f"{file}.json").read_text(encoding="utf-8"))
    assert len(read) == tools
    assert all(tool.schema["kind"] == "object" for tool in read)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.text() | _JSON.map(json.dumps) | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_is_a_list_of_tools_or_a_complaint(text: str) -> None:
    try:
        tools = read_tools(text)
    except CatalogError:
        return
    assert tools
