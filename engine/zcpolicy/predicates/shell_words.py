"""Words of a syntax tree: what a program gets after quotes and escapes are folded.

In: a node of tree-sitter-bash. Out: a `Word`: its known text, with a hole where the shell would expand something.
"""

import re
from typing import TYPE_CHECKING, Final

from .refs import WITHIN
from .shell_lexer import Part, Word

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NESTED: Final = 50
"""Nesting of one word; a deeper word is a hole."""

HOLE: Final = Word((None,), splits=True)

_PIECE = re.compile(
    r"\\(?P<escaped>.)|(?P<pattern>[*?]|\[[!^]?[A-Za-z0-9_.-]++\])(?!\()|(?P<other>[\[{]|[!@+*?]\()"
    r"|(?P<plain>(?:[^\\*?\[{!@+]|[!@+](?!\())++)|(?P<end>\\)",
    re.DOTALL,
)
_SPECIAL: Final = "*?[]{}\\()!@+"
_EASY = re.compile(rb"[A-Za-z0-9_./:,%+=@-]++")
_IN_STRING = re.compile(r"\\([$`\"\\])")


def decode(node: "Node", source: bytes) -> Word:
    """The word that a node stands for."""
    if node.type == "word":
        easy = _EASY.fullmatch(source, node.start_byte, node.end_byte)
        if easy:
            return Word((easy.group().decode(),))
    parts: list[Part] = []
    splits = _collect(node, source, parts, 0)
    raw = source[node.start_byte : node.start_byte + 1]
    return _word(parts, splits, tilde=raw == b"~")


def _word(parts: list[Part], splits: bool, tilde: bool) -> Word:
    """Neighbouring texts joined: known, hole, known, …"""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, str) and isinstance(last, str):
            joined[-1] = last + part
        elif part != "" and (part != last or part is WITHIN or not joined):
            joined.append(part)
    return Word(tuple(joined) or ("",), splits, tilde)


def _collect(node: "Node", source: bytes, parts: list[Part], depth: int) -> bool:
    """Append the parts of a node; whether an unquoted expansion is among them."""
    kind = node.type
    if depth > MAX_NESTED:
        parts.append(None)
        return True
    if kind in {"word", "number", "test_operator", "variable_name"} and not node.children:
        raw = _text(node, source)
        return _plain(raw, parts, _braces_are_text(raw))
    if kind == "raw_string":
        parts.append(_text(node, source)[1:-1])
        return False
    if kind == "string":
        _string(node, source, parts)
        return False
    if kind == "concatenation":
        return _concatenation(node, source, parts, depth)
    parts.append(None)
    return True


def _concatenation(node: "Node", source: bytes, parts: list[Part], depth: int) -> bool:
    children = node.children
    braced = _braces_are_text(_text(node, source))
    holes = _bracketed([_text(child, source) if child.type == "word" else "" for child in children], braced)
    splits = False
    position = node.start_byte
    for place, child in enumerate(children):
        if child.start_byte != position or place in holes:
            parts.append(None)
            splits = True
        if place in holes:
            pass
        elif child.type == "word":
            splits = _plain(_text(child, source), parts, braced) or splits
        else:
            splits = _collect(child, source, parts, depth + 1) or splits
        position = child.end_byte
    return splits


def _braces_are_text(raw: str) -> bool:
    """Braces without a comma or a range, such as `{}`, are not expanded by any shell."""
    return "," not in raw and ".." not in raw


def _bracketed(texts: list[str], braced: bool) -> range:
    """The pieces from the first unquoted bracket or brace to the last: together they are one pattern."""
    openers = "[(" if braced else "[{("
    opening = next((place for place, text in enumerate(texts) if any(letter in text for letter in openers)), None)
    if opening is None:
        return range(0)
    closing = max((place for place, text in enumerate(texts) if any(letter in text for letter in "]})")), default=0)
    return range(opening, max(opening, closing) + 1)


def _plain(raw: str, parts: list[Part], braced: bool) -> bool:
    """Unquoted text: escapes are folded, patterns are holes; a brace or an odd bracket hides all up to the last."""
    splits = False
    for piece in _PIECE.finditer(raw):
        kind = piece.lastgroup
        if kind == "other" and braced and piece.group() == "{":
            parts.append("{")
            continue
        if kind == "other":
            parts.append(None)
            parts.append(raw[1 + max(raw.rfind(letter) for letter in _SPECIAL) :])
            return True
        splits = splits or kind == "pattern"
        parts.append(WITHIN if kind == "pattern" else piece.group(kind or 0))
    return splits


def _string(node: "Node", source: bytes, parts: list[Part]) -> None:
    """Text between double quotes: its expansions are holes that do not split."""
    position = node.start_byte + 1
    end = node.end_byte - 1
    for child in node.children:
        if child.type in {"string_content", '"'}:
            continue
        start = child.start_byte
        while source[start] in b" \t\n":  # the parser gives blanks to the token behind them
            start += 1
        parts.append(_IN_STRING.sub(r"\1", source[position:start].decode()))
        parts.append(None)
        position = child.end_byte
    if position <= end:
        parts.append(_IN_STRING.sub(r"\1", source[position:end].decode()))


def _text(node: "Node", source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode()
