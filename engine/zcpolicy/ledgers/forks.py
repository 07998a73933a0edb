"""Ledgers in a process that was forked: what they held of files, connections and locks is the parent's.

In: a ledger with a method `begin`. Out: it is called in each child, before anything else runs there.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Beginning(Protocol):
    """What begins anew."""

    def begin(self) -> None:
        """Lets go of what belongs to the parent, without using it, and begins as if just made."""


_living: WeakSet[Beginning] = WeakSet()


def begins_after_fork(one: Beginning) -> None:
    """Has it begin anew in each child."""
    _living.add(one)


def _in_child() -> None:
    for one in list(_living):
        one.begin()


os.register_at_fork(after_in_child=_in_child)
