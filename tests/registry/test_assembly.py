"""What of a host's tools an execution gets: the policy's tools, and less where the site says so."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from policy_lang import loads
from tests.registry.offers import BUILTINS, DEPLOY, HOST, OBJECT, forge, registry, run_of, tool
from zcpolicy import Narrowing, Session
from zcpolicy.registry.scoped import ScopedToolRegistry
from zcpolicy.registry.sources import AssemblyError, HostTool, SkillSource, ToolSources

HOST_ONLY = ToolSources(BUILTINS)


def names(
    policy: str, sources: ToolSources = HOST_ONLY, given: dict[str, Any] | None = None, **knobs: Any
) -> Sequence[Any]:
    async def story() -> Sequence[Any]:
        async with registry(run_of(policy, **(given or {})), sources, **knobs) as made:
            assert {spec.name for spec in made.specs()} <= set(made.names())
            return made.names()

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("policy", "there"),
    [
        ("agent a { allow file_read }", ("file_read",)),
        ("agent a { allow any; deny shell }", ("deliver", "file_read", "send_mail")),
        ("agent a { allow any; only shell }", ("shell",)),
        ("agent a { allow any; only none }", ()),
        ("agent a { allow any; autonomy readonly; memory read own }", ("file_read", "recall")),
        # only a condition on arguments: some call may run, so it is shown
        ('agent a { allow shell when args.command runs only ["ls ..."] }', ("shell",)),
        # an ask that nobody can answer is a deny
        ("agent a { allow file_read, shell; ask shell; approval none }", ("file_read",)),
    ],
)  # fmt: skip
def test_built_in_tools_are_those_of_the_policy(policy: str, there: tuple[str, ...]) -> None:
    assert names(policy) == there


def test_a_tool_that_the_policy_does_not_know_is_absent() -> None:
    assert names("agent a { allow any }", ToolSources((tool("file_read"), tool("teleport")))) == ("file_read",)


def test_a_tool_that_the_host_does_not_have_is_absent() -> None:
    assert names("agent a { allow any }", ToolSources((tool("shell"),))) == ("shell",)


def remarks(policy: str, *tools: HostTool, **knobs: Any) -> dict[str, str]:
    async def story() -> dict[str, str]:
        async with registry(run_of(policy), ToolSources(tools), **knobs) as made:
            assert made.failures == {}
            return dict(made.remarks)

    return asyncio.run(story())


def takes(name: str, required: Sequence[str] = (), more: dict[str, Any] | None = None, **properties: Any) -> HostTool:
    """`properties`: the type of each parameter, or all of its schema."""
    schemas = {one: {"type": said} if isinstance(said, str) else said for one, said in properties.items()}
    parameters: dict[str, Any] = {"type": "object", "properties": schemas, "required": [*required], **(more or {})}
    return HostTool(name, "", parameters, tool(name).run)


UNKNOWN = "the policy has no tool of this name, so it is left out"
MISSING = "the policy lets this agent use it, and the host has no tool of this name"
READS = "agent a { allow file_read }"


def test_a_tool_that_only_one_of_the_two_knows_is_remarked_on() -> None:
    assert remarks(READS, takes("file_read", path="string"), tool("teleport")) == {"teleport": UNKNOWN}
    assert remarks(READS) == {"file_read": MISSING}
    assert remarks("agent a { allow any; deny shell }", caller_allowed=["shell", "send_mail"]) == {"send_mail": MISSING}
    assert remarks("agent a { allow any; only none }", tool("shell")) == {}  # it is the policy that leaves it out


def test_what_a_site_leaves_out_is_not_missing() -> None:
    async def lamps() -> Sequence[HostTool]:
        return [takes("lamp", ["on"], on="boolean")]

    async def story(connect: bool) -> dict[str, str]:
        sources = ToolSources(peripherals=lamps)
        async with registry(run_of("agent a { allow lamp, shell }"), sources, connect_peripherals=connect) as made:
            return dict(made.remarks)

    assert asyncio.run(story(True)) == {"shell": MISSING}
    assert asyncio.run(story(False)) == {}  # which tools are out there nobody knows


PARAMETERS: dict[str, tuple[HostTool, str]] = {
    "as the policy has it": (takes("file_read", ["path"], path="string"), ""),
    "a type in another way": (takes("file_read", path={"anyOf": [{"type": "integer"}]}), ""),
    "one of several types": (takes("file_read", path={"type": ["null", "string"]}), ""),
    "schemas that are none": (takes("file_read", more={"required": "path"}, path=7), ""),
    "another type": (takes("file_read", path="integer"), "`path` is integer, and path in the policy"),
    "unknown": (takes("file_read", path="string", depth="integer"), "`depth` is unknown to the policy"),
    "required and unknown": (takes("file_read", ["mode"], path="string"), "`mode` is unknown to the policy"),
    "not there": (takes("file_read"), "`path` is required by the policy, and not there"),
    "both": (
        takes("file_read", file="string"),
        "`file` is unknown to the policy, `path` is required by the policy, and not there",
    ),
    "controls": (
        takes("file_read", path="string", more={"required": ["a\x1b"]}),
        r"`a\u{1b}` is unknown to the policy",
    ),
    "whole numbers are numbers": (takes("set_rate", rate="integer"), ""),
    "required by the host alone": (
        takes("find", ["where"], what="string", where="string"),
        "`where` is required, and optional in the policy",
    ),
    "with a default": (takes("find", ["limit"], what="string", limit="number"), ""),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters_that_are_not_the_policys_are_remarked_on(case: str) -> None:
    one, differs = PARAMETERS[case]
    policy = """
    tool find(what: string, where?: string, limit?: integer = 5) risk read
    tool set_rate(rate: number) risk low
    agent a { allow %s }
    """
    expected = {one.name: f"its parameters are not those of the policy: {differs}"} if differs else {}
    assert remarks(policy % one.name, one) == expected
    assert remarks("agent a { allow shell }", takes("shell", command="string"), one).get("file_read") is None


def test_a_narrowing_to_nothing_leaves_nothing() -> None:
    """Scenario 25."""
    assert names("agent a { allow any }", given={"narrowing": Narrowing(only=[])}) == ()


@pytest.mark.parametrize(
    ("caller", "there"),
    [
        (None, ("deliver", "file_read", "send_mail", "shell")),
        ([], ()),
        (["file_read", "shell"], ("file_read", "shell")),
        (["recall", "file_read"], ("file_read",)),  # it has no memory: a caller gives nothing
        (["teleport", ("forge", "get_issue")], ()),
    ],
)
def test_a_caller_only_takes_away(caller: list[Any] | None, there: tuple[str, ...]) -> None:
    assert names("agent a { allow any }", caller_allowed=caller) == there


@pytest.mark.parametrize("caller", ["shell", [1], [("forge",)], [["forge", "get_issue"]]])
def test_what_is_no_collection_of_names_is_refused(caller: Any) -> None:
    with pytest.raises(AssemblyError, match="`caller_allowed` is a collection of tool names"):
        names("agent a { allow any }", caller_allowed=caller)


# --- the context strip -----------------------------------------------------------------------------------------

REMEMBERS = "agent a { allow any; memory read own write own }"


def test_memory_tools_go_with_the_memory() -> None:
    """Of the host, of the run, of the agent; and none of them brings back what another took."""
    assert "recall" in names(REMEMBERS)
    assert "recall" not in names(REMEMBERS, exclude_memory=True)
    assert "recall" not in names(REMEMBERS, given={"narrowing": Narrowing(exclude_memory=True)})
    assert "recall" not in names("agent a { allow any }")
    assert "recall" not in names("agent a { allow any; memory none }")


def test_delivery_tools_go_where_nothing_can_be_delivered() -> None:
    assert "deliver" in names(REMEMBERS)
    assert "deliver" not in names(REMEMBERS, exclude_delivery=True)


# --- peripherals -----------------------------------------------------------------------------------------------


def test_peripherals_are_tools_like_any_other() -> None:
    async def found() -> Sequence[HostTool]:
        return [tool("lamp"), tool("laser")]

    with_lamp = ToolSources(BUILTINS, peripherals=found)
    assert "lamp" in names("agent a { allow any }", with_lamp)
    assert "lamp" not in names("agent a { allow shell }", with_lamp)


def test_hardware_is_not_touched_where_it_is_not_connected() -> None:
    async def touched() -> Sequence[HostTool]:
        pytest.fail("the hardware was touched")

    assert "lamp" not in names("agent a { allow any }", ToolSources(peripherals=touched), connect_peripherals=False)


@pytest.mark.parametrize(
    ("raised", "why"), [(OSError("the bus is down"), "OSError: the bus is down"), (SystemExit(3), "SystemExit: 3")]
)
def test_hardware_that_fails_is_absent_and_told_of(raised: BaseException, why: str) -> None:
    async def fails() -> Sequence[HostTool]:
        raise raised

    async def story() -> None:
        async with registry(run_of("agent a { allow any }"), ToolSources(BUILTINS, fails)) as made:
            assert made.failures == {"peripherals": f"they cannot be listed: {why}"}
            assert "shell" in made.names()

    asyncio.run(story())


# --- what contradicts itself -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (ToolSources((tool("shell"), tool("shell"))), "the host has two tools `shell`"),
        (ToolSources((tool("lamp"),), skills={"deploy": DEPLOY}), "the host has two tools `lamp`"),
        (ToolSources((tool("mcp_resources"),)), "`mcp_resources` is the registry's own tool"),
        (ToolSources((HostTool("shell", "", {"x": float("nan")}, tool("x").run),)), "the parameters of `shell` are no JSON object"),
    ],
)  # fmt: skip
def test_a_host_that_contradicts_itself_gets_no_registry(sources: ToolSources, message: str) -> None:
    """Whether the agent may use the tool or not: a start that fails fails for every agent."""
    with pytest.raises(AssemblyError) as error:
        names("agent a { allow file_read }", sources)
    assert str(error.value) == message


def test_an_execution_has_one_registry_at_a_time() -> None:
    async def story() -> None:
        run = run_of("agent a { allow shell }")
        first = await ScopedToolRegistry.assemble(run, HOST_ONLY)
        assert run.registry is first
        with pytest.raises(AssemblyError, match="the execution has a registry, which is not closed"):
            await ScopedToolRegistry.assemble(run, HOST_ONLY)
        await first.close()
        second = await ScopedToolRegistry.assemble(run, HOST_ONLY)
        assert run.registry is second
        assert first.names() == first.specs() == ()
        await second.close()

    asyncio.run(story())


def test_what_an_execution_became_under_a_newer_policy_has_the_same_one() -> None:
    async def story() -> None:
        run = run_of("agent a { allow shell }")
        run.resolver.publish(loads(HOST + "agent a { allow shell, file_read }"))
        async with registry(run.renewed(), HOST_ONLY) as made:
            assert made.names() == ("file_read", "shell")
            with pytest.raises(AssemblyError, match="which is not closed"):
                await ScopedToolRegistry.assemble(run, HOST_ONLY)
        async with registry(run, HOST_ONLY) as made:
            assert run.registry is run.renewed().registry is made

    asyncio.run(story())


def test_of_two_assemblies_at_once_one_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        run = run_of("agent a { connect forge; allow any }")
        sources = ToolSources(servers={"forge": forge(tmp_path / "log")})
        both = [ScopedToolRegistry.assemble(run, sources) for _ in range(2)]
        made = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(type(one).__name__ for one in made) == ["AssemblyError", "ScopedToolRegistry"]
        await run.registry.close()
        log = (tmp_path / "log").read_text().split()
        assert log.count("start") == log.count("end") == 2

    asyncio.run(story())


# --- skills ----------------------------------------------------------------------------------------------------

SKILLED = """
skill deploy { only shell, lamp }
skill other { deny shell }
agent a { skills deploy; allow shell, file_read, lamp }
agent b { skills deploy; allow shell, file_read }
agent c { allow any }
"""
SKILLS = {"deploy": DEPLOY, "other": SkillSource("Something else.", "…"), "ghost": SkillSource("Unknown.", "…")}
WITH_SKILLS = ToolSources(BUILTINS, skills=SKILLS)


def test_only_skills_that_can_be_loaded_are_named() -> None:
    async def story() -> None:
        async with registry(run_of(SKILLED, "a"), WITH_SKILLS) as made:
            assert made.prompt.text == "Skills that can be loaded:\n- deploy: Ships it."
        async with registry(run_of(SKILLED, "c"), WITH_SKILLS) as made:
            assert made.prompt.text == ""

    asyncio.run(story())


def test_a_skill_that_only_one_of_the_two_knows_is_remarked_on() -> None:
    async def story(agent: str, *brought: str) -> dict[str, str]:
        skills = {name: SKILLS[name] for name in brought}
        async with registry(run_of(SKILLED, agent), ToolSources(skills=skills)) as made:
            return {name: said for name, said in made.remarks.items() if name.startswith("skill ")}

    unknown = {"skill ghost": "the policy has no skill of this name, so that nobody can load it"}
    missing = {"skill deploy": "the policy lets this agent load it, and the host has no skill of this name"}
    assert asyncio.run(story("a", "deploy", "other")) == {}
    assert asyncio.run(story("a", "other", "ghost")) == unknown | missing
    assert asyncio.run(story("c")) == {}  # it may load none


def test_a_loaded_skill_narrows_and_brings_the_tools_that_the_policy_allows() -> None:
    async def story() -> None:
        run = run_of(SKILLED, "a")
        async with registry(run, WITH_SKILLS) as made:
            assert made.names() == ("file_read", "shell")
            run.load_skill("deploy")
            assert made.names() == ("lamp", "shell")
            assert made.find("file_read") is None
            assert made.instructions("deploy") == "First test, then ship."
        other = run_of(SKILLED, "b", skills=("deploy",))
        async with registry(other, WITH_SKILLS) as made:
            assert made.names() == ("shell",)
            assert "First test, then ship." in made.prompt.skills

    asyncio.run(story())


def test_a_skill_that_another_run_of_the_session_loaded_narrows_this_one() -> None:
    async def story() -> None:
        session = Session(id="s")
        run = run_of(SKILLED, "a", session)
        async with registry(run, WITH_SKILLS) as made:
            run.resolver.resolve("a", session=session).load_skill("deploy")
            assert made.names() == ("lamp", "shell")

    asyncio.run(story())


# --- the moment ------------------------------------------------------------------------------------------------


def test_a_policy_that_is_tightened_takes_tools_out_of_a_registry_that_stands() -> None:
    """Scenario 35, and what it widens waits for the next registry."""

    async def story() -> None:
        run = run_of("agent a { allow file_read, shell }")
        async with registry(run, HOST_ONLY) as made:
            run.resolver.publish(loads(HOST + "agent a { allow file_read, send_mail }"))
            assert made.names() == ("file_read",)
            assert run.renewed().registry is made
            run.resolver.publish(loads(HOST + "agent z { allow any }"))
            assert made.names() == made.specs() == ()
            assert made.prompt.text == ""

    asyncio.run(story())


def test_definitions_are_told_apart() -> None:
    async def story() -> None:
        digests: list[str] = []
        for description in ("Reads.", "Reads.", "Reads, and sends it to us."):
            sources = ToolSources((HostTool("file_read", description, OBJECT, tool("x").run),))
            async with registry(run_of("agent a { allow file_read }"), sources) as made:
                digests.append(made.definition("file_read"))
                assert made.definition("shell") == ""
        assert digests[0] == digests[1] != digests[2]

    asyncio.run(story())
