"""Runs that nobody attends: once, at a time, again and again.

In: an agent and a text; for a run that a call started, its ticket. Out: `TurnResult`s. Particular: nobody is there to be
asked, so that what asks is denied unless a route answers. A run that a call started is a bounded child of the execution
that made the call: the same narrowing, limits and labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from zcpolicy.approvals.question import Approvers
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.order import OPEN, Order, Site, TurnRefused
from zcpolicy.daemon.schedule import Job, Schedule, ScheduleError
from zcpolicy.daemon.sessions import Full
from zcpolicy.exact import is_list, is_object
from zcpolicy.facts import FactsError, Narrowing
from zcpolicy.loop.turn import TurnResult


async def run_once(
    host: Host, agent: str, text: str, *, narrowing: Narrowing | None = None, site: Site = OPEN, surface: str = "run"
) -> TurnResult:
    """One turn in a session of its own. Raises TurnRefused, Full."""
    seat = host.sessions.open(host.sessions.client("run", "the host itself"))
    try:
        return await host.turn(
            Order(agent, text, surface, seat, narrowing=narrowing, site=site, approvers=_nobody_there(host, surface))
        )
    finally:
        host.sessions.close(seat)


def later(host: Host, ticket: Mapping[str, Any], text: str, at: float, *, every: float | None = None) -> Job:
    """A job of a ticket of `ToolContext.later`, made while its call is under way. Raises ScheduleError."""
    agent, line = ticket.get("agent"), ticket.get("line")
    entries = [entry for entry in line if is_object(entry)] if is_list(line) else []
    try:
        sessions = [host.sessions.saved(str(entry.get("session"))) for entry in entries]
    except FactsError as error:
        raise ScheduleError(str(error)) from None
    kept = tuple(one for one in sessions if one is not None)
    if type(agent) is not str or not kept or len(kept) < len(sessions):
        raise ScheduleError("this is no ticket of a call that is under way")
    return Job(at, agent, text, every, ticket=dict(ticket), sessions=kept)


@dataclass(frozen=True, slots=True)
class Ran:
    """How a job went; `refused`: why nothing ran."""

    job: Job
    result: TurnResult | None
    refused: str = ""


async def run_due(host: Host, schedule: Schedule, now: float, *, site: Site = OPEN) -> list[Ran]:
    """Runs what is due, soonest first. `site`: what such runs are withheld. Raises OSError where it cannot be kept."""
    return [await _run(host, job, site) for job in schedule.jobs if schedule.take(job, now)]


async def _run(host: Host, job: Job, site: Site) -> Ran:
    try:
        if job.ticket is None:
            result = await run_once(host, job.agent, job.text, site=site, surface=job.surface)
        else:
            result = await _run_of_ticket(host, job, job.ticket, site)
    except (TurnRefused, Full) as refused:
        return Ran(job, None, str(refused))
    except Exception:  # noqa: BLE001 - a host that fails in one job still has the others to run
        return Ran(job, None, "the host failed")
    return Ran(job, result)


async def _run_of_ticket(host: Host, job: Job, ticket: Mapping[str, Any], site: Site) -> TurnResult:
    """Below the execution that made the call. Raises TurnRefused, Full."""
    parent = host.resumed(ticket, job.sessions)
    seat = host.sessions.open(parent.session.client, above=parent.session)
    order = Order(
        job.agent, job.text, job.surface, seat, parent=parent, later=True, site=site,
        approvers=_nobody_there(host, job.surface),
    )  # fmt: skip
    try:
        return await host.turn(order)
    finally:
        host.sessions.close(seat)


def _nobody_there(host: Host, surface: str) -> Approvers:
    return replace(host.asked_on(surface), person=None)
