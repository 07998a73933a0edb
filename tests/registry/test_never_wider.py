"""No policy and no knob gives a tool that the policy alone does not."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.clock import Clock
from tests.properties.both import START, engine_run, program
from tests.registry.offers import Shelf
from tests.strategies import Story, sketches, stories
from zcpolicy.registry.host_tools import tool_search_tool
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import Group, HostTool, Json, McpServer, SkillSource, ToolContext, ToolSources

GROUPS: tuple[Group, ...] = ("", "memory", "delivery")


async def nothing(_arguments: dict[str, Json], _context: ToolContext) -> str:
    return ""


def sources_of(story: Story, groups: list[Group]) -> ToolSources:
    """A host that has every tool of the catalogue, and some that it does not know."""
    shelf = story.sketch.shelf
    named = [one.name for one in shelf.tools if one.server is None]
    mine = [HostTool(name, name, {}, nothing, groups[number % len(groups)]) for number, name in enumerate(named)]
    servers = {
        server: McpServer(Shelf([one.name for one in shelf.tools if one.server == server] + ["unknown"]).connect)
        for server in shelf.servers
    }

    async def peripherals() -> list[HostTool]:
        return mine[:1]

    skills = {"s0": SkillSource("It.", "…", tuple(mine[1:2])), "s9": SkillSource("Unknown.", "…")}
    return ToolSources(
        (*mine[2:], tool_search_tool(), HostTool("unknown", "", {}, nothing)), peripherals, servers, skills
    )


Knobs = st.fixed_dictionaries(
    {},
    optional={
        "connect_mcp": st.booleans(),
        "connect_peripherals": st.booleans(),
        "exclude_memory": st.booleans(),
        "exclude_delivery": st.booleans(),
        "deferred": st.booleans(),
    },
)


@given(stories(sketches()), Knobs, st.lists(st.sampled_from(GROUPS), min_size=1, max_size=3), st.data())
def test_knobs_only_take_away(story: Story, knobs: dict[str, Any], groups: list[Group], data: st.DataObject) -> None:
    policy = program(story.sketch)
    sources = sources_of(story, groups)
    if data.draw(st.booleans()):
        every = [*policy.tools, "unknown", ("hub", "unknown")]
        knobs["caller_allowed"] = data.draw(st.lists(st.sampled_from(every), unique=True))

    async def compare() -> None:
        run, plain_run = (engine_run(story, policy, Clock(START)) for _ in range(2))
        narrow = await ScopedToolRegistry.assemble(run, sources, **knobs)
        plain = await ScopedToolRegistry.assemble(plain_run, sources)
        names, everything = {*narrow.names()}, {*plain.names()}
        assert names <= everything <= {*run.tools()}
        assert {spec.name for spec in narrow.specs()} <= names
        assert {narrow.find(spec.wire) for spec in narrow.specs()} == {spec.name for spec in narrow.specs()}
        if "caller_allowed" in knobs:
            assert names <= {*knobs["caller_allowed"]}
        shown = {spec.wire for spec in narrow.search(" ".join(map(str, policy.tools)), 50)}
        assert {narrow.find(wire) for wire in shown} <= names
        for call in story.calls:  # what may be called is there, unless somebody took it away
            key: Any = call.tool[1] if call.tool[0] is None else call.tool
            if not knobs and set(groups) == {""} and plain_run.decide(key, call.sent).effect != "deny":
                assert key in everything or key == skill_tool(sources)
        listed = narrow.prompt.deferred.partition("`: ")[2]
        assert {narrow.find(wire) for wire in listed.split(", ") if wire} <= names
        assert narrow.prompt.pinned == ""
        assert "s9" not in narrow.prompt.skills
        assert ("s0" in narrow.prompt.skills) == ("s0" in run.loadable)
        await narrow.close()
        await plain.close()
        assert narrow.names() == narrow.specs() == ()

    asyncio.run(compare())


def skill_tool(sources: ToolSources) -> str:
    """It is there once its skill is loaded."""
    tools = sources.skills["s0"].tools
    return tools[0].name if tools else ""
