"""One call of a host, decided: what `zcpolicy hook` does at every call.

In: an event's bytes, a program, the operator's settings. Out: a `Reply`. It is counted, marked and remembered before it is answered,
and a call that a person is asked about as if the answer was yes: hosts do not tell what the answer was.
"""

from __future__ import annotations

import os

from zcpolicy.combine import Verdict
from zcpolicy.facts import Session
from zcpolicy.hosts.hook.event import NoEvent, Reply, refusal, tool_of
from zcpolicy.hosts.hook.kept import Kept
from zcpolicy.permits import mark
from zcpolicy.records import NamedTuple
from zcpolicy.refusals import PermitError, UnknownAgent
from zcpolicy.resolver import Resolver
from zcpolicy.texts import for_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from zcpolicy.decision import Decision
    from zcpolicy.execution import ResolvedAgentExecution
    from zcpolicy.hosts.hook.event import Asked, Effect, Host
    from zcpolicy.program import Program

CLIENT: Final = "local"
"""Whose the sessions of hooks are: the user's of this machine, who owns the folder of the state."""

HOSTS: Final = ("claude-code", "codex", "gemini", "copilot", "cursor", "vscode")
"""Every host, by the name that operators call it."""

LEDGER: Final = "ledger.sqlite"
"""What was spent, in the folder of the state."""


class Settings(NamedTuple):
    """`host`: the name of the host. `agent`: of the policy, who acts there. `state`: an absolute folder, for what is kept.
    `attended`: a person is there. `protected`: absolute paths that no tool above class `read` may touch.
    """

    host: str
    agent: str
    state: str
    attended: bool
    protected: tuple[str, ...]


def host_of(name: str) -> Host:
    """The host that is called so; one of `HOSTS`."""
    if name == "claude-code":
        from zcpolicy.hosts.hook import claude_code

        return claude_code
    if name == "codex":
        from zcpolicy.hosts.hook import codex

        return codex
    if name == "gemini":
        from zcpolicy.hosts.hook import gemini

        return gemini
    if name == "copilot":
        from zcpolicy.hosts.hook import copilot

        return copilot
    if name == "cursor":
        from zcpolicy.hosts.hook import cursor

        return cursor
    from zcpolicy.hosts.hook import vscode

    return vscode


def answered(data: bytes, program: Program, settings: Settings) -> Reply:
    """The answer to an event. Raises NoEvent, OSError, ResolveError, FactsError, Malformed: then the call must not run."""
    from zcpolicy.call import read_json

    host = host_of(settings.host)
    event: Any = read_json(data)
    if not hasattr(event, "keys"):
        raise NoEvent("the event is no object")
    asked = host.read(event, attended=settings.attended)
    tool = tool_of(asked, program.tools, host)
    if tool is None:
        return _reply(host, asked, "deny", for_model(Verdict("deny", "unknown-tool")))
    with Kept(settings.state, f"{settings.host}-{asked.session}") as kept:
        session = kept.taken_up(_session(asked, settings))
        try:
            run = _execution(program, session, settings)
        except UnknownAgent:
            return _reply(host, asked, "deny", for_model(Verdict("deny", "unknown-agent")))
        effect, text = _settled(run, run.decide(tool, asked.arguments), asked)
        kept.keep(run.session)
    return _reply(host, asked, effect, text)


def _session(asked: Asked, settings: Settings) -> Session:
    return Session(
        cwd=asked.cwd,
        interactive=asked.asks,
        platform="windows" if os.name == "nt" else "posix",
        supplies_defaults=False,  # the host runs the arguments that it sent
        resolve_link=os.path.realpath,
        client=CLIENT,
        id=f"{settings.host} {asked.session}",
        turn=asked.turn,
    )


def _execution(program: Program, session: Session, settings: Settings) -> ResolvedAgentExecution:
    """The agent at work. The ledger is opened only where a limit counts in it: that takes longer than all the rest."""
    protected = (*settings.protected, settings.state)
    run = Resolver(program, protected=protected).resolve(settings.agent, session=session, surface="hook")
    if not _counts(run):
        return run
    from zcpolicy.ledgers.sqlite import SqliteLedger

    ledger = SqliteLedger(os.path.join(settings.state, LEDGER))
    return Resolver(program, protected=protected, ledger=ledger).resolve(
        settings.agent, session=session, surface="hook"
    )


def _counts(run: ResolvedAgentExecution) -> bool:
    """Whether some limit may apply to it."""
    return any("limits" in body.data for level in run.stack.counted for body in level.bodies)


def _settled(run: ResolvedAgentExecution, decision: Decision, asked: Asked) -> tuple[Effect, str]:
    """What is answered, once the call is on record."""
    if decision.effect == "deny":
        return "deny", decision.for_model
    if decision.effect == "ask" and not (asked.asks and _person(decision)):
        return "deny", for_model(Verdict("deny", "no-approver"))
    if not asked.counts:  # the call's own event follows, which asks, and counts
        return (decision.effect, decision.for_person)
    if not _counts(run):
        mark(decision)  # all that a call leaves which no limit counts; `permit` would load what counts
        return ("ask", decision.for_person) if decision.effect == "ask" else ("allow", "")
    try:
        final = run.permit(decision, approved=decision.effect == "ask", ok=False)  # what comes of it is not told
    except PermitError as error:
        return "deny", for_model(Verdict("deny", "denied")) if error.decision is None else error.decision.for_model
    return ("ask", final.for_person) if final.effect == "ask" else ("allow", "")


def _person(decision: Decision) -> bool:
    """Whether the yes of whoever sits at the host is the one that is wanted: a route of the policy's is somebody else."""
    wanted = decision.approval
    return wanted is not None and wanted["person"] and not wanted["routes"]


def _reply(host: Host, asked: Asked, effect: Effect, text: str) -> Reply:
    out = host.said(asked, effect, text)
    if effect != "allow" and not out:
        return refusal(text)
    return Reply(out + "\n" if out else "", "", 0)
