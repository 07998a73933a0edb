"""A policy whose names are resolved: what `names` makes, and `kinds`, `checks` and `lower` read.

In: nothing. Out: frozen types. Tool sets are looked up by the node that wrote them (`Bound.ids`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from policy_lang import ast
from policy_lang.diagnostics import Diagnostic
from policy_lang.gather import Gathered, LoadedFile
from policy_lang.tools import Catalogue
from zcpolicy.shapes import Body, BodyOrigins, Schema

BodyKind = Literal["agent", "narrows", "ceiling", "skill", "profile"]
S = TypeVar("S", bound=ast.Statement)


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A statement and the file it stands in; `via`: the profile that brought it, if one did."""

    node: ast.Statement
    file: LoadedFile
    via: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BoundBody:
    """A body with the statements of its profiles, without `use`. `name`: full name; `ceiling` for every ceiling.

    `parent`: of `narrows`. `node`: its declaration, in `file`. `uses`: full names of its profiles, transitively.
    """

    kind: BodyKind
    name: str
    node: ast.Agent | ast.Ceiling | ast.Skill | ast.Profile
    file: LoadedFile
    statements: tuple[Placed, ...]
    uses: tuple[str, ...] = ()
    parent: str | None = None

    def every(self, kind: type[S]) -> Iterator[tuple[S, Placed]]:
        """The statements of one type, each with its place."""
        for placed in self.statements:
            if isinstance(placed.node, kind):
                yield placed.node, placed

    @property
    def grants(self) -> bool:
        """Whether `allow` may stand here: a granting agent (a profile may, where it is used by one)."""
        return self.kind == "agent"


@dataclass(frozen=True, slots=True)
class BundleTools:
    """What a bundle connects: servers, and the ids of their tools that are in it."""

    servers: frozenset[str]
    tools: frozenset[int]


@dataclass(frozen=True, slots=True)
class Kept:
    """What earlier compilations found out about agents that are stubs now: without statements, not judged again.

    `agents`: their full names. `lowered`: what became of them. `findings`: about them. `granted`: tools that their
    roots allow. `used`: the names that they use, by what they name.
    """

    agents: frozenset[str] = frozenset()
    lowered: dict[str, tuple[Body, BodyOrigins]] = field(default_factory=dict[str, tuple[Body, BodyOrigins]])
    findings: tuple[Diagnostic, ...] = ()
    granted: frozenset[int] = frozenset()
    used: frozenset[tuple[str, str]] = frozenset()


NOTHING = Kept()
"""A compilation from nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """The whole policy, resolved. Mappings are by full name (an import's prefix and a dot before it).

    `agents`: granting and narrowing. `classes`: the risk class of each tool, by id. `context`: kinds of session facts.
    `names`: what a written name means, by (file, namespace, written); see `full`.
    """

    gathered: Gathered
    catalogue: Catalogue
    classes: tuple[ast.RiskClass, ...]
    labels: tuple[str, ...]
    scopes: tuple[str, ...]
    context: dict[str, Schema]
    agents: dict[str, BoundBody]
    ceilings: tuple[BoundBody, ...]
    skills: dict[str, BoundBody]
    profiles: dict[str, BoundBody]
    bundles: dict[str, BundleTools]
    lets: dict[str, tuple[ast.Let, LoadedFile]]
    groups: dict[str, tuple[ast.Group, LoadedFile]]
    names: dict[tuple[int, str, str], str]
    tool_sets: dict[int, frozenset[int]]
    kept: Kept = NOTHING

    def ids(self, node: ast.ToolSet) -> frozenset[int]:
        """The ids of the tools that a reference means; empty where it could not be bound."""
        return self.tool_sets.get(id(node), frozenset())

    def full(self, file: LoadedFile, space: "Namespace", written: str) -> str | None:
        """The full name of what a file means by a name, or `None` if there is none."""
        return self.names.get((id(file), space, written))

    def let_items(self, file: LoadedFile, written: str) -> tuple[ast.Literal_, ...] | None:
        """The literals that a `let` name stands for: one, or those of its list; `None` for an unknown name."""
        full = self.full(file, "let", written)
        if full is None or full not in self.lets:
            return None
        value = self.lets[full][0].value
        items = value.items if isinstance(value, ast.ListValue) else (value,)
        return tuple(item for item in items if not isinstance(item, ast.ListValue | ast.ObjectValue))

    def bodies(self) -> Iterator[BoundBody]:
        """Every body that decides: agents, ceilings, skills."""
        yield from self.agents.values()
        yield from self.ceilings
        yield from self.skills.values()

    def chain(self, name: str) -> tuple[BoundBody, ...]:
        """An agent's own body, then those that it narrows, its root last."""
        out: list[BoundBody] = []
        at: str | None = name
        while at is not None and at in self.agents and len(out) <= len(self.agents):
            out.append(self.agents[at])
            at = self.agents[at].parent
        return tuple(out)

    def connected(self, body: BoundBody) -> frozenset[int] | None:
        """The ids of the MCP tools in the bundles that a body connects; `None` where it says nothing and inherits.

        In a granting agent, absent means none.
        """
        said = [node for node, _ in body.every(ast.Connect)]
        if not said:
            return frozenset() if body.grants else None
        out: frozenset[int] = frozenset(range(len(self.catalogue.tools)))
        for node, placed in body.every(ast.Connect):
            names = (self.full(placed.file, "bundle", name.text) for name in node.bundles)
            parts = [self.bundles[name].tools for name in names if name in self.bundles]
            out &= frozenset().union(*parts)
        return out


Namespace = Literal["group", "let", "bundle", "skill", "agent", "profile"]
