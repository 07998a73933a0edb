"""The tools that a parent has, as those it delegates to are told of them.

In: tools, pushed by the host after the tools that ask for them were constructed. Out: descriptions, never anything that could
be run, and to each caller only of what its own policy shows it, and the policies above it.
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Final

from zcpolicy.facts import ToolName
from zcpolicy.registry.sources import HostTool, ToolSpec
from zcpolicy.state.contract import Contract, Handle, Held, Scope, owners
from zcpolicy.state.handles.apart import Full
from zcpolicy.state.locks import ReadWriteLock
from zcpolicy.texts import spelled

MAX_PARENT_TOOLS: Final = 10_000
"""Tools on the list."""


class ParentTools(Handle["ShownTools"]):
    """`push` and `withdraw` are the host's. One list for all: who sees what of it, policies say, at each use."""

    contract = Contract(
        holds="descriptions of the tools that a parent has",
        owner="daemon",
        concurrency="read-write lock",
        isolation="shared",
        reload="re-resolved",
        depends=frozenset({"policy"}),
    )

    def __init__(self) -> None:
        self._lock = ReadWriteLock()
        self._specs: dict[ToolName, ToolSpec] = {}

    @owners
    def push(self, *tools: HostTool | ToolSpec) -> None:
        """Adds tools; one of a name that is there takes its place. Raises Full, and PermitError for one with a secret."""
        for tool in tools:
            self.contract.admits(tool.parameters)
        specs = [_described(tool) for tool in tools]
        with self._lock.writing():
            if len(self._specs.keys() | {spec.name for spec in specs}) > MAX_PARENT_TOOLS:
                raise Full(f"there is room for {MAX_PARENT_TOOLS:,} tools, and no more")
            self._specs.update({spec.name: spec for spec in specs})

    @owners
    def withdraw(self, *names: ToolName) -> None:
        """Takes tools off the list; those that are not on it are passed over."""
        with self._lock.writing():
            for name in names:
                self._specs.pop(name, None)

    def _view(self, scope: Scope) -> "ShownTools":
        return ShownTools(self._lock, self._specs, scope)

    def _held(self) -> Iterable[Held]:
        with self._lock.reading():
            return [Held(spelled(name), None) for name in self._specs]


class ShownTools:
    """What one caller sees of the list, now."""

    def __init__(self, lock: ReadWriteLock, specs: dict[ToolName, ToolSpec], scope: Scope) -> None:
        self._lock = lock
        self._specs = specs
        self._scope = scope

    def all(self) -> tuple[ToolSpec, ...]:
        """In the order in which they were pushed. Raises PermitError once the call is over."""
        shown = self._scope.tools
        with self._lock.reading():
            return tuple(_copied(spec) for name, spec in self._specs.items() if name in shown)

    def find(self, name: ToolName) -> ToolSpec | None:
        """One of them; None also for one that is there and not shown. Raises PermitError once the call is over."""
        shown = self._scope.tools
        with self._lock.reading():
            spec = self._specs.get(name) if name in shown else None
        return None if spec is None else _copied(spec)


def _described(tool: HostTool | ToolSpec) -> ToolSpec:
    if isinstance(tool, ToolSpec):
        return _copied(tool)
    return ToolSpec(tool.name, tool.name, tool.description, deepcopy(tool.parameters))


def _copied(spec: ToolSpec) -> ToolSpec:
    return replace(spec, parameters=deepcopy(spec.parameters))
