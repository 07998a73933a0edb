"""Shell text outside the closed subset, as tree-sitter-bash reads it, checked byte for byte.

In: shell text. Out: a `Reading`: every simple command at any depth, and whether all of the text was understood.
The parser is known to drop a lone `-` before `<<` and `2>&1`, to end here-documents at lines that are not their
delimiter, and to show no node for a substitution in some places; so every byte has to lie in a token or a blank,
tokens of text must hold nothing that a shell would expand, and here-documents are measured again.

INVARIANT: a byte that is not accounted for makes the text unreadable.
"""

import re
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from .shell_continue import joined
from .shell_lexer import MAX_COMMANDS, MAX_TEXT, SHORT, Command, Script, Span, Word
from .shell_words import HOLE, decode

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

MAX_NODES: Final = 200_000
"""Nodes of one syntax tree that are looked at; a larger tree is unreadable."""
MAX_NESTS: Final = 1000
"""Pipes, parentheses, expansions and here-documents in one long text, for which the parser's time is worse than linear."""
MAX_DEPTH: Final = 200
"""Nesting of substitutions, groups and words; deeper text is unreadable."""


class Reading(NamedTuple):
    """What a text contains. `evaluates`: it has constructs that may run text that stands in quotes elsewhere."""

    commands: tuple[Command, ...]
    readable: bool
    evaluates: bool = False


UNREADABLE: Final = Reading((), False, True)

WORDS: Final = frozenset(
    "word string raw_string ansi_c_string translated_string concatenation number simple_expansion expansion "
    "command_substitution arithmetic_expansion process_substitution brace_expression regex extglob_pattern".split()
)
_STRUCTURE: Final = frozenset(
    "program list pipeline command command_name redirected_statement file_redirect heredoc_redirect herestring_redirect "
    "heredoc_start heredoc_body heredoc_content heredoc_end negated_command test_command declaration_command "
    "unset_command variable_assignment variable_assignments if_statement elif_clause else_clause while_statement "
    "for_statement c_style_for_statement do_group case_statement case_item function_definition compound_statement "
    "subshell comment file_descriptor variable_name special_variable_name subscript array binary_expression "
    "unary_expression ternary_expression postfix_expression parenthesized_expression test_operator string_content".split()
)
_QUIET_LEAVES: Final = frozenset(
    ["variable_name", "string_content", "heredoc_content", "heredoc_start", "heredoc_end", "comment"]
)
_EVALUATES: Final = frozenset(
    "arithmetic_expansion test_command declaration_command unset_command variable_assignment subscript for_statement "
    "c_style_for_statement function_definition expansion ternary_expression postfix_expression".split()
)
_AGREED: Final = frozenset(
    "program list pipeline command command_name word number string string_content raw_string concatenation "
    "redirected_statement file_redirect file_descriptor heredoc_redirect heredoc_start heredoc_body heredoc_content "
    "heredoc_end".split()
)
_AGREED_TOKENS: Final = frozenset(["&&", "||", "|", ";", "\n", "<<", ">", ">&", "<&", '"'])


@lru_cache(maxsize=1)
def _language() -> "Language":
    """The grammar, loaded when the first text needs it: the import costs more than reading many texts."""
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


def _parse(source: bytes) -> "Tree | None":
    """The tree of a text without a syntax error, else `None`.

    The parser's search for a way on after an error is worse than linear, so a long text is given up at the first.
    """
    import tree_sitter

    parser = tree_sitter.Parser(_language())
    if len(source) <= SHORT:
        tree = parser.parse(source)
    else:
        try:
            tree = parser.parse(lambda at, _: source[at : at + _CHUNK], progress_callback=lambda _, failed: failed)
        except ValueError:  # the callback asked to stop
            return None
    return None if tree.root_node.has_error else tree


_CHUNK: Final = 16 * 1024


def agrees(text: str, script: Script) -> bool:
    """Whether the parser sees in a text of the closed subset the very commands, words and redirections of the lexer."""
    tree = _parse(text.encode())
    if tree is None:
        return False
    spans: list[Span] = []
    todo = [tree.root_node]
    while todo:
        node = todo.pop()
        kind = node.type
        if kind == "command":
            spans += [
                (child.start_byte, child.end_byte, "name" if child.type == "command_name" else "word")
                for child in node.children
                if child.type != "file_redirect"
            ]
        elif kind == "file_redirect":
            spans.append((node.start_byte, node.end_byte, "redirect"))
        elif kind == "heredoc_end":
            spans.append((node.start_byte, node.end_byte, "end"))
        elif kind not in (_AGREED if node.is_named else _AGREED_TOKENS):
            return False
        todo.extend(node.children)
    spans.sort()
    return tuple(spans) == script.spans


