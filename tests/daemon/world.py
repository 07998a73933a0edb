"""A small host for stories: tools that note what ran, models that follow scripts, and the ways to a turn of an agent."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

import policy_lang
from zcpolicy import Narrowing, Resolver
from zcpolicy.approvals.question import Approvers
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.order import Order
from zcpolicy.daemon.paths.channel import Channel
from zcpolicy.daemon.paths.gateway import application
from zcpolicy.daemon.paths.rpc import Rpc
from zcpolicy.daemon.paths.run import later, run_due, run_once
from zcpolicy.daemon.paths.step import Workflow, WorkflowStep, run_workflow
from zcpolicy.daemon.schedule import Schedule
from zcpolicy.daemon.wire import answer_of
from zcpolicy.events import Event
from zcpolicy.facts import Session, ToolName
from zcpolicy.ledgers.contract import Ledger
from zcpolicy.loop.access import ResolvedModelAccess
from zcpolicy.loop.scripted import ScriptedModel, Step, calls
from zcpolicy.memory_stores.in_memory import InMemoryStore
from zcpolicy.registry.host_tools import delegate_tool, memory_tools, pipeline_tool, tool_search_tool
from zcpolicy.registry.mcp_servers import StdioServer
from zcpolicy.registry.site import OPEN, Site
from zcpolicy.registry.sources import Group, HostTool, McpServer, ToolContext, ToolResult, ToolSources

TOOLS = """zcpolicy 1

tool file_read(path: path)                     risk read
tool shell(command: shell)                     risk high
tool fetch(url: string)                        risk read
tool send_mail(to: string)                     risk medium
tool cron_add(text: string)                    risk medium
tool delegate(agent: string, task: string, independent?: boolean) risk low
tool memory_recall(query: string)              risk read
tool memory_store(text: string, scope?: string) risk low
tool schedule(agent: string, text: string)     risk low
tool post(text: string)                        risk medium
tool lamp(text: string)                        risk low
tool pipeline(steps: list<object>) runs tools  risk low
tool tool_search(query: string)                risk read
tool forge/get_issue(number: integer)          risk read
tool forge/push_file(path: path, text: string) risk medium
label untrusted

agent boss {
    connect all_of_forge
    allow any
    delegate to worker
    delegate to free independent because "is trusted with more"
    delegate depth 3
    memory read worker
}
bundle all_of_forge { server forge }
"""
"""The tools of the stories, and `boss`, who may do everything and hands work to `worker`."""

GIVEN: Mapping[ToolName, Mapping[str, Any]] = {
    "file_read": {"path": "/w/a"}, "shell": {"command": "ls"}, "fetch": {"url": "x"}, "send_mail": {"to": "ann"},
    "cron_add": {"text": "later"}, "post": {"text": "to all"}, "lamp": {"text": "on"},
    ("forge", "get_issue"): {"number": 1}, ("forge", "push_file"): {"path": "a", "text": "b"},
}  # fmt: skip
"""Sound arguments of each tool that only notes that it ran."""

NOTING = ("file_read", "shell", "fetch", "send_mail", "cron_add")
NOON = 1_800_000_000.0
"""When runs that calls have started are due."""
FORGE = Path(__file__).parents[1] / "servers/forge.py"


def forge(log: Path) -> McpServer:
    """A real server, started as a process; it logs what it did."""
    return McpServer(StdioServer(sys.executable, (str(FORGE),), env={"FORGE_LOG": str(log)}).connect)


class World:
    """A host under a policy. `ran`: agent and tool of each call that a tool of the host was run for. `fails`: tools that report failure. `touched`: times that the hardware was.
    `every`: seconds between the runs that the tool `schedule` starts."""

    def __init__(
        self,
        policy: str,
        folder: Path,
        *,
        approvers: Mapping[str, Approvers] | None = None,
        servers: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        self.folder = folder
        self.ran: list[tuple[str, ToolName]] = []
        self.events: list[Event] = []
        self.models: dict[str, ScriptedModel] = {}
        self.schedule = Schedule(str(folder / "jobs.json"))
        self.fails: set[str] = set()
        self.memory = InMemoryStore()
        self.touched = 0
        self.every: float | None = None
        self.forge_log = folder / "forge.log"
        sources = ToolSources(
            builtins=(
                *map(self._noting, NOTING),
                self._noting("post", "delivery"),
                *self._own(),
                pipeline_tool(),
                tool_search_tool(),
            ),
            peripherals=self._hardware,
            servers={"forge": forge(self.forge_log)} if servers else {},
        )
        self.host = Host(
            Resolver(
                policy_lang.loads(TOOLS + policy), protected=Schedule.files(str(folder / "jobs.json")), ledger=ledger
            ),
            sources,
            self.access,
            approvers=approvers,
            record=self.events.append,
            place=_place,
        )

    def script(self, agent: str, *steps: Step) -> ScriptedModel:
        """What an agent's model says from now on."""
        self.models[agent] = ScriptedModel(*steps, name=f"model of {agent}")
        return self.models[agent]

    def access(self, agent: str) -> ResolvedModelAccess:
        """Each agent has a model of its own; one without a script has none."""
        return ResolvedModelAccess(self.models[agent])

    def shown(self, agent: str) -> set[str]:
        """The tools that an agent's model was shown at first, by their wire names."""
        return {spec.wire for spec in self.models[agent].requests[0].tools}

    def told(self, agent: str) -> list[str]:
        """The results of calls that an agent's model has been told."""
        return [one.text for one in self.models[agent].requests[-1].messages if one.role == "tool"]

    def of_kind(self, kind: str) -> list[Event]:
        """What was recorded of one kind."""
        return [event for event in self.events if event.kind == kind]

    async def _hardware(self) -> tuple[HostTool, ...]:
        self.touched += 1
        return (self._noting("lamp"),)

    def _noting(self, name: str, group: Group = "") -> HostTool:
        async def run(_arguments: dict[str, Any], context: ToolContext) -> ToolResult:
            self.ran.append((context.identity.agent, name))
            return ToolResult(f"{name} ran", ok=name not in self.fails)

        return HostTool(name, f"The tool {name}.", _parameters(*GIVEN[name]), run, group)

    def _own(self) -> tuple[HostTool, ...]:
        async def schedule(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
            ticket = context.later(arguments["agent"])
            later(self.host, self.schedule, ticket, arguments["text"], NOON, every=self.every)
            return ToolResult("scheduled")

        later_tool = HostTool("schedule", "Has a run start later.", _parameters("agent", "text"), schedule)
        return (delegate_tool(), later_tool, *memory_tools(self.memory))


def _place(session: Session) -> None:
    session.cwd = "/w"


def _parameters(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in names}, "required": list(names)}


