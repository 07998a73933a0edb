"""Calls, sessions, and stories of several calls, near the literals that the policies use.

Out: values that both the engine and the oracle can be asked about.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, cast

from hypothesis import strategies as st

from tests.strategies.catalogues import Param, Tool, rarely
from tests.strategies.policies import Sketch

VALUES: Mapping[str, tuple[Any, ...]] = {
    "string": ("abc", "ABC", "a", "x", "a\nc", "a@x.example", "", "ops", "10.1.2.3", "b", "/w/.env"),
    "path": ("/w/app/a", "/w/app", "/w/application", "/w/.env", "/w/app/.ENV", ".env", "a/b", "../x", "~/.ssh/id", "/etc/k.pem", "/w/app/../b", ""),
    "url": ("https://x.example/d", "http://api.x.example/", "https://10.0.0.1/", "https://localhost/", "nonsense", "file:///w/.env", "https://x.example.evil.test/"),
    "shell": ("ls", "ls -la", "git status -s", "git push", "cat .env", "rm -rf /w/x", "cat $X", "curl https://x.example/d", "cat /w/app/a", "", "echo 'a"),
    "command": ("dir", "del x", ""),
    "integer": (1, 2, 3, 0, -1, Decimal("2.0"), 10**30),
    "number": (2, Decimal("2.5"), Decimal("2.50"), 3, 0, -1, Decimal("0.1")),
    "boolean": (True, False),
    "any": (2, "abc", "/w/.env", {"k": "/w/.env"}, ["x"], None, "https://x.example/d"),
}  # fmt: skip

WRONG: tuple[Any, ...] = (None, "abc", 1, True, [], {}, Decimal("1.5"), ["abc", 1])


@dataclass(frozen=True)
class Call:
    """One call. `after`: seconds that pass before it; `wired`: the host has its arguments as JSON text; `above`: the
    delegator calls, where there is one, and not the story's agent.
    """

    tool: tuple[str | None, str]
    arguments: Mapping[str, Any]
    after: int = 0
    wired: bool = False
    above: bool = False

    @property
    def sent(self) -> dict[str, Any] | str:
        """The arguments as the host hands them over."""
        return json_text(self.arguments) if self.wired else dict(self.arguments)


def json_text(value: Any) -> str:
    """JSON with exact numbers."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return "{" + ", ".join(f"{json.dumps(name)}: {json_text(one)}" for name, one in members.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, cast("Sequence[Any]", value))) + "]"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value)


@dataclass(frozen=True)
class Earlier:
    """A call that ran before the story, `ago` seconds before it begins."""

    tool: tuple[str | None, str]
    arguments: Mapping[str, Any]
    ok: bool
    ago: int


@dataclass(frozen=True)
class Session:
    """What the host says of a session."""

    cwd: str | None = None
    interactive: bool = True
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    server_cwd: Mapping[str, str] = field(default_factory=dict[str, str])
    supplies_defaults: bool = True
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    labels: frozenset[str] = frozenset()
    drift: Mapping[tuple[str | None, str], str] = field(default_factory=dict[tuple[str | None, str], str])
    ledger: bool = True
    history: tuple["Earlier", ...] = ()


@dataclass(frozen=True)
class Limits:
    """What a host takes from one run: tools, by identity, and a level."""

    only: tuple[tuple[str | None, str], ...] | None = None
    deny: tuple[tuple[str | None, str], ...] = ()
    ask: tuple[tuple[str | None, str], ...] = ()
    autonomy: str | None = None


@dataclass(frozen=True)
class Story:
    """Who acts, for whom, in which session, and what is called one after the other."""

    sketch: Sketch
    agent: str
    parents: tuple[str, ...]
    skills: tuple[str, ...]
    session: Session
    narrowing: Limits | None
    calls: tuple[Call, ...]
    protected: tuple[str, ...] = ()

    def over(self, sketch: Sketch) -> "Story":
        """The same story under another policy."""
        return replace(self, sketch=sketch)


@st.composite
def sessions(draw: st.DrawFn, sketch: Sketch) -> Session:
    """A session with some of its facts absent, perhaps with a tool that is no longer what it was."""
    tools = [tool.key for tool in sketch.shelf.tools]
    drift: dict[tuple[str | None, str], str] = {}
    if draw(rarely(8)):
        drift[draw(st.sampled_from(tools))] = draw(st.sampled_from(("description", "schema", "launch")))
    context = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "role": st.sampled_from(("ops", "dev", 7)),
                "tier": st.sampled_from((1, 2, 3, "2")),
                "home": st.sampled_from(("/w", "w")),
            },
        )
    )
    return Session(
        cwd=draw(st.sampled_from((None, "/w", "/w/app", "/"))),
        interactive=draw(st.sampled_from((True, True, True, False))),
        env=draw(st.sampled_from(({}, {"HOME": "/home/u"}, {"HOME": "/w"}))),
        server_cwd=draw(st.sampled_from(({}, {"hub": "/w", "web": "/srv"}))),
        supplies_defaults=draw(st.sampled_from((True, True, False))),
        context=context,
        labels=frozenset(draw(st.sets(st.sampled_from(("dirty", "private")), max_size=1))),
        drift=drift,
        ledger=not draw(rarely(20)),
        history=tuple(draw(st.lists(earlier(sketch), max_size=2))) if draw(rarely(4)) else (),
    )


