"""What a call mentions: paths and URLs as they stand in its arguments, and where relative paths start.

In: nothing. Out: the values that `shell` and the reader of calls hand to `path` and `url`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from zcpolicy.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal

Truth = bool | None
"""TRUE, FALSE, or `None`: UNKNOWN (three-valued logic after Kleene)."""

ANYWHERE: Final = None
"""As a `PathRef.base`: the directory cannot be told, it may be any."""


class Within(Enum):
    """The type of `WITHIN` alone."""

    WITHIN = "within"


WITHIN: Final = Within.WITHIN
"""In `PathRef.parts`: a hole that file name expansion fills (`*`, `?`, `[a-z]`, unquoted): a run of characters
without `/`. The component it stands in is not empty, and `.` or `..` only if its known text begins with a dot."""


class PathRef(NamedTuple):
    """One path as a call mentions it.

    `parts`: known text, and `None` for a hole: any run of characters, also none, also with `/`;
    and `WITHIN` for a hole inside one component.
    A path that is wholly known is one part of text. `base`: the directory that a relative path starts at,
    itself relative to the opening process's own: `""` is that directory, `ANYWHERE` is unknown.
    `text` says of a shell word that quoting no longer matters: parts are what the program would get,
    except that a leading unquoted `~` is kept and flagged with `tilde`.
    """

    parts: tuple[str | Within | None, ...]
    base: str | None = ""
    tilde: bool | None = None  # None: as in a plain argument, where a leading `~` may be expanded by the tool


class UrlRef(NamedTuple):
    """One URL as a call mentions it; `None` in `parts` is a hole, as in `PathRef`."""

    parts: tuple[str | None, ...]


class Where(NamedTuple):
    """The facts that path tests need, for the process that will open the path.

    `cwd`: absolute directory of that process, or `None` when unknown. `home`: HOME where the host vouches
    for it. `resolve`: the host's link resolver: an absolute path as text (may contain `..`) to the path with
    links resolved, nearest existing parent with the unborn tail kept; `None` when there is no resolver.
    It may raise `OSError` or return `None` for a path that it cannot resolve: that reading is UNKNOWN.
    """

    cwd: str | None = None
    home: str | None = None
    platform: Literal["posix", "windows"] = "posix"
    resolve: Callable[[str], str | None] | None = None
    env: Mapping[str, str] = {}
