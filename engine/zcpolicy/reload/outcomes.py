"""What came of a reload.

In: a policy that was published, or why none was. Out: `Reloaded` or `Failure`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from zcpolicy.reload.moments import moment
from zcpolicy.reload.sources import Broken, Unreadable


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A reload that went well. `changed`: the files that are not what they were; `is_new`: whether a generation was made of it."""

    generation: int
    is_new: bool
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A reload that did not. `generation`: the one that was kept. `why`: with the diagnostics, lines of text. `at`: in seconds
    since 1970. `kind`: the policy has errors; its source cannot be read; it cannot be kept or published.
    """

    kind: Literal["broken", "unreadable", "not-kept"]
    why: str
    generation: int
    at: float

    def to_json(self) -> dict[str, Any]:
        """As `status` shows it."""
        return {"kind": self.kind, "why": self.why, "generation": self.generation, "at": moment(self.at)}


def why_of(error: Broken | Unreadable) -> tuple[Literal["broken", "unreadable"], str]:
    """The kind of a failure, and its text."""
    return ("broken", error.diagnostics) if isinstance(error, Broken) else ("unreadable", str(error))
