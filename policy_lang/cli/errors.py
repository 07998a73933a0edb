"""How a command ends that cannot do what it was asked.

In: one line for stderr. Out: `CommandError`, which every command may raise and `main` alone catches; its exit status.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

USAGE: Final = 2
"""The status of wrong usage, of files that cannot be read or written, and of faults."""


class CommandError(Exception):
    """Wrong usage, or a file that cannot be read or written: one line for stderr, status 2."""
