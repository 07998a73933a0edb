"""Whether a name that nothing has is a known one misspelt: what is withheld under it would not be withheld.

In: a name, and the names that a policy knows. Out: the known name that differs by letter case, joints or one slip.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final, TypeVar

    from zcpolicy.facts import ToolName

    Name = TypeVar("Name", bound=ToolName)

MAX_COMPARED: Final = 100
"""Characters of a name that is compared with known ones, should it be one misspelt."""
SHORT: Final = 3
"""Characters of names that are not taken for each other misspelt."""


def misspelt(unknown: Iterable[Name], known: Iterable[Name]) -> Iterator[tuple[Name, Name | None]]:
    """Each unknown name, sorted, with the known one that it is near to, if any."""
    names = sorted(unknown, key=str)
    meant: dict[str, Name] = {}
    if names:
        for one in known:
            meant.update(dict.fromkeys(_slips(one), one))
    for name in names:
        yield name, next((meant[slip] for slip in _slips(name) if slip in meant), None)


def joined(name: ToolName) -> str:
    """A tool's name as one text."""
    return name if isinstance(name, str) else "/".join(name)


def _slips(name: ToolName) -> list[str]:
    """A name without letter case and joints, and the same without any one letter: near names have one in common."""
    bare = joined(name)[:MAX_COMPARED].casefold().removeprefix("mcp__").translate(_JOINTS)
    return [bare, *(bare[:place] + bare[place + 1 :] for place in range(len(bare) if len(bare) > SHORT else 0))]


_JOINTS: Final = {ord(joint): None for joint in "_-/.: "}
