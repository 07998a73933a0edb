"""The declarations in docs/reference/host-tools.md are those of the tools: a policy with them meets each without a remark."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import policy_lang
from tests.house.blocks import blocks
from zcpolicy.facts import Session
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.registry import host_tools
from zcpolicy.registry.host_tools import delegate_tool, load_skill_tool, memory_tools, pipeline_tool, tool_search_tool
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import HostTool, McpServer, McpTool, ToolResult, ToolSources
from zcpolicy.registry.view import CAPABILITIES
from zcpolicy.resolver import Resolver

PAGE = Path(__file__).parents[2] / "docs/reference/host-tools.md"
(DECLARED,) = [block.text for block in blocks(PAGE) if block.lang == "zcpolicy"]
AGENT = "agent a { autonomy full; allow any; connect everything; memory read own write own }"
POLICY = f"{DECLARED}\ntool files/read(path: path) risk read\nbundle everything {{ server files }}\n{AGENT}\n"
TOOLS: tuple[HostTool, ...] = (
    *memory_tools(InMemoryStore()), delegate_tool(), load_skill_tool(), tool_search_tool(), pipeline_tool(),
)  # fmt: skip


class Files:
    """A server with nothing in it."""

    async def tools(self) -> Sequence[McpTool]:
        return []

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        raise LookupError(tool)

    async def resources(self) -> Sequence[str]:
        return []

    async def read(self, uri: str) -> str:
        raise LookupError(uri)

    async def prompts(self) -> Sequence[str]:
        return []

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        raise LookupError(name)

    async def close(self) -> None:
        """Nothing is open."""


async def connect() -> Files:
    return Files()


def test_every_declaration_is_that_of_its_tool() -> None:
    async def story() -> None:
        run = Resolver(policy_lang.loads(POLICY)).resolve("a", session=Session(client="ada"))
        registry = await ScopedToolRegistry.assemble(run, ToolSources(TOOLS, servers={"files": McpServer(connect)}))
        try:
            assert dict(registry.remarks) == {}
            assert dict(registry.failures) == {}
            shown = {spec.name: spec.parameters for spec in registry.specs()}
            assert set(shown) == {*(tool.name for tool in TOOLS), *CAPABILITIES}
            for name, (needed, optional) in DECLARATIONS.items():
                assert set(shown[name]["required"]) == needed, name
                assert set(shown[name]["properties"]) == needed | optional, name
        finally:
            await registry.close()

    asyncio.run(story())


def declarations() -> dict[str, tuple[set[str], set[str]]]:
    """Of each tool of the page: what it needs, and what it may be given."""
    program = policy_lang.loads(POLICY)
    found: dict[str, tuple[set[str], set[str]]] = {}
    for tool in program.tools:
        if isinstance(tool, str):
            schema = schema_of(program, tool)
            needed = set(schema.get("required", ()))
            found[tool] = (needed, set(schema["fields"]) - needed)
    return found


def schema_of(program: Any, tool: str) -> Any:
    from zcpolicy.program import head_of

    return next(one["schema"] for one in head_of(program)["tools"] if one["name"] == tool and one["server"] is None)


DECLARATIONS = declarations()


def test_the_page_leaves_none_out() -> None:
    made = {name for name in vars(host_tools) if name.endswith(("_tool", "_tools")) and not name.startswith("_")}
    told = PAGE.read_text("utf-8")
    assert [name for name in sorted(made) if f"`{name}(" not in told] == []
    for tool in TOOLS:
        (row,) = [line for line in told.splitlines() if line.startswith(f"| `{tool.name}` |")]
        assert row.endswith(f"| `{tool.group}` |" if tool.group else "| |"), tool.name
