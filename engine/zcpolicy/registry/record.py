"""What stands behind a registry: the tools with their functions, the connections, and what an assembly left out.

In: what `assemble` found. Out: a `Record`, for `scoped` alone; nothing here decides anything.
"""

from asyncio import Task
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import ref

from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import ToolName
from zcpolicy.registry.site import Site
from zcpolicy.registry.sources import Group, McpConnection, Run, SkillSource, ToolSpec


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool that the policy let in. `skill`: shown only once it is loaded. `deferred`: shown once it was found."""

    spec: ToolSpec
    run: Run
    group: Group = ""
    skill: str = ""
    deferred: bool = False


class Pinned(NamedTuple):
    """A resource whose text stands in the prompt."""

    server: str
    uri: str
    text: str


@dataclass(slots=True)
class Record:
    """`run` is held weakly: the registry stands in the execution's own record, and must not keep it alive.

    `wires`: every tool of the policy by its wire name. `active`: deferred tools that were found. `failures`: what is
    absent, and why. `remarks`: tools on which host and policy do not meet.
    """

    run: ref[ResolvedAgentExecution]
    site: Site
    wires: Mapping[str, ToolName]
    skills: Mapping[str, SkillSource]
    offers: dict[ToolName, Offer] = field(default_factory=dict[ToolName, Offer])
    connections: dict[str, McpConnection] = field(default_factory=dict[str, McpConnection])
    pinned: list[Pinned] = field(default_factory=list[Pinned])
    active: set[ToolName] = field(default_factory=set[ToolName])
    failures: dict[str, str] = field(default_factory=dict[str, str])
    remarks: dict[str, str] = field(default_factory=dict[str, str])
    closed: bool = False
    closing: Task[None] | None = None
