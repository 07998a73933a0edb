"""The tests `runs only` and `runs any` on shell text, and what such text mentions.

In: command patterns, then shell text. Out: `Truth`; see `runs_only` and `runs_any` for what each value promises.
The parser is imported when a text first needs it.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from . import shell_launch, shell_options
from .refs import Truth
from .shell_dress import see
from .shell_lexer import SHORT, Command, Word, lex
from .shell_loose import Loose, loosen, may_be
from .shell_mentions import Mentions, mentions_of
from .shell_parser import agrees
from .shell_patterns import parse_pattern, why_unusable
from .shell_strict import Strict, grants, strict

__all__ = ["Mentions", "check_pattern", "enumerated_flags", "implies", "launchers", "mentions", "runs_any", "runs_only"]


def check_pattern(pattern: str, *, granting: bool) -> str | None:
    """Why a pattern is not usable in `runs only` (`granting`) or `runs any`, as a message, or `None`."""
    return why_unusable(pattern, granting)


def mentions(text: str) -> Mentions:
    """What `paths` and `urls` see in a shell text."""
    return mentions_of(text)


def runs_only(patterns: tuple[str, ...]) -> Callable[[str], Truth]:
    """TRUE only when every POSIX shell starts exactly commands of the patterns and writes no file by itself.

    FALSE when a command of the text is none of the patterns, UNKNOWN when that cannot be told. An unusable pattern
    covers nothing; `check_pattern` says why.
    """
    table: dict[str, list[Strict]] = {}
    for pattern in patterns:
        items = parse_pattern(pattern)
        if not isinstance(items, str) and why_unusable(pattern, True) is None:
            table.setdefault(items[0].text or "", []).append(strict(items))

    def test(text: str) -> Truth:
        script = lex(text)
        if script is None:
            return None
        if not all(_is_granted(table.get(command.words[0].text or "", ()), command) for command in script.commands):
            return False
        return True if _agreed(text) else None

    return test


def _is_granted(candidates: Sequence[Strict], command: Command) -> bool:
    return any(grants(pattern, command.words, must_spell) for pattern in candidates)


def must_spell(words: Sequence[Word], start: int = 0) -> set[int]:
    """Positions that only the written words of a pattern may match: what runs a program or writes a file, and of a
    program that launches another everything up to the launched command.
    """
    found = shell_options.option_hazards(words, start)
    if not shell_launch.may_launch(words[start]):
        return found
    todo, seen = [start], set[int]()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        found |= shell_options.option_hazards(words, at)
        launched = shell_launch.spelled(words[at:])
        if launched is None:
            continue
        found.update(range(at + 1, at + launched.until))
        if len(seen) > shell_launch.MAX_LAUNCHES:
            return set(range(1, len(words)))
        todo += [at + position for position in launched.positions]
    return found


def runs_any(patterns: tuple[str, ...]) -> Callable[[str], Truth]:
    """TRUE when a command of the text is one of the patterns, FALSE only when none can be.

    A pattern that cannot be read makes every text UNKNOWN; `check_pattern` says why.
    """
    loose = [loosen(items) for items in map(parse_pattern, patterns) if not isinstance(items, str)]
    broken = len(loose) != len(patterns)

    def test(text: str) -> Truth:
        seen = see(text)
        unsure = broken or seen.opaque
        for command in seen.commands:
            if not command.words:
                continue
            found = _is_any(loose, command.words)
            if found:
                return True
            unsure = unsure or found is None
        return None if unsure else False

    return test


def _is_any(patterns: Sequence[Loose], words: Sequence[Word]) -> Truth:
    result: Truth = False
    for pattern in patterns:
        found = may_be(pattern, words)
        if found:
            return True
        result = None if found is None else result
    return result


def _agreed(text: str) -> bool:
    return (_agreed_short if len(text) <= SHORT else _agreed_long)(text)


@lru_cache(maxsize=128)
def _agreed_short(text: str) -> bool:
    script = lex(text)
    return script is not None and agrees(text, script)


@lru_cache(maxsize=2)
def _agreed_long(text: str) -> bool:
    script = lex(text)
    return script is not None and agrees(text, script)


def implies(granted: str, wider: str) -> bool:
    """Whether every command of one granting pattern is surely one of another: equal, or words added before a final
    `...`. Patterns whose dots may stand for listed options are compared by equality only.
    """
    first, second = parse_pattern(granted), parse_pattern(wider)
    if isinstance(first, str) or isinstance(second, str):
        return False
    if first == second:
        return True
    if not second[-1].dots or any(item.text is None for item in second[:-1]):
        return False
    known = second[:-1]
    if first[: len(known)] != known or any(item.text is None and not item.dots for item in first):
        return False
    words = tuple(Word((item.text or "",)) for item in first if not item.dots)
    return not must_spell(words)


def launchers(pattern: str) -> str | None:
    """The program of a pattern when it starts other programs that its words name (`env`, `xargs`, `sh`), else `None`."""
    items = parse_pattern(pattern)
    if isinstance(items, str):
        return None
    program, *rest = items
    if program.text is None or not shell_launch.is_launcher(program.text, rest[0].text if rest else ""):
        return None
    return program.text


def enumerated_flags(pattern: str) -> tuple[str, ...]:
    """The options that a pattern writes out: others of the same meaning or in another spelling are not covered."""
    items = parse_pattern(pattern)
    if isinstance(items, str):
        return ()
    return tuple("*".join(item.pieces) for item in items[1:] if item.pieces[0].startswith("-") and not item.dots)