@st.composite
def earlier(draw: st.DrawFn, sketch: Sketch) -> Earlier:
    """A call that ran before."""
    tool = draw(st.sampled_from(sketch.shelf.tools))
    return Earlier(
        tool.key, draw(arguments(tool)), not draw(rarely(4)), draw(st.sampled_from((0, 59, 60, 61, 3600, 3601)))
    )


def values(param: Param) -> st.SearchStrategy[Any]:
    """A value of the parameter's kind, near the literals of the conditions."""
    if param.enum:
        return st.sampled_from((*param.enum, "ABC"))
    if param.kind.startswith("list<"):
        return st.lists(st.sampled_from(VALUES[param.kind[5:-1]]), max_size=3)
    if param.kind == "object":
        if param.fields:
            return st.fixed_dictionaries(
                {"text": st.sampled_from(VALUES["string"])}, optional={"n": st.sampled_from((2, 3))}
            )
        return st.fixed_dictionaries(
            {}, optional={"n": st.sampled_from((2, 3, "2", None)), "text": st.sampled_from(VALUES["string"])}
        )
    return st.sampled_from(VALUES[param.kind])


@st.composite
def arguments(draw: st.DrawFn, tool: Tool) -> dict[str, Any]:
    """Mostly what the schema wants; sometimes an argument is missing, wrong, null or not declared."""
    made: dict[str, Any] = {}
    for param in tool.params:
        if draw(rarely(25)):
            made[param.name] = draw(st.sampled_from(WRONG))
        elif draw(rarely(3 if param.optional or param.default is not None else 40)):
            continue
        else:
            made[param.name] = draw(values(param))
    if draw(rarely(10 if tool.open else 40)):
        made["other"] = draw(st.sampled_from(VALUES["any"]))
    return made


@st.composite
def calls(draw: st.DrawFn, sketch: Sketch) -> Call:
    """A call of a known tool, seldom of another."""
    tool = draw(st.sampled_from(sketch.shelf.tools))
    if draw(rarely(50)):
        return Call(
            draw(
                st.sampled_from(
                    ((None, "nothing"), ("hub", "nothing"), (None, "fs_read "), (tool.server, tool.name.upper()))
                )
            ),
            {},
        )
    after = draw(st.sampled_from((0, 0, 0, 30, 100, 4000)))
    return Call(tool.key, draw(arguments(tool)), after, draw(rarely(3)), draw(rarely(4)))


@st.composite
def narrowings(draw: st.DrawFn, sketch: Sketch) -> Limits | None:
    """Mostly none."""
    return draw(some_narrowings(sketch)) if draw(rarely(6)) else None


@st.composite
def some_narrowings(draw: st.DrawFn, sketch: Sketch) -> Limits:
    """What a host takes away."""
    some = st.lists(st.sampled_from([tool.key for tool in sketch.shelf.tools]), max_size=2, unique=True).map(tuple)
    only = draw(st.one_of(st.none(), some))
    return Limits(only, draw(some), draw(some), draw(st.sampled_from((None, "readonly", "supervised", "full"))))


def lines_of(policy: Sketch, agent: str) -> list[tuple[str, ...]]:
    """The delegators that an agent may work for, the nearest first; none at all is one of them."""
    allowed = [pair for pair, _ in policy.delegations]
    found: list[tuple[str, ...]] = [(), *((delegator,) for delegator, child in allowed if child == agent)]
    if agent == "a2" and len(allowed) == 3:
        found.append(("a1", "a0"))
    return found


@st.composite
def stories(draw: st.DrawFn, sketch: st.SearchStrategy[Sketch], most: int = 4) -> Story:
    """One agent at work under a policy, and what it calls."""
    policy = draw(sketch)
    agent = draw(st.sampled_from(policy.agents))
    parents = draw(st.sampled_from(lines_of(policy, agent)))
    skills = ("s0",) if agent in policy.skilled and draw(st.booleans()) else ()
    protected = ("/w/.env", "/w/app/a") if draw(rarely(8)) else ()
    made = tuple(draw(st.lists(calls(policy), min_size=1, max_size=most)))
    return Story(policy, agent, parents, skills, draw(sessions(policy)), draw(narrowings(policy)), made, protected)
