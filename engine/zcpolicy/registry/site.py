"""What the place that starts a turn withholds from its registry. Nothing in it can give an agent anything.

In: values of a path. Out: `Site`.
"""

from dataclasses import dataclass
from typing import Final

from zcpolicy.facts import ToolName


@dataclass(frozen=True, slots=True)
class Site:
    """Where a path stands: what it withholds from the registry. `caller_allowed`: nothing else, where it is given."""

    caller_allowed: frozenset[ToolName] | None = None
    connect_mcp: bool = True
    connect_peripherals: bool = True
    exclude_memory: bool = False
    exclude_delivery: bool = False
    deferred: bool = False


OPEN: Final = Site()
"""A path that withholds nothing."""


def both(one: Site, other: Site) -> Site:
    """A site that withholds whatever either does."""
    lists = [site.caller_allowed for site in (one, other) if site.caller_allowed is not None]
    return Site(
        caller_allowed=frozenset[ToolName].intersection(*lists) if lists else None,
        connect_mcp=one.connect_mcp and other.connect_mcp,
        connect_peripherals=one.connect_peripherals and other.connect_peripherals,
        exclude_memory=one.exclude_memory or other.exclude_memory,
        exclude_delivery=one.exclude_delivery or other.exclude_delivery,
        deferred=one.deferred or other.deferred,
    )
