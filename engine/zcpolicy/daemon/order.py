"""What a path asks of the host: one turn, and on what terms. Nothing in it can give an agent anything.

In: values of a path. Out: `Order`, `TurnRefused`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from zcpolicy.approvals.question import Approvers
from zcpolicy.daemon.sessions import Seat
from zcpolicy.execution import ResolvedAgentExecution
from zcpolicy.facts import Narrowing
from zcpolicy.loop.access import unheard
from zcpolicy.registry.site import OPEN, Site


class TurnRefused(Exception):
    """A turn that cannot be built: nothing ran. The message says why, lower case, no full stop."""


@dataclass(frozen=True, slots=True)
class Order:
    """One turn. `surface`: the path, for records. `seat`: whose turn, made by the host. `text`: what was said.

    `parent`: the execution that delegates; `independent=False`: bounded although it may be independent; `later`: a call
    of `parent` started this run for later. `resume`: no new text: the turn that waits for an answer goes on.
    `approvers`: whom this path can ask. `waits=False`: nobody can take the turn up if it pauses. `site`: what it withholds.
    `emit`: is given pieces of the answer.
    """

    agent: str
    text: str
    surface: str
    seat: Seat
    narrowing: Narrowing | None = None
    parent: ResolvedAgentExecution | None = None
    independent: bool | None = None
    later: bool = False
    skills: tuple[str, ...] = ()
    resume: bool = False
    approvers: Approvers = field(default_factory=Approvers)
    waits: bool = True
    site: Site = OPEN
    emit: Callable[[str], None] = unheard


def bounds(order: Order) -> Narrowing | None:
    """What is taken away from the run: what its path withholds from the registry must also reach what the run starts."""
    taken, site = order.narrowing, order.site
    if site.caller_allowed is None and not site.exclude_memory:
        return taken
    given = taken if taken is not None else Narrowing()
    only = given.only
    if site.caller_allowed is not None:
        allowed = Narrowing(only=site.caller_allowed).only or frozenset()
        only = allowed if only is None else only & allowed
    return Narrowing(
        only=only, deny=given.deny, ask=given.ask, autonomy=given.autonomy, limits=given.limits,
        exclude_memory=given.exclude_memory or site.exclude_memory,
    )  # fmt: skip


def below(
    order: Order,
    *,
    agent: str,
    text: str,
    surface: str,
    seat: Seat,
    parent: ResolvedAgentExecution,
    independent: bool | None,
) -> Order:
    """A child's turn: whom it may ask, and what is withheld, are its delegator's; nothing else of the order is."""
    return Order(
        agent, text, surface, seat, parent=parent, independent=independent, approvers=order.approvers, site=order.site
    )
