"""The bodies that one execution stands under: its own, and those of the executions above it (SPEC 5 and 10).

In: a program, an agent, what the host takes away, the execution above. Out: a `Stack` of `Level`s, outermost last.
"""

from __future__ import annotations

from zcpolicy.exact import frozen, is_map, is_row
from zcpolicy.program import CompiledError, agent_of, head_of, origins_of
from zcpolicy.sealed import Fixed, hidden, put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Final

    from zcpolicy.decision import Decision
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.plan import Plan
    from zcpolicy.program import Program
    from zcpolicy.shapes import Agent, Body, Place

    Decide = Callable[[Any, ResolvedAgentExecution], Decision]

MAX_NARROWING_CHAIN: Final = 1_000
"""Agents that narrow each other in one line."""


class BodyRef(Fixed):
    """One body, and where its parts were written. `data`: frozen. `grants`: the root of a chain of agents."""

    __slots__ = ("_origins", "_program", "data", "grants", "kind", "name")

    if TYPE_CHECKING:
        _program: Program
        _origins: Any
        data: Body
        kind: str
        name: str
        grants: bool

    def __init__(self, program: Program, data: Body) -> None:
        put(self, "_program", program)
        put(self, "_origins", None)
        put(self, "data", frozen(data))
        put(self, "kind", data["kind"])
        put(self, "name", data["name"])
        put(self, "grants", data["kind"] == "agent")

    def places(self, part: str, index: int) -> list[Place]:
        """Where an element of a list was written, or (`index` below 0) another statement, or the body itself."""
        origins: Any = self._origins
        if origins is None:
            kind = self.kind if self.kind in ("ceiling", "skill") else "agent"
            known = self.kind != "narrowing"
            origins = origins_of(self._program, kind, self.name) if known else frozen({})
            put(self, "_origins", origins)
        try:
            found: Any = origins[part][index] if index >= 0 else origins.get("other", {}).get(part, [])
            if not found and "place" in origins and " " not in part:
                found = [origins["place"]]
            return [[*place] for place in found if _is_place(place)]
        except (KeyError, IndexError, TypeError, AttributeError):
            return []


def _is_place(place: Any) -> bool:
    return is_row(place) and len(place) == 3 and all(isinstance(part, str) for part in place)


class RuleRef(Fixed):
    """One statement that decided: where it stands, what it says, and its `because`.

    `about`: the risk class, of an `autonomy`: of several statements the strictest for it decided.
    """

    __slots__ = ("about", "body", "index", "part")

    if TYPE_CHECKING:
        about: str
        body: BodyRef
        index: int
        part: str

    def __init__(self, body: BodyRef, part: str, index: int = -1, about: str = "") -> None:
        put(self, "about", about)
        put(self, "body", body)
        put(self, "part", part)
        put(self, "index", index)

    @property
    def data(self) -> Any:
        """The statement in its compiled form."""
        whole: Any = self.body.data.get(self.part)
        return whole[self.index] if self.index >= 0 else whole

    @property
    def because(self) -> str | None:
        """The reason that the policy gives."""
        data = self.data
        found = data.get("because") if is_map(data) else None
        return found if isinstance(found, str) else None

    @property
    def place(self) -> Place | None:
        """`[file, line, text]`, None where the origins are not known."""
        found = self.body.places(f"{self.part} {self.about}", -1) if self.about else []
        found = found or self.body.places(self.part, self.index)
        return found[0] if found else None

    def to_json(self) -> dict[str, Any]:
        """As FORMATS lays it out."""
        place = self.place
        if place is None:
            return {"file": None, "line": None, "text": None, "because": self.because}
        line = int(place[1]) if place[1].isdecimal() and len(place[1]) < 10 else None
        return {"file": place[0], "line": line, "text": place[2], "because": self.because}

    def __repr__(self) -> str:
        file, line, text = self.place or ["?", "?", f"{self.body.kind} {self.body.name}: {self.part}[{self.index}]"]
        return f"<{file}:{line} {text}>"


