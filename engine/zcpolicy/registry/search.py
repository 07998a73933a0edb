"""Finding tools by words: only in what the registry may show.

In: specs and a query. Out: those that fit, best first.
"""

import re
from collections.abc import Iterable
from typing import Final

from zcpolicy.registry.sources import ToolSpec

MAX_QUERY_CHARACTERS: Final = 1_000
"""Characters of a query that are read."""
MAX_FOUND: Final = 50
"""Tools that one search gives."""

_WORD: Final = re.compile(r"\w+")
_IN_NAME: Final = 3
_SHORT: Final = 2


def matching(specs: Iterable[ToolSpec], query: str, limit: int) -> tuple[ToolSpec, ...]:
    """The tools that have words of the query in name or description; a word in the name counts three times."""
    words = _words(query[:MAX_QUERY_CHARACTERS])
    ranked = [(_score(spec, words), spec) for spec in specs]
    found = sorted((one for one in ranked if one[0]), key=lambda one: (-one[0], one[1].wire))
    return tuple(spec for _, spec in found[: max(0, min(limit, MAX_FOUND))])


def _score(spec: ToolSpec, words: set[str]) -> int:
    name, told = _words(spec.wire), _words(spec.description)
    return sum(_IN_NAME * _begins(word, name) + _begins(word, told) for word in words)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold().replace("_", " ")))


def _begins(word: str, words: set[str]) -> bool:
    """Whether it is one of the words; a longer one may be the beginning of one (`issue`, `issues`)."""
    return word in words or (len(word) > _SHORT and any(one.startswith(word) for one in words))
