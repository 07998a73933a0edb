"""Command patterns read strictly, to grant.

In: a parsed pattern and the words of a command. Out: whether the pattern surely covers the command whole.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .shell_lexer import Word
from .shell_patterns import Item, star_matches


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