def read(text: str) -> Reading:
    """Every simple command of a text at any depth; `readable` is False when part of it was not understood."""
    if len(text) > SHORT and (len(_STACKED.findall(text)) > MAX_NESTS or _runs_off(text)):
        return UNREADABLE
    if len(text) > MAX_TEXT or _STRANGE.search(text) or _strange_blank(text):
        return UNREADABLE
    plain = joined(text)
    if plain is None:
        return UNREADABLE
    source = plain.encode()
    tree = _parse(source)
    return UNREADABLE if tree is None else _Walk(source).run(tree.root_node)


_STACKED = re.compile(r"[|(`$]|<<")
_HERE = re.compile(r"<<-?[ \t]*['\"\\]?([A-Za-z0-9_.]+)")
_STRANGE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def _runs_off(text: str) -> bool:
    """A here-document whose delimiter stands on no line: the parser would look for it again and again."""
    delimiters = {found.group(1) for found in _HERE.finditer(text)}
    if not delimiters:
        return False
    return not delimiters <= {line.strip() for line in text.split("\n")}


def _strange_blank(text: str) -> bool:
    """A blank beyond ASCII, which the parser may take for a blank and a shell for a letter."""
    return not text.isascii() and any(not letter.isascii() and not letter.isprintable() for letter in text)


# What a token of text may hold without a shell expanding it.
_DOLLAR = rb"\$(?![A-Za-z0-9_@*#?$!(\[{'\"-])"
_QUIET_WORD = re.compile(rb"(?:[^\\`$<>\s;&|()'\"#]|\\[^\n]|#|" + _DOLLAR + rb")*+")
_EASY_WORD = re.compile(rb"[A-Za-z0-9_./:,%+=@~*?-]++")
_QUIET_STRING = re.compile(rb"(?:[^\\`$]|\\.|\$(?![A-Za-z0-9_@*#?$!(\[{-]))*+", re.DOTALL)
_QUIET_TEST = re.compile(rb"(?:[^|&;()<>\n'\"\\]|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|\\[^\n])*+", re.DOTALL)
"""`[[ … ]]` without operators: to dash, where `[[` is the name of a command, those are joints and redirections."""
_AFTER_BOTH = re.compile(rb"[ \t]*(?:[\n;|&)]|\Z)")
_BEFORE_COMMENT = b" \t\n;&|()"
_DELIMITER = re.compile(rb"(-?)([A-Za-z0-9_.]+)|(-?)'([A-Za-z0-9_. -]+)'|(-?)\"([A-Za-z0-9_. -]+)\"")


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


