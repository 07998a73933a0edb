"""How the MCP servers of a daemon were found: whether they are there, and what was wrong with those that are not.

In: registries as turns assemble them. Out: `Servers`, for operators; a call of `changed` for each new cause, and when a server is back.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from time import time
from typing import Any, Literal

from zcpolicy.facts import ToolName
from zcpolicy.reload.moments import moment

Standing = Literal["untried", "up", "down"]


@dataclass(frozen=True, slots=True)
class Found:
    """How a server was found last. `since`: seconds since the epoch; None: no turn has connected it yet. `why`: what is wrong with it."""

    state: Standing = "untried"
    why: str = ""
    since: float | None = None


class Servers:
    """`names`: those of the settings. `changed`: is given the name of a server, and what is wrong with it, `""` if it is back."""

    def __init__(self, names: Collection[str], changed: Callable[[str, str], None]) -> None:
        self._found = dict.fromkeys(sorted(names), Found())
        self._changed = changed

    def seen(self, tools: Iterable[ToolName], failures: Mapping[str, str]) -> None:
        """Takes in the tools that one turn has, and what it could not have. A server that it did not connect is as it was."""
        there = {name[0] for name in tools if isinstance(name, tuple)}
        for name in self._found:
            why = failures.get(name, "")
            if why:
                self._now(name, "down", why)
            elif name in there:
                self._now(name, "up", "")

    def _now(self, name: str, state: Standing, why: str) -> None:
        before = self._found[name]
        if (before.state, before.why) == (state, why):
            return
        self._found[name] = Found(state, why, time())
        if "down" in (before.state, state):
            self._changed(name, why)

    def down(self) -> dict[str, str]:
        """What is wrong with those that could not be connected last time."""
        return {name: one.why for name, one in self._found.items() if one.state == "down"}

    def status(self) -> dict[str, Any]:
        """By name, as JSON: `state`, and `since` when; with `why` where it is down."""
        return {
            name: {
                "state": one.state,
                **({} if one.since is None else {"since": moment(one.since)}),
                **({"why": one.why} if one.why else {}),
            }
            for name, one in self._found.items()
        }
