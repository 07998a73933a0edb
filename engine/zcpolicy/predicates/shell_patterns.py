"""Command patterns: `"git log ..."`, read strictly to grant and loosely to withhold.

In: the text of a pattern and the words of a command. Out: whether the command is one of the pattern.
`...` stands for any number of words, `*` for any run of characters within a word. Quotes make both plain text.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from .refs import Truth
from .shell_lexer import RESERVED, Word

MAX_PATTERN: Final = 2000
"""Characters of one pattern."""
MAX_PATTERN_WORDS: Final = 64
"""Words of one pattern."""

UNGRANTABLE: Final = frozenset(
    "alias unalias set shopt enable hash export readonly declare typeset local read mapfile readarray getopts unset let "
    "bind complete compgen compopt fc history setvar".split()
)
"""Builtins that change how the shell reads or finds what follows, or that evaluate their words as code."""


class Item(NamedTuple):
    """One word of a pattern: the known text between its stars; `dots` is the word `...`."""

    pieces: tuple[str, ...]
    dots: bool = False

    @property
    def text(self) -> str | None:
        """The word, when it has no star."""
        return self.pieces[0] if len(self.pieces) == 1 and not self.dots else None


DOTS: Final = Item(("",), dots=True)

_WORD = re.compile(r"""(?:[^\s'"]++|'[^']*+'|"[^"]*+")++""")
_PIECE = re.compile(r"""'(?P<single>[^']*+)'|"(?P<double>[^"]*+)"|(?P<star>\*++)|(?P<plain>[^'"*]++)""")
_SYNTAX = re.compile(r"[;|&<>()$`\\]")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")


@lru_cache(maxsize=4096)
def parse_pattern(pattern: str) -> tuple[Item, ...] | str:
    """The items of a pattern, or the message why it is none."""
    if len(pattern) > MAX_PATTERN:
        return f"a command pattern has at most {MAX_PATTERN} characters"
    if _CONTROL.search(pattern):
        return "a command pattern holds no line breaks or control characters"
    items: list[Item] = []
    position = 0
    while position < len(pattern):
        if pattern[position].isspace():
            position += 1
            continue
        word = _WORD.match(pattern, position)
        if word is None or (word.end() < len(pattern) and not pattern[word.end()].isspace()):
            return "a quote in the command pattern is not closed"
        item = _item(word.group())
        if isinstance(item, str):
            return item
        items.append(item)
        position = word.end()
    if not items:
        return "the command pattern is empty"
    if len(items) > MAX_PATTERN_WORDS:
        return f"a command pattern has at most {MAX_PATTERN_WORDS} words"
    return tuple(items)


def _item(raw: str) -> Item | str:
    if raw == "...":
        return DOTS
    pieces = [""]
    for piece in _PIECE.finditer(raw):
        if piece.lastgroup == "star":
            pieces.append("")
            continue
        text = piece.group(piece.lastgroup or 0)
        syntax = _SYNTAX.search(text) if piece.lastgroup == "plain" else None
        if syntax:
            return f"`{syntax.group()}` is shell syntax: a command pattern is one command, in quotes it is text"
        pieces[-1] += text
    return Item(tuple(pieces))


def why_unusable(pattern: str, granting: bool) -> str | None:
    """Why a pattern cannot be used, in the words of a diagnostic, or `None`."""
    items = parse_pattern(pattern)
    if isinstance(items, str):
        return items
    first = items[0]
    if not granting:
        return "the command pattern has an empty command" if first.text == "" else None
    if first.text is None:
        return "the first word of a command pattern that grants is written out, without `*` or `...`"
    return _why_ungrantable(first.text)


def _why_ungrantable(name: str) -> str | None:
    if name in RESERVED:
        return f"`{name}` is a keyword of the shell and no command"
    if name in UNGRANTABLE:
        return f"`{name}` changes how the shell reads what follows and cannot be granted"
    if not name or "=" in name or name[0] in "-%":
        return f"`{name}` is not the name of a command"
    return None


# --- granting


class Strict(NamedTuple):
    """A granting pattern. `plain`: its words, when it has no star and no `...` but at most one at the end (`open`)."""

    items: tuple[Item, ...]
    plain: tuple[str, ...] | None
    open: bool


def strict(items: tuple[Item, ...]) -> Strict:
    """The strict reading of a parsed pattern."""
    is_open = items[-1].dots
    plain = [item.text for item in (items[:-1] if is_open else items)]
    known = tuple(text for text in plain if text is not None)
    return Strict(items, known if len(known) == len(plain) else None, is_open)


def grants(pattern: Strict, words: Sequence[Word], must_spell: Callable[[Sequence[Word]], set[int]]) -> bool:
    """Whether a granting pattern covers a command whole.

    `must_spell`: the positions of words that only written text may match; asked for only when a star or dots
    would match at all.
    """
    plain = pattern.plain
    if plain is None:
        items = pattern.items
        return _covers(items, words, frozenset()) and _covers(items, words, must_spell(words))
    count = len(plain)
    if len(words) < count or (len(words) > count and not pattern.open):
        return False
    for text, word in zip(plain, words, strict=False):
        if len(word.parts) != 1 or word.parts[0] != text:
            return False
    return len(words) == count or max(must_spell(words), default=0) < count


def _covers(items: Sequence[Item], words: Sequence[Word], spelled: set[int] | frozenset[int]) -> bool:
    """Word by word over the set of places in the pattern that can have been reached."""
    states = _closure({1}, items)
    for index in range(1, len(words)):
        word = words[index]
        reached: set[int] = set()
        for state in states:
            if state == len(items):
                continue
            item = items[state]
            if item.dots:
                if index not in spelled:
                    reached.add(state)
            elif _is_granted(item, word, index in spelled):
                reached.add(state + 1)
        if not reached:
            return False
        states = _closure(reached, items)
    return len(items) in states


def _closure(states: set[int], items: Sequence[Item]) -> set[int]:
    """With the places behind `...`, which may stand for no word."""
    result = set(states)
    for state in states:
        while state < len(items) and items[state].dots:
            state += 1
            result.add(state)
    return result


def _is_granted(item: Item, word: Word, spelled: bool) -> bool:
    text = word.text
    if text is None:
        return False  # a pattern in the text may become several words
    if item.text is not None:
        return item.text == text
    return (not spelled or _spells(item.pieces[0], text)) and _star_within_components(item.pieces, text)


def _spells(prefix: str, option: str) -> bool:
    """Whether the written part before the first star names the whole option."""
    if option.startswith("--"):
        name = option.partition("=")[0]
        return name != option and prefix.startswith(name + "=")
    return option.startswith("-") and len(prefix) > 1 and prefix.startswith(option[:2])


def _star_within_components(pieces: Sequence[str], text: str) -> bool:
    """A star stands for no `/`, makes no `..`, and is no leading `-`."""
    if not pieces[0] and text.startswith("-"):
        return False
    pattern = "*".join(piece.replace("*", "\0") for piece in pieces).split("/")
    parts = text.split("/")
    return len(pattern) == len(parts) and all(
        star_matches(tuple(piece.replace("\0", "*") for piece in shape.split("*")), part)
        and (".." not in part or ".." in shape)
        for shape, part in zip(pattern, parts, strict=True)
    )


def star_matches(pieces: Sequence[str], text: str) -> bool:
    """Whether `text` is the pieces in order with any run between them."""
    if len(pieces) == 1:
        return pieces[0] == text
    first, last = pieces[0], pieces[-1]
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in pieces[1:-1]:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


# --- withholding


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
