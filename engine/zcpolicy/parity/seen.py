"""What happened in one drive, as the probe's own tools, models and approvers saw it.

In: records while a path runs. Out: `Seen`, and `Seen.summary()`: JSON in which paths are compared, without what belongs
to one path alone (ids, times, the surface).
"""

from dataclasses import dataclass, field
from json import loads
from typing import Any, Final

from zcpolicy.events import Event
from zcpolicy.facts import ToolName
from zcpolicy.loop.messages import ModelRequest

Json = Any

LONG_END: Final = "and so it ended"
"""How a long result ends: a request that has these words holds all of it."""
LONG_START: Final = "once upon a time"
PINNED: Final = "the rules of the house"
"""What a pinned resource says."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A call that reached its tool. `agent`, `client`: as the running tool was told, of MCP tools unknown."""

    tool: ToolName
    arguments: Json
    agent: str = ""
    client: str = ""


@dataclass(slots=True)
class Seen:
    """`agent`: who is probed. `ran`: in the order of starting. `ended`: tools that ran to their end. `asked`: routes,
    `person` for who is at the session. `requests`: of the probed agent. `fields`: of the execution that its loop got,
    at the last request. `together`: the most tools that ran at one time. `refusals`: what paths raised.
    """

    agent: str
    ran: list[Ran] = field(default_factory=list[Ran])
    ended: list[str] = field(default_factory=list[str])
    asked: list[str] = field(default_factory=list[str])
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    answers: list[str] = field(default_factory=list[str])
    connected: list[str] = field(default_factory=list[str])
    hardware: int = 0
    running: int = 0
    together: int = 0
    fields: dict[str, Json] = field(default_factory=dict[str, Json])
    events: list[Event] = field(default_factory=list[Event])
    told: list[str] = field(default_factory=list[str])

    def summary(self, done: str) -> dict[str, Json]:
        """What is compared. `done`: the words with which an agent ends a turn that was not stopped."""
        first, last = (self.requests[0], self.requests[-1]) if self.requests else (None, None)
        shown = [] if first is None else sorted(named(tool.name) for tool in first.tools)
        results = [] if last is None else [message.text for message in last.messages if message.role == "tool"]
        return {
            "ran": [named(one.tool) for one in self.ran],
            "with": [one.arguments for one in self.ran],
            "by": sorted({one.agent for one in self.ran if one.agent}),
            "clients": len({one.client for one in self.ran if one.agent}),
            "ended": sorted(self.ended),
            "asked": list(self.asked),
            "shown": shown,
            "prompt": "" if first is None else first.system,
            "pinned": first is not None and PINNED in first.system,
            "answers": list(self.answers),
            "connected": sorted(set(self.connected)),
            "hardware": self.hardware > 0,
            "requests": len(self.requests),
            "together": self.together,
            "kept": any(LONG_START in text for text in results),
            "whole": any(LONG_END in text for text in results),
            "done": [done in text for text in self.told],
            "fields": self.fields,
            "recorded": self.recorded(),
        }

    def recorded(self) -> list[str]:
        """The calls of the probed agent that the host has on record as finished: who made them, and to which tool."""
        return [
            f"{event.identity.agent}: {loads(event.data['decision'])['tool']}"
            for event in self.events
            if event.kind == "call" and event.data["phase"] == "finished" and event.identity.agent == self.agent
        ]

    def ending(self) -> str:
        """What the host has on record of a turn of the probed agent that did not come to its end."""
        for event in reversed(self.events):
            if event.kind in ("stopped", "failed") and event.identity.agent == self.agent:
                told = (event.data.get(name) for name in ("reason", "fault", "note", "refused"))
                return f"{event.kind}: {', '.join(str(one) for one in told if one)}"[:200]
        return ""


def named(tool: ToolName) -> str:
    """A tool as the language writes it."""
    return tool if isinstance(tool, str) else "/".join(tool)
