"""`runs any`: shell text that starts a listed command, or may.

In: command patterns, then shell text. Out: `Truth`, FALSE only when no reading of the text starts one.
"""

from collections.abc import Callable, Sequence

from .refs import Truth
from .shell_dress import see
from .shell_lexer import Word
from .shell_loose import Loose, loosen, may_be
from .shell_patterns import parse_pattern


def among(patterns: tuple[str, ...]) -> Callable[[str], Truth]:
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
