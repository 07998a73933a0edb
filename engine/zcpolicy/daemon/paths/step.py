"""A workflow: steps one after the other, some of them done by other agents.

In: a `Workflow`, the seat and terms of whoever starts it; of a tool, its ticket. Out: `Step`s as they went; the first that fails is the last.
Particular: a step that names an agent is a child of the workflow's execution, built anew through the seam: its own tools,
policy, servers, model, knobs and approval rules, and a transcript that begins with the step's prompt. What cannot be built
fails the step, and nothing runs as the workflow's own agent in its stead.
"""

from dataclasses import dataclass, replace
from typing import Literal

from zcpolicy.daemon.host import Host
from zcpolicy.daemon.order import Order, TurnRefused, below
from zcpolicy.daemon.sessions import Full
from zcpolicy.daemon.wire import answer_of
from zcpolicy.tickets import Ticket


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """`agent`: who does it; "": the workflow's own."""

    prompt: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Workflow:
    """`agent`: whose workflow it is."""

    agent: str
    steps: tuple[WorkflowStep, ...]


@dataclass(frozen=True, slots=True)
class StepResult:
    """How a step went. `agent`: who did it, or should have. `text`: the answer, or why there is none."""

    agent: str
    status: Literal["done", "failed"]
    text: str


async def run_workflow(host: Host, workflow: Workflow, order: Order) -> list[StepResult]:
    """Runs a workflow in the session, and on the terms, of an order; its text and agent are the workflow's."""
    own = replace(order, agent=workflow.agent, text="", surface="step", resume=False, waits=False)
    went: list[StepResult] = []
    for step in workflow.steps:
        if step.agent in ("", workflow.agent):
            result = await _step(host, replace(own, text=step.prompt))
        else:
            result = await _step_of_another(host, own, step)
        went.append(result)
        if result.status == "failed":
            break
    return went


async def run_procedure(host: Host, ticket: Ticket, steps: tuple[WorkflowStep, ...]) -> list[StepResult]:
    """Runs a workflow for a tool: of the ticket's agent, bounded by the call's execution, and on the terms of its turn.

    No step begins once the call is over. Raises ResolveError then, and where the ticket is of no such call; Full.
    """
    run, agent, above = host.of_call(ticket)
    seat = host.sessions.open(run.session.client, interactive=True, above=run.session)
    order = below(above, agent=agent, text="", surface="step", seat=seat, parent=run, independent=False)
    went: list[StepResult] = []
    try:
        for step in steps:
            host.of_call(ticket)
            went += await run_workflow(host, Workflow(agent, (step,)), replace(order, later=True))
            if went[-1].status == "failed":
                break
    finally:
        host.sessions.close(seat)
    return went


async def _step_of_another(host: Host, own: Order, step: WorkflowStep) -> StepResult:
    """A child of the workflow's execution. What it answers is data on the workflow's transcript."""
    try:
        run = host.execution(own)
    except TurnRefused as refused:
        host.refused(own, str(refused))
        return StepResult(own.agent, "failed", str(refused))
    try:
        seat = host.sessions.open(run.session.client, interactive=True, above=run.session)
    except Full as full:
        return StepResult(step.agent, "failed", str(full))
    child = below(own, agent=step.agent, text=step.prompt, surface="step", seat=seat, parent=run, independent=None)
    try:
        result = await _step(host, child)
    finally:
        host.sessions.close(seat)
    if result.status == "done":
        async with own.seat.busy:
            own.seat.agent = own.agent
            own.seat.heard(step.agent, result.text)
    return result


async def _step(host: Host, order: Order) -> StepResult:
    try:
        result = await host.turn(order)
    except TurnRefused as refused:
        return StepResult(order.agent, "failed", str(refused))
    return StepResult(order.agent, "done" if result.status == "done" else "failed", answer_of(result))
