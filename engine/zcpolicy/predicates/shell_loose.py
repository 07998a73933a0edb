"""Command patterns read loosely, to withhold.

In: a parsed pattern and the words of a command. Out: whether the command is one of the pattern, or may be.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .refs import Truth
from .shell_lexer import Word
from .shell_patterns import Item, star_matches


class Loose(NamedTuple):
    """A withholding pattern: the command's name, the operands in order, the flags in any order.

    `free[i]`: any words may stand before operand `i`.
    """

    name: tuple[str, ...]
    operands: tuple[Item, ...]
    free: tuple[bool, ...]
    flags: tuple[Item, ...]


def loosen(items: Sequence[Item]) -> Loose:
    """The loose reading of a parsed pattern."""
    first = items[0]
    name = ("", "") if first.dots else tuple(piece.casefold() for piece in first.pieces)
    cut = max((place for place, piece in enumerate(name) if "/" in piece), default=None)
    if cut is not None:  # compared by the last path component; a star may hold its beginning
        tail = name[cut].rpartition("/")[2]
        name = (tail,) if cut == len(name) - 1 else ("", *name[cut + 1 :])
    operands: list[Item] = []
    free: list[bool] = []
    flags: list[Item] = []
    dots = first.dots
    for item in items[1:]:
        if item.dots:
            dots = True
        elif item.pieces[0].startswith("-"):
            flags.append(item)
        else:
            operands.append(item)
            free.append(dots)
            dots = False
    return Loose(name, tuple(operands), tuple(free), tuple(flags))


def may_be(pattern: Loose, words: Sequence[Word]) -> Truth:
    """TRUE when the command is one of the pattern, UNKNOWN when it may be."""
    text = words[0].text
    if text is None:
        return None
    if not star_matches(pattern.name, text.rpartition("/")[2].casefold()):
        return None if words[0].tilde else False
    result: Truth = _operands_match(pattern, words) if pattern.operands else True
    for flag in pattern.flags:
        if result is False:
            return False
        found = _has_flag(flag, words)
        result = False if found is False else (result if found else None)
    return result


class _Reach(NamedTuple):
    """A place in the pattern: operands matched, whether the word before was an option, and whether surely so."""

    operand: int
    after_option: bool
    sure: bool


def _operands_match(pattern: Loose, words: Sequence[Word]) -> Truth:
    goal = len(pattern.operands)
    states = {_Reach(0, False, True)}
    possible = False
    for word in words[1:]:
        after: set[_Reach] = set()
        if word.splits:  # any number of words, options and operands among them
            lowest = min((state.operand for state in states), default=goal + 1)
            after.update(_Reach(later, flag, False) for later in range(lowest, goal + 1) for flag in (False, True))
        else:
            after.update(*(_step(pattern, state, word) for state in states))
        done = [state for state in after if state.operand == goal]
        if any(state.sure for state in done):
            return True
        possible = possible or bool(done)
        states = after.difference(done)
    return None if possible else False


def _step(pattern: Loose, state: _Reach, word: Word) -> set[_Reach]:
    place, option, sure = state
    if word.text is None and not word.head:
        return {_Reach(place + 1, False, False), _Reach(place, True, False), _Reach(place, False, False)}
    if word.head.startswith("-"):
        return {_Reach(place, True, sure)}
    after: set[_Reach] = set()
    if option or pattern.free[place]:
        after.add(_Reach(place, False, sure))
    if word.text is None:
        after.add(_Reach(place + 1, False, False))
    elif star_matches(pattern.operands[place].pieces, word.text):
        after.add(_Reach(place + 1, False, sure))
    return after


def _has_flag(flag: Item, words: Sequence[Word]) -> Truth:
    """Whether a flag stands anywhere among the words, in any grouping."""
    result: Truth = False
    letters: set[str] = set()
    wanted = _letters(flag.text)
    for word in words[1:]:
        if word.splits or not word.head:  # may be any word, or is an empty one
            result = None if word.text is None else result
            continue
        if not word.head.startswith("-"):
            continue
        found = _is_flag(flag, word)
        if found:
            return True
        result = None if found is None else result
        given = set(word.head[1:])
        if not word.head.startswith("--") and (len(wanted) <= 3 or given <= wanted):
            letters |= given
    return True if wanted and wanted <= letters else result


def _letters(flag: str | None) -> set[str]:
    """The letters of a short flag or of a cluster of them."""
    return set() if flag is None or flag.startswith("--") else set(flag[1:])


def _is_flag(flag: Item, word: Word) -> Truth:
    text = word.text
    if text is None:
        known, head = flag.pieces[0], word.head
        return None if known.startswith(head) or head.startswith(known) else False
    if star_matches(flag.pieces, text) or star_matches(flag.pieces, text.partition("=")[0]):
        return True
    whole = flag.text
    if whole is not None and whole.startswith("--") and len(text) > 2 and whole.startswith(text.partition("=")[0]):
        return None  # an abbreviation, where the program takes them
    return False
