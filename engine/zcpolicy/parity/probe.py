"""What a path is driven with: one program, one agent, and everything outside of it, which keeps its own record.

In: a setting's policy and script. Out: `Probe`, which a path uses in place of its own tools, models and approvers; and
`ParityPath`, what a host registers.

A path has nothing to report but what its caller was told: which tools ran, what a model was sent, who was asked, is
recorded by the probe's own tools, models and approvers (`Probe.seen`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from zcpolicy.approvals.question import Answer, Approve, Approvers, Reject
from zcpolicy.events import Event
from zcpolicy.facts import Narrowing, Session, ToolName
from zcpolicy.parity.seen import Seen
from zcpolicy.parity.world import AGENT, TASK
from zcpolicy.program import Program
from zcpolicy.registry.sources import ToolSources
from zcpolicy.resolver import Resolver
from zcpolicy.tickets import Ticket

if TYPE_CHECKING:
    from zcpolicy.loop.access import ResolvedModelAccess


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a scripted model asks for. A tool that it is not shown it calls by name all the same."""

    tool: ToolName
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


Step = Sequence[Call]
"""The calls of one response of a scripted model; after the last step of a turn it says `DONE`."""
Turn = Sequence[Step]


YES: Final = Approve()


@dataclass(frozen=True, slots=True)
class Reply:
    """What an approver does: it waits `seconds`, then answers."""

    answer: Approve | Reject = YES
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Given:
    """What a host is told, besides the policy.

    `facts`: keyword arguments of `Session`; whether somebody is there is the path's to say. `site`: keyword arguments of `ScopedToolRegistry.assemble`. `replies`: of
    the approvers by route, `""` for the person at the session; a route that is not there cannot be asked.
    `protected`: files, for the resolver. `recorded`: whether what the host puts on record is kept.
    """

    facts: Mapping[str, Any] = field(default_factory=lambda: {"cwd": "/w"})
    narrowing: Narrowing | None = None
    site: Mapping[str, Any] = field(default_factory=dict[str, Any])
    replies: Mapping[str, Reply] = field(default_factory=lambda: {"": Reply(), "ops": Reply()})
    protected: tuple[str, ...] = ()
    recorded: bool = True


USUAL: Final = Given()
"""What a host is told where a setting needs nothing else."""


class Probe:
    """One drive of one path. Everything that it gives is to be used as it is, and once.

    `resolver`: makes the executions. `sources`: the host's tools. `approvers`: whom it can ask. `record`: its recorder.
    `tasks`: the texts of the turns, one after the other in one session of one client. `seen`: what has happened.
    """

    def __init__(
        self, program: Program, given: Given, scripts: Mapping[str, Sequence[Turn]], agent: str = AGENT
    ) -> None:
        from zcpolicy.parity.stage import Stage

        self.agent = agent
        self.given = given
        self.resolver = Resolver(program, protected=given.protected)
        self.seen = Seen(agent)
        self.tasks = tuple(f"{TASK} {number}" for number in range(1, len(scripts[AGENT]) + 1))
        self._stage = Stage(self.seen, self.resolver, scripts, given.replies, agent)

    @property
    def narrowing(self) -> Narrowing | None:
        """What the host takes away from this run."""
        return self.given.narrowing

    @property
    def site(self) -> Mapping[str, Any]:
        """Keyword arguments of `ScopedToolRegistry.assemble`: what this site withholds."""
        return self.given.site

    def session(self, **identity: Any) -> Session:
        """A new session with the facts of this probe. `identity`: `client`, `id`, `interactive`, as the path has them."""
        return Session(**{**self.given.facts, **identity})

    def place(self, session: Session) -> None:
        """Puts the facts of this probe on a session that the host made."""
        for name, value in self.given.facts.items():
            if name == "labels":
                session.mark(value)
            elif name == "drift":
                for tool, how in value.items():
                    session.drifted(tool, how)
            else:
                setattr(session, name, value)

    @property
    def sources(self) -> ToolSources:
        """The tools that the host has, each of which records that it ran."""
        return self._stage.sources

    @property
    def approvers(self) -> Approvers:
        """Whom the host can ask; each records what it was asked."""
        return self._stage.approvers

    async def asked(self, route: str = "") -> Answer:
        """For a path whose approvers are not handed to it: records that a route was asked, and gives the answer."""
        return await self._stage.asked(route)

    def access(self, agent: str) -> "ResolvedModelAccess":
        """The model of an agent, scripted, which records what it was sent: to be asked for once in each turn, since each
        begins its script. `front` hands its task to the probed agent.
        """
        return self._stage.access(agent)

    def hands_over_freely(self) -> None:
        """From now on `front` hands its task over to an independent child."""
        self._stage.free = True

    def hands_over_later(self, start: Callable[[Ticket, str], object]) -> None:
        """From now on `front` has the agent run later: `start` is given the ticket of its call, and the task."""
        self._stage.later = start

    def record(self, event: Event) -> None:
        """Takes an event."""
        if self.given.recorded:
            self.seen.events.append(event)


Drive = Callable[[Probe], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class ParityPath:
    """One way in which a host builds turns. `drive`: runs `probe.tasks` as turns of `probe.agent` for one client, one
    after the other, with what the probe gives; returns for each what the caller was told in the end. `attended`: a
    person at its other end can be asked. `session`: of the turns: one and the same; each its own, as it is meant, so that
    what is limited, marked, required or loaded per session ends with the turn; each its own `below one`, which labels last in.
    """

    name: str
    drive: Drive
    attended: bool = True
    session: Literal["one", "each", "below one"] = "one"
