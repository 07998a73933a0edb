"""Runs that nobody attends: once, at a time, again and again.

In: an agent and a text; for a run that a call starts, its ticket. Out: `TurnResult`s. Particular: nobody is there to be
asked, so that what asks is denied unless a route answers at once. A run that a call started is a bounded child of the execution
that made the call: the same narrowing, limits and labels, and what was withheld there is withheld from it.
"""

from dataclasses import dataclass, replace

from zcpolicy.approvals.question import Approvers
from zcpolicy.daemon.clients import HOST
from zcpolicy.daemon.host import Host
from zcpolicy.daemon.order import Order, TurnRefused
from zcpolicy.daemon.schedule import Job, Line, Origin, Schedule, ScheduleError, origin_of
from zcpolicy.daemon.sessions import Full
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import FactsError, Narrowing
from zcpolicy.loop.turn import TurnResult
from zcpolicy.refusals import ResolveError
from zcpolicy.registry.site import OPEN, Site, both
from zcpolicy.tickets import Ticket


async def run_once(
    host: Host, agent: str, text: str, *, narrowing: Narrowing | None = None, site: Site = OPEN, surface: str = "run"
) -> TurnResult:
    """One turn in a session of its own. Raises TurnRefused, Full."""
    seat = host.sessions.open(host.sessions.client("run", HOST))
    try:
        order = Order(
            agent,
            text,
            surface,
            seat,
            narrowing=narrowing,
            site=site,
            approvers=_nobody_there(host, surface),
            waits=False,
        )
        return await host.turn(order)
    finally:
        host.sessions.close(seat)


def later(host: Host, schedule: Schedule, ticket: Ticket, text: str, at: float, *, every: float | None = None) -> str:
    """Has a run start `at` a time, below the execution of a call that is under way. The job's id.

    Raises ScheduleError (also where the ticket is of no such call), OSError.
    """
    try:
        run, agent, order = host.of_call(ticket)
        line = {one.session.id: one.session for one in (run, *run.above())}
        origin = Origin(run.ticket(), order.site)
        return schedule.add(Job(at, agent, text, every, origin=origin.text()), tuple(line.values())[::-1])
    except (ResolveError, FactsError) as error:
        raise ScheduleError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Ran:
    """How a job went; `refused`: why nothing ran."""

    job: Job
    result: TurnResult | None
    refused: str = ""


async def run_due(host: Host, schedule: Schedule, now: float, *, site: Site = OPEN) -> list[Ran]:
    """Runs what is due, soonest first. `site`: what is withheld here, besides what was withheld from the call.

    Raises ScheduleError, OSError where it cannot be kept.
    """
    ran = [await run_job(host, schedule, job, now, site=site) for job in schedule.jobs]
    return [one for one in ran if one is not None]


async def run_job(host: Host, schedule: Schedule, job: Job, now: float, *, site: Site = OPEN) -> Ran | None:
    """The same of one job; None: it is not due, or somebody else has taken it."""
    line = schedule.take(job, now)
    if line is None:
        return None
    ran = await _run(host, schedule, job, line, site)
    schedule.keep()
    return ran


async def _run(host: Host, schedule: Schedule, job: Job, line: Line, site: Site) -> Ran:
    try:
        if job.origin:
            parent = host.resumed(origin_of(job.origin).ticket, line)
            schedule.follow(one.session for one in (parent, *parent.above()))
            result = await _run_below(host, job, parent, site)
        else:
            result = await run_once(host, job.agent, job.text, site=site, surface=job.surface)
    except (TurnRefused, Full) as refused:
        return Ran(job, None, str(refused))
    except Exception:  # noqa: BLE001 - a host that fails in one job still has the others to run
        return Ran(job, None, "the host failed")
    return Ran(job, result)


async def _run_below(host: Host, job: Job, parent: ResolvedAgentExecution, site: Site) -> TurnResult:
    """Below the execution that made the call. Raises TurnRefused, Full."""
    seat = host.sessions.open(parent.session.client, above=parent.session)
    order = Order(
        job.agent, job.text, job.surface, seat, parent=parent, later=True, site=both(origin_of(job.origin).site, site),
        approvers=_nobody_there(host, job.surface),
    )  # fmt: skip
    try:
        return await host.turn(order)
    finally:
        host.sessions.close(seat)


def _nobody_there(host: Host, surface: str) -> Approvers:
    return replace(host.asked_on(surface), person=None)
