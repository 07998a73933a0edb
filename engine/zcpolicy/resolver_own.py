"""What stands behind a resolver: the tables that it decides by, and the generations of its policy.

In: a program, protected files, the line of generations. Out: `Own`, `Generations`; for `resolver` alone, in a hidden slot.
"""

from __future__ import annotations

from _thread import RLock

from zcpolicy.protected import protection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from zcpolicy.facts import Entry, ToolName
    from zcpolicy.program import Program
    from zcpolicy.resolver import Resolver
    from zcpolicy.stack import Stack


class Generations:
    """The resolvers of one policy, of which only the newest decides.

    `exclusive`: held from the last look at a call until it is on record, and while a generation is published. `lapsed`: why
    no generation may decide any more, "" as long as the newest may. `once`: the tools of the earlier generations: hosts go
    on naming those in narrowings.
    """

    __slots__ = ("exclusive", "lapsed", "newest", "once")

    def __init__(self, first: Resolver) -> None:
        self.newest = first
        self.once: set[ToolName] = set()
        self.exclusive = RLock()
        self.lapsed: Callable[[], str] | None = None

    def why_lapsed(self) -> str:
        """The answer of `lapsed`; it is no good one that cannot be told."""
        try:
            return "" if self.lapsed is None else str(self.lapsed())
        except Exception:  # noqa: BLE001 - whatever it is, the host's function does not say that the policy stands
            return "whether the policy is still that of its source cannot be told"


class Own:
    """What a resolver decides by and remembers. `clients`, `line`: of all its generations. `looks`: what known names look like.

    `protects`: whether a path hits a protected file; None where there is none.
    """

    __slots__ = ("by_agent", "clients", "line", "looks", "protects", "tool_ids", "unknown")

    def __init__(
        self,
        program: Program,
        files: tuple[str, ...],
        clients: dict[str, list[Entry]],
        line: Generations,
    ) -> None:
        self.clients = clients
        self.line = line
        self.protects = protection(files) if files else None
        self.tool_ids: dict[ToolName, int] = {name: index for index, name in enumerate(program.tools)}
        self.by_agent: dict[str, Stack] = {}
        self.unknown: dict[Any, str] = {}
        self.looks: dict[str, set[str]] = {}
