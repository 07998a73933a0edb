"""The bytes of a syntax tree, one by one: what may stand in a token and between two.

In: the leaves of a tree of tree-sitter-bash in the order of the text. Out: whether every byte lies in a token that
holds nothing a shell would expand, or in a blank where a blank may stand.

INVARIANT: all bytes before `position` are accounted for.
"""

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node

# What a token of text may hold without a shell expanding it.
_DOLLAR = rb"\$(?![A-Za-z0-9_@*#?$!(\[{'\"-])"
_QUIET_WORD = re.compile(rb"(?:[^\\`$<>\s;&|()'\"#]|\\[^\n]|#|" + _DOLLAR + rb")*+")
_EASY_WORD = re.compile(rb"[A-Za-z0-9_./:,%+=@~*?-]++")
_QUIET_STRING = re.compile(rb"(?:[^\\`$]|\\.|\$(?![A-Za-z0-9_@*#?$!(\[{-]))*+", re.DOTALL)
_BEFORE_COMMENT = b" \t\n;&|()"


class Gap(Enum):
    """What may stand between two tokens without being one."""

    NONE = re.compile(rb"")
    LINE = re.compile(rb"[ \t]*+")
    LINES = re.compile(rb"[ \t\n]*+")
    TEXT = _QUIET_STRING


_ONE_LINE: Final = frozenset(
    "command command_name redirected_statement file_redirect herestring_redirect declaration_command "
    "unset_command variable_assignments negated_command".split()
)
_MANY_LINES: Final = frozenset(
    "program list pipeline command_substitution process_substitution subshell compound_statement do_group array "
    "heredoc_redirect if_statement while_statement for_statement c_style_for_statement case_statement case_item elif_clause "
    "else_clause function_definition arithmetic_expansion".split()
)


WITHIN_NODE: Final = {
    **dict.fromkeys(_ONE_LINE, Gap.LINE),
    **dict.fromkeys(_MANY_LINES, Gap.LINES),
    "simple_expansion": Gap.NONE,
    "variable_assignment": Gap.NONE,
    "concatenation": Gap.NONE,
    "subscript": Gap.NONE,
    "test_command": Gap.LINE,
    "string": Gap.TEXT,
    "heredoc_body": Gap.TEXT,
}
"""What may stand between the children of a node; other nodes take it from the node around them."""


class Account:
    """The account of one text. `readable`: no byte was met that is not accounted for."""

    __slots__ = ("position", "readable", "source")

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.position = 0
        self.readable = True

    def require(self, holds: bool) -> None:
        """Give the text up unless something holds."""
        self.readable = self.readable and holds

    def leaf(self, node: "Node", kind: str, gap: "Gap") -> None:
        """Account for the bytes of a token and for those before it."""
        if node.start_byte != self.position:
            self.gap(node.start_byte, gap)
        if node.start_byte < self.position:
            self.require(False)
        start, end = node.start_byte, node.end_byte
        self.position = end
        if kind == "word":
            if _EASY_WORD.fullmatch(self.source, start, end) is None:
                self._word_leaf(start, end, gap)
        elif not node.is_named:
            self._token(kind, start, end, gap)
        elif kind == "raw_string":
            self._after_dollar(end, gap)
        else:
            self._text_leaf(node, kind, gap)

    def _token(self, kind: str, start: int, end: int, gap: "Gap") -> None:
        """An operator, which the parser may give the blanks before it."""
        if end - start != len(kind):
            token = self.source[start:end].lstrip(b" \t\n" if gap is Gap.TEXT else b" \t")
            self.require(token == kind.encode())
        self._after_dollar(end, gap)

    def _text_leaf(self, node: "Node", kind: str, gap: "Gap") -> None:
        start, end = node.start_byte, node.end_byte
        if kind in {"comment", "file_descriptor"}:
            self.require(not start or self.source[start - 1] in _BEFORE_COMMENT)
        elif kind in {"string_content", "heredoc_content", "heredoc_body"}:
            quiet = _QUIET_STRING.fullmatch(self.source, start, end)
            self.require(quiet is not None or _in_quoted_heredoc(node, self.source))
        elif kind == "ansi_c_string":  # dash ends it at an escaped quote
            self.require(b"\\" not in self.source[start:end])
        elif kind not in {"heredoc_start", "special_variable_name"}:
            self._word_leaf(start, end, gap)

    def _word_leaf(self, start: int, end: int, gap: "Gap") -> None:
        quiet = _QUIET_WORD.fullmatch(self.source, start, end)
        self.require(quiet is not None and not self.source.startswith(b"#", start))
        self._after_dollar(end, gap)

    def _after_dollar(self, end: int, gap: "Gap") -> None:
        """`$'` and `$"` that the parser split in two."""
        if gap is not Gap.TEXT and self.source[end - 1 : end] == b"$" and self.source[end : end + 1] in {b"'", b'"'}:
            self.require(self.source[end - 2 : end] == b"$$")

    def gap(self, until: int, gap: "Gap") -> None:
        """The bytes up to the next token: blanks, or text where text may stand."""
        if until > self.position and gap.value.fullmatch(self.source, self.position, until) is None:
            self.require(False)


def _in_quoted_heredoc(node: "Node", source: bytes) -> bool:
    """Whether a text lies in a here-document whose delimiter is quoted."""
    redirect = node.parent
    while redirect is not None and redirect.type != "heredoc_redirect":
        redirect = redirect.parent
    start = None if redirect is None else child_of(redirect, "heredoc_start")
    return start is not None and source[start.start_byte : start.start_byte + 1] in {b"'", b'"'}


def child_of(node: "Node", kind: str) -> "Node | None":
    """The first child of a kind."""
    return next((child for child in node.children if child.type == kind), None)
