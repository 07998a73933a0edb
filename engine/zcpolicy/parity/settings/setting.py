"""One setting: a policy in which it stands, a script that shows it, and what is to be seen with it and without.

In: text and expectations. Out: `Setting`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from re import sub
from typing import Any, Literal

from zcpolicy.facts import ToolName
from zcpolicy.parity.probe import USUAL, Call, Given, ParityPath, Probe, Turn
from zcpolicy.parity.world import AGENT, policy
from zcpolicy.program import Program

Json = Any
Area = Literal[
    "tools", "autonomy", "approvals", "budgets", "preconditions", "runtime", "memory", "skills", "labels", "delegation",
    "sessions", "narrowing", "site", "facts", "identity",
]  # fmt: skip
Compile = Callable[[str], Program]
"""Policy text to program. The engine has no compiler of its own."""


@dataclass(frozen=True, slots=True)
class Setting:
    """`worker`: statements of the probed agent, or whole agents; `beside`: top-level statements. What stands between
    `«` and `»` is the setting. `given`, `bare`: what the host is told, with the setting and without.

    `unattended`: what is expected instead where no person attends a path; `apart`: where each turn has a session of its own.
    `rises`: a child leaves it to the session above, so that the next child has it.
    `turns`: what the probed agent's model asks for; `others`: the same of agents below it. `expect`, `otherwise`: parts
    of `Seen.summary`, with the setting and without it; they differ.
    """

    name: str
    area: Area
    worker: str
    turns: Sequence[Turn]
    expect: Mapping[str, Json]
    otherwise: Mapping[str, Json]
    beside: str = ""
    given: Given = USUAL
    bare: Given = USUAL
    others: Mapping[str, Sequence[Turn]] = field(default_factory=dict[str, Sequence[Turn]])
    unattended: Mapping[str, Json] | None = None
    apart: Mapping[str, Json] | None = None
    rises: bool = False
    agent: str = AGENT
    bare_agent: str = AGENT

    def text(self, *, dropped: bool = False) -> str:
        """The whole policy, with the setting, or without it."""
        kept = "" if dropped else r"\1"
        return sub("«([^»]*)»", kept, policy(self.worker, self.beside))

    def expected(self, path: ParityPath) -> Mapping[str, Json]:
        """What is to be seen on a path."""
        if self.apart is not None and not self.lasts(path):
            return self.apart
        return self.expect if path.attended or self.unattended is None else self.unattended

    def lasts(self, path: ParityPath) -> bool:
        """Whether what one turn of a path leaves is there in the next."""
        return path.session == "one" or (path.session == "below one" and self.rises)

    def probe(self, compiled: Compile, *, dropped: bool = False) -> Probe:
        """What a path is driven with; `dropped`: without the setting."""
        given, agent = (self.bare, self.bare_agent) if dropped else (self.given, self.agent)
        return Probe(compiled(self.text(dropped=dropped)), given, {**self.others, AGENT: self.turns}, agent)


def one_by_one(*calls: Call | str) -> Turn:
    """Each call in a response of its own. A bare name is a call without arguments."""
    return tuple((_call(call),) for call in calls)


def at_once(*calls: Call | str) -> Turn:
    """All calls in one response."""
    return (tuple(map(_call, calls)),)


def _call(call: Call | str) -> Call:
    return Call(call) if isinstance(call, str) else call


def call(tool: ToolName, **arguments: Json) -> Call:
    """A call with arguments."""
    return Call(tool, arguments)