class Level(Fixed):
    """One execution: the bodies of an agent at work. `chain`: the agent and those it narrows, root last."""

    __slots__ = ("agent", "bodies", "chain", "depth", "skills")

    if TYPE_CHECKING:
        agent: str
        bodies: tuple[BodyRef, ...]
        chain: tuple[str, ...]
        depth: int
        skills: tuple[str, ...]

    def __init__(
        self, agent: str, bodies: tuple[BodyRef, ...], chain: tuple[str, ...], depth: int, skills: tuple[str, ...]
    ) -> None:
        put(self, "agent", agent)
        put(self, "bodies", bodies)
        put(self, "chain", chain)
        put(self, "depth", depth)
        put(self, "skills", skills)

    @property
    def root(self) -> BodyRef:
        """The body that grants."""
        return next(body for body in self.bodies if body.grants)


class Stack(Fixed):
    """An execution's own level, then those that bound it. `counted`: all levels whose limits it counts in.

    What was worked out for it is in hidden tables, which go with it: `plans_of` and `deciders_of`.
    """

    __slots__ = ("__weakref__", "_deciders", "_plans", "counted", "levels", "program")

    if TYPE_CHECKING:
        program: Program
        levels: tuple[Level, ...]
        counted: tuple[Level, ...]

    def __init__(self, program: Program, levels: tuple[Level, ...], counted: tuple[Level, ...]) -> None:
        put(self, "program", program)
        put(self, "levels", levels)
        put(self, "counted", counted)
        _PLANS.__set__(self, {})
        _DECIDERS.__set__(self, {})

    @property
    def own(self) -> Level:
        """The acting execution."""
        return self.levels[0]

    def bodies(self) -> Iterator[BodyRef]:
        """All bodies that decide."""
        for level in self.levels:
            yield from level.bodies


_PLANS: Final = hidden(Stack, "_plans")
_DECIDERS: Final = hidden(Stack, "_deciders")
deciders_of: Final[Callable[[Stack], dict[Any, Decide]]] = _DECIDERS.__get__
"""What decides the calls of a tool, by tool. For the engine; it is what every decision asks first."""


def plans_of(stack: Stack) -> dict[Any, Plan]:
    """The plans of a stack so far, by tool. For the engine."""
    found: dict[Any, Plan] = _PLANS.__get__(stack)
    return found


def chain_of(program: Program, name: str) -> list[Agent]:
    """An agent of the program and those it narrows, root last. Raises CompiledError."""
    found: list[Agent] = []
    wanted: str | None = name
    while wanted is not None:
        agent = agent_of(program, wanted)
        if agent is None:
            raise CompiledError(f"agent `{name}` narrows `{wanted}`, which is not there")
        found.append(agent)
        if len(found) > MAX_NARROWING_CHAIN:
            raise CompiledError(f"agent `{name}` narrows itself")
        wanted = agent["narrows"]
    kinds = [agent["body"]["kind"] for agent in found]
    if kinds != ["narrows"] * (len(found) - 1) + ["agent"]:
        raise CompiledError(f"agent `{name}` has no body that grants")
    return found


def level_of(program: Program, name: str, depth: int, skills: tuple[str, ...], added: tuple[BodyRef, ...]) -> Level:
    """The level of an agent of the program at work with active skills and added bodies (the host's narrowing)."""
    chain = chain_of(program, name)
    head = head_of(program)
    bodies = [BodyRef(program, agent["body"]) for agent in chain]
    bodies.append(BodyRef(program, head["ceiling"]))
    bodies.extend(BodyRef(program, head["skills"][skill]) for skill in skills)
    for body in bodies[len(chain) :]:
        put(body, "grants", False)
    names = tuple(agent["body"]["name"] for agent in chain)
    return Level(name, (*bodies, *added), names, depth, skills)
