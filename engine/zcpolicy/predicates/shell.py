"""The tests `runs only` and `runs any` on shell text, and what such text mentions.

In: command patterns, then shell text. Out: `Truth`; see `runs_only` and `runs_any` for what each value promises.
A door: what stands behind it is imported when a policy needs it, and the parser when a text needs it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .refs import Truth

if TYPE_CHECKING:
    from .shell_mentions import Mentions

__all__ = ["check_pattern", "enumerated_flags", "implies", "launchers", "mentions", "runs_any", "runs_only"]


def runs_only(patterns: tuple[str, ...]) -> Callable[[str], Truth]:
    """TRUE only when every POSIX shell starts exactly commands of the patterns and writes no file by itself.

    FALSE when a command of the text is none of the patterns, UNKNOWN when that cannot be told. An unusable pattern
    covers nothing; `check_pattern` says why.
    """
    from .shell_only import only

    return only(patterns)


def runs_any(patterns: tuple[str, ...]) -> Callable[[str], Truth]:
    """TRUE when a command of the text is one of the patterns, FALSE only when none can be.

    A pattern that cannot be read makes every text UNKNOWN; `check_pattern` says why.
    """
    from .shell_any import among

    return among(patterns)


def mentions(text: str) -> "Mentions":
    """The paths and URLs that the words of a text may be; unreadable text may mention anything."""
    from .shell_mentions import mentions_of

    return mentions_of(text)


def check_pattern(pattern: str, *, granting: bool) -> str | None:
    """Why a pattern is not usable in `runs only` (`granting`) or `runs any`, as a message, or `None`."""
    from .shell_patterns import why_unusable

    return why_unusable(pattern, granting)


def implies(granted: str, wider: str) -> bool:
    """Whether every command of one granting pattern is surely one of another; `False` where that is not evident."""
    from .shell_only import covers

    return covers(granted, wider)


def launchers(pattern: str) -> str | None:
    """The program of a pattern when it starts other programs that its words name (`env`, `xargs`, `sh`), else `None`."""
    from .shell_launch import is_launcher
    from .shell_patterns import parse_pattern

    items = parse_pattern(pattern)
    if isinstance(items, str):
        return None
    program, *rest = items
    if program.text is None or not is_launcher(program.text, rest[0].text if rest else ""):
        return None
    return program.text


def enumerated_flags(pattern: str) -> tuple[str, ...]:
    """The options that a pattern writes out: others of the same meaning or in another spelling are not covered."""
    from .shell_patterns import parse_pattern

    items = parse_pattern(pattern)
    if isinstance(items, str):
        return ()
    return tuple("*".join(item.pieces) for item in items[1:] if item.pieces[0].startswith("-") and not item.dots)
