"""What is too much is refused, left out or let go of: at the bound all is well, one beyond it is not."""

import asyncio
from typing import Any

import pytest

from tests.registry.offers import Shelf, registry, run_of
from zcpolicy.registry import connecting
from zcpolicy.registry.assemble import MAX_CALLER_TOOLS, caller_names
from zcpolicy.registry.connecting import MAX_SERVER_TOOLS, checked
from zcpolicy.registry.host_tools import MAX_STEPS, pipeline_tool
from zcpolicy.registry.search import MAX_FOUND, MAX_QUERY_CHARACTERS, matching
from zcpolicy.registry.sources import AssemblyError, McpServer, McpTool, ToolResult, ToolSources, ToolSpec


def listing(length: int) -> list[McpTool]:
    return [McpTool(f"t{number}", "", {}) for number in range(length)]


def test_tools_of_one_server() -> None:
    assert len(checked(listing(MAX_SERVER_TOOLS))) == MAX_SERVER_TOOLS
    with pytest.raises(AssemblyError, match="it lists more than"):
        checked(listing(MAX_SERVER_TOOLS + 1))


def test_names_of_a_caller() -> None:
    assert caller_names(("t",) * MAX_CALLER_TOOLS) == {"t"}
    with pytest.raises(AssemblyError):
        caller_names(("t",) * (MAX_CALLER_TOOLS + 1))


def test_tools_that_a_search_gives() -> None:
    specs = [ToolSpec(f"moon {number}", f"moon_{number}", "", {}) for number in range(MAX_FOUND + 1)]
    assert len(matching(specs, "moon", 10 * MAX_FOUND)) == MAX_FOUND
    assert matching(specs, "moon", -1) == ()


def test_letters_of_a_query() -> None:
    spec = ToolSpec("moon", "moon", "", {})
    assert matching([spec], " " * (MAX_QUERY_CHARACTERS - 4) + "moon", 1) == (spec,)
    assert matching([spec], " " * MAX_QUERY_CHARACTERS + "moon", 1) == ()


def test_steps_of_a_pipeline() -> None:
    nothing: Any = None  # it is refused before anything is asked of its context

    async def story() -> ToolResult | str:
        return await pipeline_tool().run({"steps": [{"tool": "t"}] * (MAX_STEPS + 1)}, nothing)

    assert asyncio.run(story()) == ToolResult(f"no step ran: a pipeline has 1 to {MAX_STEPS} steps", ok=False)


def test_seconds_of_a_connection_that_does_not_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "MAX_CLOSE_SECONDS", 0.05)

    class Stuck(Shelf):
        async def close(self) -> None:
            await asyncio.sleep(3_600)

    async def story() -> None:
        sources = ToolSources(servers={"forge": McpServer(Stuck(["get_issue"]).connect)})
        run = run_of("agent a { connect forge; allow forge/get_issue }")
        async with asyncio.timeout(10), registry(run, sources) as made:
            assert made.names() == (("forge", "get_issue"),)

    asyncio.run(story())
