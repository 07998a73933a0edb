"""The known name that somebody probably meant.

In: a name as written and the known ones. Out: the nearest, or nothing.
"""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_COMPARED = 5_000
"""Among more names than this only those that begin alike are compared: the search stays linear in practice."""


def nearest(written: str, known: Iterable[str]) -> str | None:
    """The most similar known name, letter case aside, or `None` when none is near."""
    names = list(known)
    if len(names) > MAX_COMPARED:
        names = [name for name in names if name[:1].casefold() == written[:1].casefold()][:MAX_COMPARED]
    folded = {name.casefold(): name for name in reversed(names)}
    found = get_close_matches(written.casefold(), folded, n=1, cutoff=0.72)
    return folded[found[0]] if found else None


def or_list(names: Iterable[str]) -> str:
    """`a`, `b` or `c`: for messages."""
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
