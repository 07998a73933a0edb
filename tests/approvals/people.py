"""A policy that asks, people that answer, and calls put to them: what the stories of these tests share."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from policy_lang import loads
from zcpolicy import Decision, ResolvedAgentExecution, Resolver, Session
from zcpolicy.approvals.ask import ApprovalManager
from zcpolicy.approvals.outcome import Approved, Edited, Outcome, Refusal, Waiting
from zcpolicy.approvals.question import Approve, Approvers, Question, Reject
from zcpolicy.events import Event

TOOLS: Final = """
zcpolicy 1
tool shell(command: shell)            risk high
tool read(path: path)                 risk read
tool mail(to: string, body?: string)  risk medium
tool github/lookup(q: string)         risk medium
tool gitlab/lookup(q: string)         risk medium
label untrusted
bundle hubs { server github; server gitlab }
"""
ASKS: Final = """
agent coder {
    autonomy supervised
    connect hubs
    allow any
    delegate to tester
    mark untrusted on github/lookup
    deny shell when args.command runs any ["rm ..."]
    ask shell when marked untrusted because "foreign text came in"
    %s
}
agent tester { autonomy supervised; allow any }
"""
YES: Final = Approve(by="ada")
NO: Final = Reject("not now", "ada")


def says(answer: Any) -> Callable[[Question], Any]:
    """Who gives the same answer to everything."""
    return lambda question: answer


def resolver(approval: str = "", text: str = ASKS, **given: Any) -> Resolver:
    """`approval`: statements of agent `coder`."""
    return Resolver(loads(TOOLS + (text % approval if "%s" in text else text)), **given)


def session(id: str = "s1", **facts: Any) -> Session:
    given: dict[str, Any] = {"cwd": "/repo", "interactive": True, "client": "ada", "turn": "t1", **facts}
    return Session(id=id, **given)


def start(approval: str = "", *, agent: str = "coder", **facts: Any) -> ResolvedAgentExecution:
    return resolver(approval).resolve(agent, session=session(**facts))


def shell(run: ResolvedAgentExecution, command: str = "git push") -> Decision:
    return run.decide("shell", {"command": command})


async def ask(
    run: ResolvedAgentExecution,
    person: Callable[[Question], Any] | None,
    key: str,
    decision: Decision | None = None,
    **more: Any,
) -> Outcome:
    """Puts a call (`git push`, unless another is given) to the person at the session."""
    approvers = Approvers(person, more.pop("routes", {}))
    return await ApprovalManager(run).settle(shell(run) if decision is None else decision, approvers, key, **more)


def settled(*args: Any, **more: Any) -> Outcome:
    return asyncio.run(ask(*args, **more))


def word(outcome: Outcome) -> str:
    """How it ended, in a word."""
    if isinstance(outcome, Refusal):
        return outcome.reason
    return {Approved: "approved", Edited: "edited", Waiting: "waiting"}[type(outcome)]


def outcomes(events: Iterable[Event]) -> list[str]:
    return [event.data["outcome"] for event in events]
