r"""Characters that have no place in a policy, and names that could be taken for others.

In: policy text. Out: diagnostics. Bidirectional and invisible characters are errors everywhere, also in strings and
comments (an escape such as `\u200b` is fine); names hold one script, in the normal form that Unicode calls NFKC.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

from policy_lang import codes
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.source import Source, Span

MAX_REPORTED: Final = 20
"""Findings of a kind in one text; more of them have one cause."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_WIDE_NAME = re.compile(r"""(?P<name>[^\W\d][\w\-]*+)|r"[^"\n]*+"|"(?:[^"\\\n]|\\.)*+"|\#[^\n]*+""")
_INVISIBLE: Final = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2028, 0x2029, 0x2800, 0x3164, 0xFFA0}
    | {*range(0x80, 0xA0), *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
)
_TOGETHER: Final = (
    frozenset({"CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"CJK", "HANGUL"}),
    frozenset({"CJK", "BOPOMOFO"}),
)


def odd_characters(source: Source) -> Iterator[Diagnostic]:
    """Controls, bidirectional and invisible characters, lone surrogates; at most `MAX_REPORTED`."""
    places = _CONTROLS.finditer(source.text) if source.text.isascii() else _odd_places(source.text)
    for found in islice(places, MAX_REPORTED):
        at = found.start()
        name = character_name(source.text[at])
        inside = source.text[at - 1 : at].strip() and source.text[at + 1 : at + 2].strip()  # it may part two words
        fix = Fix((Edit(source, Span(at, at + 1), ""),), safe=not inside)
        help_ = "remove it; a string may spell it with an escape"
        yield Diagnostic(codes.ODD_CHARACTER, f"{name} may not stand here", source, Span(at, at + 1), (), help_, fix)


def without_odd(text: str) -> str:
    """The text with a blank for every such character, so that reading can go on behind it."""
    if text.isascii():
        return _CONTROLS.sub(" ", text)
    return text.translate({ord(character): " " for character in set(text) if is_odd(character)})


def _odd_places(text: str) -> Iterator[re.Match[str]]:
    odd = {character for character in set(text) if is_odd(character)}
    odd.discard("\r")
    listed = "".join(map(re.escape, sorted(odd)))
    return re.finditer(rf"[{listed}]|\r(?!\n)" if listed else r"\r(?!\n)", text)


def is_odd(character: str) -> bool:
    """Whether a character cannot be seen: controls but tab and line breaks, format characters, odd fillers."""
    if character in "\t\n\r":
        return False
    return unicodedata.category(character) in {"Cc", "Cf", "Cs"} or ord(character) in _INVISIBLE


def character_name(character: str) -> str:
    """`U+200B (zero width space)`."""
    name = unicodedata.name(character, "").lower()
    return f"U+{ord(character):04X}" + (f" ({name})" if name else "")


def odd_names(source: Source, text: str) -> Iterator[Diagnostic]:
    """Names outside strings and comments that mix scripts or are not in normal form; at most `MAX_REPORTED`.

    `text` is that of the source, without characters that cannot be seen.
    """
    return islice(_odd_names(source, text), MAX_REPORTED)


def _odd_names(source: Source, text: str) -> Iterator[Diagnostic]:
    for found in _WIDE_NAME.finditer(text):
        name = found["name"]
        if name is None or name.isascii():
            continue
        scripts = scripts_of(name)
        if len(scripts) > 1 and not any(scripts <= mix for mix in _TOGETHER):
            listed = " and ".join(sorted(script.capitalize() for script in scripts))
            message = f"`{name}` mixes {listed} letters"
            yield Diagnostic(
                codes.MIXED_SCRIPTS, message, source, Span(*found.span()), (), "a name holds letters of one script"
            )
        elif unicodedata.normalize("NFKC", name) != name:
            plain = unicodedata.normalize("NFKC", name)
            fix = Fix((Edit(source, Span(*found.span()), plain),), safe=False)
            message = f"`{name}` is another spelling of `{plain}`"
            yield Diagnostic(codes.MIXED_SCRIPTS, message, source, Span(*found.span()), (), f"write `{plain}`", fix)


@lru_cache(maxsize=4096)
def scripts_of(name: str) -> frozenset[str]:
    """The scripts of a name's letters and digits, by the first word of each one's Unicode name."""
    letters = (letter for letter in name if letter.isalpha() or not letter.isascii())
    return frozenset(unicodedata.name(letter, "UNKNOWN").replace("-", " ").split()[0] for letter in letters)