_WITHIN: Final = {
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
_FLAT: Final = frozenset(["list", "pipeline", "redirected_statement"])
"""Chains that the parser nests to the left."""


class _Walk:
    """One walk over a tree, in the order of the text. `position`: all bytes before it are accounted for."""

    __slots__ = ("behind", "commands", "evaluates", "heredoc_lines", "position", "readable", "source", "stdin")

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.commands: list[Command] = []
        self.position = 0
        self.readable = True
        self.evaluates = False
        self.behind: dict[int, list[Word]] = {}
        self.stdin: dict[int, str | None] = {}
        self.heredoc_lines: set[int] = set()

    def run(self, root: "Node") -> Reading:
        # (node, its words belong to a command that is already collected, what may stand before it and between the
        # nodes around it, depth)
        todo: list[tuple[Node, bool, Gap, Gap, int]] = [(root, False, Gap.LINES, Gap.LINES, 0)]
        budget = MAX_NODES
        while todo and self.readable:
            node, claimed, gap, around, depth = todo.pop()
            kind, children = node.type, node.children
            budget -= 1
            if budget < 0 or depth > MAX_DEPTH or len(self.commands) > MAX_COMMANDS:
                return UNREADABLE
            if not children:
                self._leaf(node, kind, gap)
                if not (claimed if kind in WORDS else kind in _QUIET_LEAVES):
                    self._node(node, kind, claimed, children)
                continue
            within = _WITHIN.get(kind, Gap.LINE if around is Gap.TEXT else around)
            if within is Gap.TEXT:
                self._gap(node.start_byte, gap)
                self.position = max(self.position, node.start_byte)
            claims = self._node(node, kind, claimed, children)
            deeper = depth + (kind not in _FLAT)
            todo += [(child, claims, within, within, deeper) for child in reversed(children)]
            # Before its first child a node has what stands before itself; a here-document begins with text.
            todo[-1] = (children[0], claims, Gap.TEXT if kind == "heredoc_body" else gap, within, deeper)
        self._gap(len(self.source), Gap.LINES)
        if not self.readable:
            return Reading(tuple(self.commands), False, True)
        return Reading(tuple(self.commands), True, self.evaluates)

    def _leaf(self, node: "Node", kind: str, gap: "Gap") -> None:
        """Account for the bytes of a token and for those before it."""
        if node.start_byte != self.position:
            self._gap(node.start_byte, gap)
        if node.start_byte < self.position:
            self.readable = False
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
            self.readable = self.readable and token == kind.encode()
        self._after_dollar(end, gap)

    def _text_leaf(self, node: "Node", kind: str, gap: "Gap") -> None:
        start, end = node.start_byte, node.end_byte
        if kind in {"comment", "file_descriptor"}:
            self.readable = self.readable and (not start or self.source[start - 1] in _BEFORE_COMMENT)
        elif kind in {"string_content", "heredoc_content", "heredoc_body"}:
            quiet = _QUIET_STRING.fullmatch(self.source, start, end)
            self.readable = self.readable and (quiet is not None or self._is_quoted_heredoc(node))
        elif kind == "ansi_c_string":  # dash ends it at an escaped quote
            self.readable = self.readable and b"\\" not in self.source[start:end]
        elif kind not in {"heredoc_start", "special_variable_name"}:
            self._word_leaf(start, end, gap)

    def _word_leaf(self, start: int, end: int, gap: "Gap") -> None:
        quiet = _QUIET_WORD.fullmatch(self.source, start, end)
        self.readable = self.readable and quiet is not None and not self.source.startswith(b"#", start)
        self._after_dollar(end, gap)

    def _after_dollar(self, end: int, gap: "Gap") -> None:
        """`$'` and `$"` that the parser split in two."""
        if gap is not Gap.TEXT and self.source[end - 1 : end] == b"$" and self.source[end : end + 1] in {b"'", b'"'}:
            self.readable = self.source[end - 2 : end] == b"$$" and self.readable

    def _is_quoted_heredoc(self, node: "Node") -> bool:
        redirect = node.parent
        while redirect is not None and redirect.type != "heredoc_redirect":
            redirect = redirect.parent
        start = None if redirect is None else _child(redirect, "heredoc_start")
        return start is not None and self.source[start.start_byte : start.start_byte + 1] in {b"'", b'"'}

    def _gap(self, until: int, gap: "Gap") -> None:
        """The bytes up to the next token: blanks, or text where text may stand."""
        if until > self.position and gap.value.fullmatch(self.source, self.position, until) is None:
            self.readable = False

    def _node(self, node: "Node", kind: str, claimed: bool, children: "list[Node]") -> bool:
        """Collect what a node says; whether its children's words are thereby collected."""
        if not node.is_named:
            return claimed
        self.evaluates = self.evaluates or kind in _EVALUATES
        if kind in WORDS:
            if not claimed:
                self.commands.append(Command((), targets=(decode(node, self.source),)))
            if kind == "command_substitution" and children and children[0].type == "`":
                # An escape inside back-quotes is taken off before the text is read.
                self.readable = self.readable and b"\\" not in self.source[node.start_byte : node.end_byte]
            return kind in {"string", "concatenation"}
        if kind not in _STRUCTURE:
            self.readable = False
        elif kind == "command":
            self._command(node, children)
        elif kind in {"declaration_command", "unset_command"}:
            self._declaration(children)
        else:
            self._statement(node, kind, children)
        return kind in {"command", "command_name", "declaration_command", "unset_command"}

    def _statement(self, node: "Node", kind: str, children: "list[Node]") -> None:
        if kind == "compound_statement":
            self.readable = self.readable and children[0].type != "(("  # to dash two groups of commands
        elif kind == "test_command":
            quiet = _QUIET_TEST.fullmatch(self.source, node.start_byte, node.end_byte)
            self.readable = self.readable and quiet is not None
            self.commands.append(Command((Word((self._text(children[0]),)), HOLE)))
        elif kind == "redirected_statement":
            self._redirected(children)
        elif kind == "heredoc_redirect":
            self._heredoc(node)

    def _text(self, node: "Node") -> str:
        return self.source[node.start_byte : node.end_byte].decode()

    def _command(self, node: "Node", children: "list[Node]") -> None:
        self._apart(children)
        words: list[Word] = []
        assigns: list[tuple[str, Word]] = []
        stdin = self.stdin.get(node.id)
        for child in children:
            kind = child.type
            if kind == "variable_assignment":
                assigns.append(self._assignment(child))
            elif kind == "herestring_redirect":
                stdin = self._herestring(child)
                self._operands(child)
            elif kind == "file_redirect":
                words += self._operands(child)
            elif kind == "command_name":
                words += [decode(inner, self.source) for inner in child.children]
            elif kind in WORDS:
                words.append(decode(child, self.source))
            else:
                # A token such as `==` or `=~` that the parser took for an operator is a word to the shell.
                words.append(Word((self._text(child),)) if not child.is_named else HOLE)
        words += self.behind.get(node.id, ())
        self.commands.append(Command(tuple(words), stdin, (), tuple(assigns)))

    def _apart(self, children: "list[Node]") -> None:
        """Words and assignments that touch are one word to a shell."""
        for child, following in pairwise(children):
            if child.end_byte == following.start_byte and following.type != "file_redirect":
                self.readable = False

    def _assignment(self, node: "Node") -> tuple[str, Word]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        word = Word(("",)) if value is None else decode(value, self.source)
        return ("" if name is None else self._text(name)), word

    def _declaration(self, children: "list[Node]") -> None:
        self._apart(children)
        words: list[Word] = []
        for child in children:
            if child.type == "variable_assignment":
                name, value = self._assignment(child)
                words.append(Word((f"{name}=", None)) if value.text is None else Word((f"{name}={value.text}",)))
            elif child.type in WORDS:
                words.append(decode(child, self.source))
            else:
                words.append(Word((self._text(child),)))
        self.commands.append(Command(tuple(words)))

    def _herestring(self, node: "Node") -> str | None:
        word = node.children[-1]
        return decode(word, self.source).text if word.type in WORDS else None

    def _redirected(self, children: "list[Node]") -> None:
        """Give the here-document to the command that reads it; a group's is left unread."""
        body = children[0]
        operands: list[Word] = []
        for child in children:
            if child.type in {"file_redirect", "herestring_redirect"}:
                operands += self._operands(child)
            if child.type == "herestring_redirect":
                self.stdin[body.id] = self._herestring(child)
            elif child.type == "heredoc_redirect":
                start = _child(child, "heredoc_start")
                content = _child(child, "heredoc_body")
                known = content is None or not any(inner.type != "heredoc_content" for inner in content.children)
                self.stdin[body.id] = "" if content is None else self._text(content) if known and start else None
        if operands and body.type == "command":
            self.behind[body.id] = operands
        elif operands:
            self.readable = self.readable and body.type == "file_redirect"
            self.commands.append(Command(tuple(operands)))
        # Only the last one counts, and only when it is not mixed with another kind of redirection of descriptor 0.
        if sum(child.type in {"herestring_redirect", "heredoc_redirect"} for child in children) > 1:
            self.stdin[body.id] = None

    def _operands(self, redirect: "Node") -> list[Word]:
        """The words that the parser keeps behind the target of a redirection: they belong to the command."""
        children = redirect.children
        words = [child for child in children if child.type in WORDS]
        operands = words if any(child.type.endswith("&-") for child in children) else words[1:]
        if children[0].type == "file_descriptor" and children[0].end_byte != children[1].start_byte:
            self.readable = False  # to a shell a word of digits
        if children[0].type.startswith("&>") and _AFTER_BOTH.match(self.source, redirect.end_byte) is None:
            self.readable = False  # to dash `&` ends the command, and what follows the target is another
        if operands and (redirect.type != "file_redirect" or children[0].type.startswith("&>")):
            self.readable = False
        return [decode(word, self.source) for word in operands]

    def _heredoc(self, node: "Node") -> None:
        """Measure a here-document again: where it starts, that it ends at its delimiter and not before."""
        start, end = _child(node, "heredoc_start"), _child(node, "heredoc_end")
        if start is None or end is None:
            self.readable = False
            return
        source = self.source
        strips = source[node.start_byte : start.start_byte].rstrip().endswith(b"<<-")
        found = _DELIMITER.fullmatch(source, start.start_byte, start.end_byte)
        line = source.find(b"\n", start.end_byte) + 1
        if found is None or not line or line in self.heredoc_lines:
            self.readable = False
            return
        self.heredoc_lines.add(line)
        delimiter = next(part for part in found.groups()[1::2] if part is not None)
        self.readable = self.readable and _ends_at(source, line, delimiter, strips) == end.end_byte
        known = {"heredoc_start", "heredoc_body", "heredoc_end", "file_redirect", "pipeline", "command", "list"}
        for child in node.children:
            if child.is_named and child.type not in known:
                self.readable = False
            if child.type == "file_redirect" and self._operands(child):
                self.readable = False


def _ends_at(source: bytes, line: int, delimiter: bytes, strips: bool) -> int:
    """The end of the first line from `line` on that is exactly the delimiter, or -1."""
    while line < len(source):
        after = source.find(b"\n", line)
        after = len(source) if after < 0 else after
        content = source[line:after]
        if (content.lstrip(b"\t") if strips else content) == delimiter:
            return after
        line = after + 1
    return -1


def _child(node: "Node", kind: str) -> "Node | None":
    return next((child for child in node.children if child.type == kind), None)