# --- the six ways to a turn of an agent ------------------------------------------------------------------------------


async def by_channel(world: World, agent: str, narrowing: Narrowing | None, site: Site) -> str:
    said: list[str] = []

    async def send(_sender: str, text: str) -> None:
        said.append(text)

    await Channel(world.host, agent, send, narrowing=narrowing, site=site).receive("ann", "do it")
    return said[-1]


async def by_rpc(world: World, agent: str, narrowing: Narrowing | None, site: Site) -> str:
    path = str(world.folder / "socket")
    async with await Rpc(world.host, {agent}, narrowing, site).serve(path):
        reader, writer = await asyncio.open_unix_connection(path)
        request = {"jsonrpc": "2.0", "id": 1, "method": "turn", "params": {"agent": agent, "text": "do it"}}
        writer.write(f"{json.dumps(request)}\n".encode())
        answer = json.loads(await reader.readline())
        writer.close()
        await writer.wait_closed()
    return str(answer["result"]["text"] if "result" in answer else answer["error"]["message"])


async def by_gateway(world: World, agent: str, narrowing: Narrowing | None, site: Site) -> str:
    app = application(world.host, {agent}, ["token"], narrowing=narrowing, site=site)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host") as client:
        answer = await client.post(
            "/turn", json={"agent": agent, "text": "do it"}, headers={"authorization": "Bearer token"}
        )
    return str(answer.json().get("text", answer.json().get("error")))


async def by_run(world: World, agent: str, narrowing: Narrowing | None, site: Site) -> str:
    result = await run_once(world.host, agent, "do it", narrowing=narrowing, site=site)
    return result.text


async def by_delegate(world: World, agent: str, narrowing: Narrowing | None, site: Site) -> str:
    world.script("boss", calls(("delegate", {"agent": agent, "task": "do it"})), "boss has done it")
    await run_once(world.host, "boss", "have it done", narrowing=_with(narrowing, "delegate"), site=site)
    return world.told("boss")[-1]


async def by_step(world: World, agent: str, narrowing: Narrowing | None, site: Site) -> str:
    seat = world.host.sessions.open(world.host.sessions.client("run", "operator"))
    order = Order("boss", "", "run", seat, narrowing=narrowing, site=site)
    went = await run_workflow(world.host, Workflow("boss", (WorkflowStep("do it", agent),)), order)
    return went[-1].text


async def by_later(world: World, agent: str, narrowing: Narrowing | None, site: Site) -> str:
    """A call of `boss` has the agent run later: what is withheld from the one is told to nobody but its host then."""
    world.script("boss", calls(("schedule", {"agent": agent, "text": "do it"})), "boss has planned it")
    await run_once(world.host, "boss", "have it done", narrowing=_with(narrowing, "schedule"), site=site)
    (ran,) = await run_due(world.host, world.schedule, NOON)
    return ran.refused if ran.result is None else answer_of(ran.result)


def _with(narrowing: Narrowing | None, name: str) -> Narrowing | None:
    """The delegator has to be able to delegate at all."""
    if narrowing is None or narrowing.only is None:
        return narrowing
    return Narrowing(only={*narrowing.only, name})


Way = Callable[[World, str, Narrowing | None, Site], Awaitable[str]]
WAYS: Mapping[str, Way] = {
    "channel": by_channel, "rpc": by_rpc, "gateway": by_gateway, "run": by_run, "delegate": by_delegate, "step": by_step,
    "later": by_later,
}  # fmt: skip


async def turn(
    way: str, world: World, agent: str = "worker", *, narrowing: Narrowing | None = None, site: Site = OPEN
) -> str:
    """One turn of an agent on one of the ways; what its answer was."""
    return await WAYS[way](world, agent, narrowing, site)
