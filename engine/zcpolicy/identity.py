"""Who acts, and for whom: stamped on every record of an execution.

In: an execution. Out: an `Identity`.
"""

from __future__ import annotations

from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Identity(NamedTuple):
    """`agent`: who acts. `surface`: the path that built the turn; it stamps records and decides nothing.

    `line`: (agent, session) of the delegators, nearest first.
    """

    agent: str
    client: str
    session: str
    turn: str
    surface: str
    depth: int
    line: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """For records."""
        return {
            "agent": self.agent, "client": self.client, "session": self.session, "turn": self.turn,
            "surface": self.surface, "depth": self.depth, "line": [list(one) for one in self.line],
        }  # fmt: skip
