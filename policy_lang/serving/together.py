"""Settings beside the policy that they serve: names that one has and the other has not.

In: the settings, their top table, a `Program`. Out: findings, each at its place in the settings.
"""

from collections.abc import Iterator
from typing import Any, Final

from policy_lang import codes
from policy_lang.nearest import nearest, or_list
from policy_lang.serving.reading import MOST_SHOWN, Table
from policy_lang.serving.toml import Path as Place
from zcpolicy.daemon.settings import Settings
from zcpolicy.program import Program, agent_of, head_of

MAX_SHOWN_AGENTS: Final = 5
"""Agents that one finding names."""


def judge_together(settings: Settings, top: Table, program: Program) -> None:
    """Adds what is wrong to the table's findings."""
    for name in settings.agents:
        _known(top, name, program.agents, "agent", ("agents", name), on_key=True)
    for number, job in enumerate(settings.schedule):
        _served(settings, top, program, job.agent, ("schedule", number, "agent"))
    for name, chat in settings.channels.items():
        _served(settings, top, program, chat.agent, ("channels", name, "agent"))
    for name in settings.skills:
        _known(top, name, list(head_of(program)["skills"]), "skill", ("skills", name), on_key=True)
    reached = _reached(settings, program)
    _ways_in(settings, top, program, reached)
    _servers(settings, top, program, reached)
    _routes(settings, top, program)
    _drift(settings, top, program)


def _known(
    top: Table, name: str, known: tuple[str, ...] | list[str], what: str, place: Place, *, on_key: bool = False
) -> bool:
    if name in known:
        return True
    near = nearest(name, known)
    listed = f"the policy has {or_list(sorted(known))}" if 0 < len(known) <= MOST_SHOWN else None
    top.say(
        codes.NOT_IN_POLICY, f"the policy has no {what} `{name}`", place,
        help=f"did you mean `{near}`?" if near else listed, on_key=on_key,
    )  # fmt: skip
    return False


def _served(settings: Settings, top: Table, program: Program, name: str, place: Place) -> None:
    """An agent that is to run: it is in the policy, and has a model."""
    if _known(top, name, program.agents, "agent", place) and name not in settings.agents:
        top.say(
            codes.MISSING_SETTING, f"agent `{name}` has no model", place,
            help=f'write `[agents.{name}]` and `model = "…"`',
        )  # fmt: skip


def _ways_in(settings: Settings, top: Table, program: Program, reached: dict[str, str]) -> None:
    for name in settings.agents:
        if name in program.agents and name not in reached:
            top.say(
                codes.NO_WAY_IN, f"nobody reaches agent `{name}`", ("agents", name), on_key=True,
                help='write `surfaces = ["gateway"]`, or have another agent delegate to it',
            )  # fmt: skip
    for name, above in reached.items():
        if name not in settings.agents and above in settings.agents:
            top.say(
                codes.ABSENT_MODEL, f"agent `{above}` may delegate to `{name}`, which has no model here",
                ("agents", above), on_key=True, help=f'write `[agents.{name}]` and `model = "…"`',
            )  # fmt: skip


def _reached(settings: Settings, program: Program) -> dict[str, str]:
    """The agents that somebody reaches, each with one that delegates to it, or itself."""
    first = [name for name, agent in settings.agents.items() if agent.surfaces]
    first += [job.agent for job in settings.schedule] + [chat.agent for chat in settings.channels.values()]
    found = {name: name for name in first if name in program.agents}
    waiting = list(found)
    while waiting:
        above = waiting.pop()
        for child in _children(program, above):
            if child not in found:
                found[child] = above
                waiting.append(child)
    return found


def _line(program: Program, name: str) -> Iterator[str]:
    """An agent and those that it narrows."""
    here: str | None = name
    while here is not None:
        yield here
        data = agent_of(program, here)
        here = None if data is None else data["narrows"]


def _children(program: Program, name: str) -> list[str]:
    root = agent_of(program, list(_line(program, name))[-1])
    return [] if root is None else list(root["body"].get("delegate", {}).get("to", {}))


def _connected(program: Program, name: str) -> set[str]:
    """The servers that an agent's own bodies connect."""
    found: set[str] | None = None
    for each in _line(program, name):
        data = agent_of(program, each)
        said = None if data is None else data["body"].get("connect")
        if said is not None:
            found = set(said["servers"]) if found is None else found & set(said["servers"])
    return found or set()


def _servers(settings: Settings, top: Table, program: Program, reached: dict[str, str]) -> None:
    connected: dict[str, list[str]] = {}
    for name in sorted(reached):
        for server in _connected(program, name):
            connected.setdefault(server, []).append(name)
    known = head_of(program)["servers"]
    for server in settings.mcp:
        if _known(top, server, known, "server", ("mcp", server), on_key=True) and server not in connected:
            top.say(
                codes.UNUSED_SERVER, f"no agent that is reached here connects server `{server}`", ("mcp", server),
                on_key=True, help=f"write `bundle NAME {{ server {server} }}` and `connect NAME` in the policy, or leave it out here",
            )  # fmt: skip
    for server, agents in sorted(connected.items()):
        if server not in settings.mcp:
            top.say(
                codes.ABSENT_SERVER,
                f"{_who(agents)} server `{server}`, and there is no `[mcp.{server}]`",
                ("agents", agents[0]), on_key=True, help=f"write `[mcp.{server}]` and `command` or `url`",
            )  # fmt: skip


def _routes(settings: Settings, top: Table, program: Program) -> None:
    """Who is asked by a route: the daemon has nobody but operators."""
    said: list[Any] = [body.get("approval", {}) for body in _bodies(program)]
    asked = {route for one in said for key in ("routes", "fallback") for route in one.get(key, ())}
    given = settings.operators.routes
    for number, route in enumerate(given):
        _known(top, route, sorted(asked), "route", ("approvals", "routes", number))
    meant = {
        nearest(route, asked) for route in given if route not in asked
    }  # of these it was said that they are misspelt
    for route in sorted(asked.difference(given, meant)):
        add = f'add `"{route}"` to `routes`' if given else f'write `[approvals]` and `routes = ["{route}"]`'
        top.say(
            codes.UNANSWERED_ROUTE, f"nobody answers route `{route}` of the policy: what it is asked about is denied",
            ("approvals" if "approvals" in top.values else "policy",), on_key=True,
            help=f"{add}: then operators do",
        )  # fmt: skip


def _drift(settings: Settings, top: Table, program: Program) -> None:
    """The daemon does not hold what a server lists beside the catalogue: whoever wrote `on drift` relies on it."""
    if settings.mcp and any(body.get("drift") for body in _bodies(program)):
        top.say(
            codes.UNCOMPARED_SERVER, "live definitions of servers are not compared with the catalogue here: `on drift` has nothing to act on",
            ("mcp", next(iter(settings.mcp))), on_key=True,
            help="`zcpolicy tools --check -o FILE` says what a server has changed; pin what its command installs",
        )  # fmt: skip


def _bodies(program: Program) -> list[Any]:
    head = head_of(program)
    bodies: list[Any] = [head["ceiling"], *head["skills"].values()]
    return bodies + [data["body"] for name in program.agents if (data := agent_of(program, name)) is not None]


def _who(agents: list[str]) -> str:
    shown = [f"`{name}`" for name in agents[:MAX_SHOWN_AGENTS]]
    more = f" and {len(agents) - len(shown)} more" if len(agents) > len(shown) else ""
    return f"agent {shown[0]} connects" if len(agents) == 1 else f"agents {', '.join(shown)}{more} connect"
