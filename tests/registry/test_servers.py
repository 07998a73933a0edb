"""Servers: who gets their tools, how they are started and let go of, and what happens where that fails."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.registry.offers import BUILTINS, SERVERS, Shelf, forge, odd, registry, run_of, silent
from zcpolicy import Narrowing
from zcpolicy.registry import connecting
from zcpolicy.registry.mcp_servers import HttpServer, StdioServer
from zcpolicy.registry.scoped import ScopedToolRegistry, runner_of
from zcpolicy.registry.sources import McpConnection, McpServer, McpTool, ToolResult, ToolSources

NOBODY: Any = None
"""The context of a tool that asks for none."""


def result(answer: ToolResult | str) -> ToolResult:
    """Servers answer with results."""
    assert isinstance(answer, ToolResult)
    return answer


TWO = """
agent a { connect forge; allow forge/*, file_read, tool_search }
agent b { allow any }
agent some { connect reading; allow forge/*, file_read }
agent c narrows a { connect none }
"""


def of(agent: str, log: Path) -> tuple[list[Any], list[str]]:
    """The tools of an agent, and what the forge wrote."""

    async def story() -> list[Any]:
        async with registry(run_of(TWO, agent), ToolSources(BUILTINS, servers={"forge": forge(log)})) as made:
            assert made.failures == {}
            return [*made.names()]

    names = asyncio.run(story())
    return names, log.read_text().split("\n")[:-1] if log.exists() else []


FORGE = [("forge", name) for name in ("broken", "get_issue", "push_file", "set_rate")]


def test_each_agent_has_the_servers_of_its_bundles(tmp_path: Path) -> None:
    """Scenario 22: what no bundle connects is not even started."""
    assert of("a", tmp_path / "a") == (["file_read", *FORGE], ["start", "end"])
    assert of("b", tmp_path / "b") == (["deliver", "file_read", "send_mail", "shell"], [])
    assert of("some", tmp_path / "some") == (["file_read", ("forge", "get_issue")], ["start", "end"])
    assert of("c", tmp_path / "c") == (["file_read"], [])


def test_a_child_has_no_server_that_its_delegator_has_not(tmp_path: Path) -> None:
    policy = """
        agent a { allow any; delegate to b }
        agent b { connect forge; allow any }
    """

    async def story() -> None:
        parent = run_of(policy)
        child = parent.resolver.resolve("b", parent=parent)
        sources = ToolSources(BUILTINS, servers={"forge": forge(tmp_path / "log")})
        async with registry(child, sources) as made:
            assert made.names() == ("deliver", "file_read", "send_mail", "shell")
        assert not (tmp_path / "log").exists()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("narrowing", "knobs", "there", "connected"),
    [
        (None, {}, ["file_read", *FORGE], 1),
        (None, {"connect_mcp": False}, ["file_read"], 0),
        (None, {"caller_allowed": ["file_read"]}, ["file_read"], 0),
        (None, {"caller_allowed": [("forge", "get_issue"), "shell"]}, [("forge", "get_issue")], 1),
        (Narrowing(only=["file_read"]), {}, ["file_read"], 0),
        (Narrowing(deny=[("forge", "get_issue")]), {}, ["file_read", FORGE[0], *FORGE[2:]], 1),
        (None, {"deferred": True}, ["file_read", *FORGE], 1),
    ],
)
def test_what_a_site_takes_away(
    narrowing: Narrowing | None, knobs: dict[str, Any], there: list[Any], connected: int
) -> None:
    """A server of which nothing is left is not connected."""

    async def story() -> None:
        shelf = Shelf([name for _, name in FORGE])
        sources = ToolSources(BUILTINS, servers={"forge": McpServer(shelf.connect)})
        async with registry(run_of(TWO, narrowing=narrowing), sources, **knobs) as made:
            assert [*made.names()] == there
        assert shelf.opened == shelf.closed == connected

    asyncio.run(story())


def test_a_tool_that_the_policy_does_not_know_is_absent_though_the_server_lists_it() -> None:
    async def story() -> None:
        servers = {"forge": McpServer(Shelf(["get_issue", "new_tool"]).connect)}
        async with registry(run_of(TWO), ToolSources(servers=servers)) as made:
            assert made.names() == (("forge", "get_issue"),)
            assert made.find("forge__new_tool") is None

    asyncio.run(story())


def test_calls_reach_the_server_and_its_failures_come_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with registry(run_of(TWO), ToolSources(servers={"forge": forge(tmp_path / "log")})) as made:

            async def call(name: str, **arguments: Any) -> ToolResult:
                run = runner_of(made, ("forge", name))
                assert run is not None
                return result(await run(arguments, NOBODY))

            assert await call("get_issue", number=3) == ToolResult("issue 3: the sky is blue")
            assert await call("set_rate", rate=1.5) == ToolResult("the rate is 1.5")
            broken = await call("broken")
            assert (broken.ok, broken.text) == (False, "Error executing tool broken")
            wrong = await call("get_issue", number="three")
            assert not wrong.ok
            exact = await call("set_rate", rate=Decimal("0.10000000000000000000000001"))
            assert exact == ToolResult("a number has more digits than the server is sent", ok=False)

    asyncio.run(story())


def test_a_server_is_let_go_of_once_however_often_its_registry_is_closed(tmp_path: Path) -> None:
    async def story() -> None:
        execution = run_of(TWO)
        made = await ScopedToolRegistry.assemble(execution, ToolSources(servers={"forge": forge(tmp_path / "log")}))
        run = runner_of(made, ("forge", "get_issue"))
        await asyncio.gather(*(made.close() for _ in range(3)))
        await made.close()
        assert (tmp_path / "log").read_text().split() == ["start", "end"]
        assert runner_of(made, ("forge", "get_issue")) is None
        assert run is not None
        late = result(await run({"number": 1}, NOBODY))  # held on to since before it was closed
        assert not late.ok

    asyncio.run(story())


# --- what fails ------------------------------------------------------------------------------------------------

ODD = """
tool odd/same() risk read
tool odd/tool0() risk read
bundle both { server odd; server forge }
bundle gone { server gone }
tool gone/x() risk read
agent a { connect both, gone; allow any }
"""


def failing(server: McpServer) -> tuple[list[Any], dict[str, str]]:
    """What is there, and why the rest is not, where one server fails beside another."""

    async def story() -> tuple[list[Any], dict[str, str]]:
        servers = {"odd": server, "forge": McpServer(Shelf([name for _, name in FORGE]).connect)}
        async with registry(
            run_of(ODD), ToolSources(servers=servers), caller_allowed=[*FORGE, ("odd", "same")]
        ) as made:
            return [*made.names()], dict(made.failures)

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (odd("dies"), "it cannot be connected: MCPError: Connection closed"),
        (odd("twice"), "it cannot be connected: AssemblyError: it lists two tools `same`"),
        (odd("endless"), "it cannot be connected: AssemblyError: it lists more than 100 pages"),
        (McpServer(StdioServer("/no/such/program").connect), "it cannot be connected: FileNotFoundError: "),
        (McpServer(HttpServer("http://127.0.0.1:9/mcp").connect), "it cannot be connected: "),
    ],
    ids=["dies", "lists a tool twice", "lists without end", "is not installed", "does not listen"],
)
def test_a_server_that_fails_is_absent_and_told_of(server: McpServer, why: str) -> None:
    names, failures = failing(server)
    assert names == FORGE
    assert [*failures] == ["odd"]
    assert failures["odd"].startswith(why)


def test_a_server_that_the_host_does_not_have_is_told_of() -> None:
    async def story() -> None:
        async with registry(
            run_of(ODD), ToolSources(servers={"forge": McpServer(Shelf(["get_issue"]).connect)})
        ) as made:
            assert made.failures == dict.fromkeys(("gone", "odd"), "the host has no server of this name")

    asyncio.run(story())


def test_a_server_that_dies_of_a_call_fails_it_and_is_let_go_of() -> None:
    async def story() -> None:
        execution = run_of(ODD)
        async with registry(
            execution, ToolSources(servers={"odd": odd("quits")}), caller_allowed=[("odd", "same")]
        ) as made:
            run = runner_of(made, ("odd", "same"))
            assert run is not None
            for _ in range(2):
                assert not result(await run({}, NOBODY)).ok

    asyncio.run(story())


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_server_that_does_not_answer_is_given_up_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "MAX_CONNECT_SECONDS", 2.0)

    async def story() -> None:
        sources = ToolSources(BUILTINS, servers={"odd": silent(tmp_path / "pid")})
        async with registry(run_of(ODD), sources, caller_allowed=["shell", ("odd", "same")]) as made:
            assert made.names() == ("shell",)
            assert made.failures == {"odd": "it cannot be connected: TimeoutError"}

    asyncio.run(story())
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_a_connection_that_is_cut_off_inside_is_absent_and_told_of() -> None:
    async def cut_off() -> McpConnection:
        raise asyncio.CancelledError

    async def story() -> None:
        servers = {"forge": McpServer(Shelf(["get_issue"]).connect), "odd": McpServer(cut_off)}
        async with registry(
            run_of(ODD), ToolSources(servers=servers), caller_allowed=[*FORGE, ("odd", "same")]
        ) as made:
            assert made.names() == (("forge", "get_issue"),)
            assert made.failures == {"odd": "it cannot be connected: it was cut off"}

    asyncio.run(story())


class Exits(Shelf):
    """A connection whose client ends in what is no exception. `where`: in which of its methods."""

    def __init__(self, where: str, raised: BaseException) -> None:
        super().__init__(["same"])
        self.where, self.raised = where, raised

    def at(self, place: str) -> None:
        if place == self.where:
            raise self.raised

    async def connect(self) -> McpConnection:
        self.at("connect")
        return await super().connect()

    async def tools(self) -> list[McpTool]:
        self.at("tools")
        return await super().tools()

    async def read(self, uri: str) -> str:
        self.at("read")
        return await super().read(uri)

    async def close(self) -> None:
        await super().close()
        self.at("close")


ENDS: Final = {
    "SystemExit": SystemExit(3),
    "GeneratorExit": GeneratorExit(),
    "Group": BaseExceptionGroup("x", [SystemExit(1)]),
}
WHERE: Final = {"connect": "odd", "tools": "odd", "read": "odd file://x", "close": ""}


@pytest.mark.parametrize("raised", ENDS)
@pytest.mark.parametrize("where", WHERE)
def test_a_connection_that_exits_ends_nothing_but_itself(where: str, raised: str) -> None:
    async def story() -> None:
        exits, shelf = Exits(where, ENDS[raised]), Shelf(["get_issue"])
        servers = {"forge": McpServer(shelf.connect), "odd": McpServer(exits.connect, ("file://x",))}
        allowed = [("forge", "get_issue"), ("odd", "same"), "mcp_resources"]
        async with registry(run_of(ODD), ToolSources(servers=servers), caller_allowed=allowed) as made:
            assert ("forge", "get_issue") in made.names()
            assert [one for one in made.failures if one != "gone"] == ([WHERE[where]] if WHERE[where] else [])
        assert (shelf.closed, exits.closed) == (1, int(where != "connect"))

    asyncio.run(story())


def test_a_connection_that_is_cut_off_inside_a_resource_is_told_of() -> None:
    async def story() -> None:
        sources = ToolSources(
            servers={"odd": McpServer(Exits("read", asyncio.CancelledError()).connect, ("file://x",))}
        )
        allowed = [("odd", "same"), "mcp_resources"]
        async with registry(run_of(ODD), sources, caller_allowed=allowed) as made:
            assert made.failures["odd file://x"] == "it cannot be read: CancelledError"

    asyncio.run(story())


def test_an_assembly_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    async def story() -> None:
        run, log, pid = run_of(ODD), tmp_path / "log", tmp_path / "pid"
        sources = ToolSources(servers={"forge": forge(log), "odd": silent(pid)})
        task = asyncio.create_task(ScopedToolRegistry.assemble(run, sources))
        for _ in range(200):
            if log.exists() and pid.exists() and pid.read_text():
                break
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log.read_text().split() == ["start", "end"]
        assert is_gone(int(pid.read_text()))
        async with registry(run, ToolSources(BUILTINS)) as made:  # nothing of it is left in the execution either
            assert "shell" in made.names()

    asyncio.run(story())


# --- over HTTP -------------------------------------------------------------------------------------------------


@contextmanager
def listening(log: Path) -> Generator[str]:
    """The forge over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, str(SERVERS / "forge.py"), str(port)]
    with subprocess.Popen(command, env={**os.environ, "FORGE_LOG": str(log)}, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(200):
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


def test_a_server_over_http(tmp_path: Path) -> None:
    async def story(url: str) -> None:
        sources = ToolSources(servers={"forge": McpServer(HttpServer(url, {"X-Team": "a"}).connect)})
        async with registry(run_of(TWO), sources) as made:
            assert made.names() == tuple(FORGE)
            run = runner_of(made, ("forge", "get_issue"))
            assert run is not None
            assert result(await run({"number": 7}, NOBODY)).text == "issue 7: the sky is blue"

    with listening(tmp_path / "log") as url:
        asyncio.run(story(url))


# --- a connection that a host pools ----------------------------------------------------------------------------


def test_what_a_server_is_given_is_not_in_its_name() -> None:
    assert "s3cret" not in repr(StdioServer("x", env={"TOKEN": "s3cret"})) + repr(HttpServer("x", {"Key": "s3cret"}))


def test_who_waits_for_a_registry_to_close_and_is_cancelled_does_not_stop_it() -> None:
    closing = asyncio.Event()

    class Slow(Shelf):
        async def close(self) -> None:
            closing.set()
            await asyncio.sleep(0.05)
            await super().close()

    async def story() -> None:
        shelf = Slow(["get_issue"])
        async with registry(run_of(TWO), ToolSources(servers={"forge": McpServer(shelf.connect)})) as made:
            first = asyncio.create_task(made.close())
            await closing.wait()
            first.cancel()
            await made.close()
            assert (shelf.closed, first.cancelled()) == (1, True)

    asyncio.run(story())


def test_every_execution_connects_for_itself() -> None:
    async def story() -> None:
        shelf = Shelf(["get_issue"])
        sources = ToolSources(servers={"forge": McpServer(shelf.connect)})
        first, second = run_of(TWO), run_of(TWO)
        async with registry(first, sources) as one, registry(second, sources) as two:
            assert shelf.opened == 2
            await one.close()
            assert one.names() == ()
            assert two.names() == (("forge", "get_issue"),)
        assert shelf.closed == 2

    asyncio.run(story())
