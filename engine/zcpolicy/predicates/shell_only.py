"""`runs only`: shell text that starts nothing but listed commands, for certain.

In: command patterns, then shell text. Out: `Truth`, TRUE only in the closed subset and only when the parser agrees.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from .refs import Truth
from .shell_launch import MAX_LAUNCHES, may_launch, spelled
from .shell_lexer import SHORT, Command, Word, lex
from .shell_options import option_hazards
from .shell_parser import agrees
from .shell_patterns import parse_pattern, why_unusable
from .shell_strict import Strict, grants, strict


def only(patterns: tuple[str, ...]) -> Callable[[str], Truth]:
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
    found = option_hazards(words, start)
    if not may_launch(words[start]):
        return found
    todo, seen = [start], set[int]()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        found |= option_hazards(words, at)
        launched = spelled(words[at:])
        if launched is None:
            continue
        found.update(range(at + 1, at + launched.until))
        if len(seen) > MAX_LAUNCHES:
            return set(range(1, len(words)))
        todo += [at + position for position in launched.positions]
    return found


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


def covers(granted: str, wider: str) -> bool:
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
