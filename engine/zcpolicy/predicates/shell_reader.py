"""Shell text outside the closed subset, as tree-sitter-bash reads it, checked byte for byte.

In: shell text. Out: a `Reading`: every simple command at any depth, and whether all of the text was understood.
The parser is known to drop a lone `-` before `<<` and `2>&1`, to end here-documents at lines that are not their
delimiter, and to show no node for a substitution in some places; so every byte has to lie in a token or a blank,
tokens of text must hold nothing that a shell would expand, and here-documents are measured again.

INVARIANT: a byte that is not accounted for makes the text unreadable.
"""

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from .shell_continue import joined
from .shell_lexer import MAX_COMMANDS, MAX_TEXT, SHORT, Command, Word
from .shell_parser import parse
from .shell_tokens import WITHIN_NODE, Account, Gap, child_of
from .shell_words import HOLE, decode

if TYPE_CHECKING:
    from tree_sitter import Node

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
    tree = parse(source)
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


_QUIET_TEST = re.compile(rb"(?:[^|&;()<>\n'\"\\]|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|\\[^\n])*+", re.DOTALL)
"""`[[ … ]]` without operators: to dash, where `[[` is the name of a command, those are joints and redirections."""
_BEFORE_BRACE = b" \t\n;&|()"
_AFTER_BOTH = re.compile(rb"[ \t]*(?:[\n;|&)]|\Z)")
_DELIMITER = re.compile(rb"([A-Za-z0-9_.]+)|'([A-Za-z0-9_. -]+)'|\"([A-Za-z0-9_. -]+)\"")


_FLAT: Final = frozenset(["list", "pipeline", "redirected_statement"])
"""Chains that the parser nests to the left."""


class _Walk:
    """One walk over a tree, in the order of the text."""

    __slots__ = ("account", "behind", "commands", "evaluates", "heredoc_lines", "source", "stdin")

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.commands: list[Command] = []
        self.account = Account(source)
        self.evaluates = False
        self.behind: dict[int, list[Word]] = {}
        self.stdin: dict[int, str | None] = {}
        self.heredoc_lines: set[int] = set()

    def run(self, root: "Node") -> Reading:
        # (node, its words belong to a command that is already collected, what may stand before it and between the
        # nodes around it, depth)
        todo: list[tuple[Node, bool, Gap, Gap, int]] = [(root, False, Gap.LINES, Gap.LINES, 0)]
        budget = MAX_NODES
        while todo and self.account.readable:
            node, claimed, gap, around, depth = todo.pop()
            kind, children = node.type, node.children
            budget -= 1
            if budget < 0 or depth > MAX_DEPTH or len(self.commands) > MAX_COMMANDS:
                return UNREADABLE
            if not children:
                self.account.leaf(node, kind, gap)
                if not (claimed if kind in WORDS else kind in _QUIET_LEAVES):
                    self._node(node, kind, claimed, children)
                continue
            within = WITHIN_NODE.get(kind, Gap.LINE if around is Gap.TEXT else around)
            if within is Gap.TEXT:
                self.account.gap(node.start_byte, gap)
                self.account.position = max(self.account.position, node.start_byte)
            claims = self._node(node, kind, claimed, children)
            deeper = depth + (kind not in _FLAT)
            todo += [(child, claims, within, within, deeper) for child in reversed(children)]
            # Before its first child a node has what stands before itself; a here-document begins with text.
            todo[-1] = (children[0], claims, Gap.TEXT if kind == "heredoc_body" else gap, within, deeper)
        self.account.gap(len(self.source), Gap.LINES)
        if not self.account.readable:
            return Reading(tuple(self.commands), False, True)
        return Reading(tuple(self.commands), True, self.evaluates)

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
                self.account.require(b"\\" not in self.source[node.start_byte : node.end_byte])
            return kind in {"string", "concatenation"}
        if kind not in _STRUCTURE:
            self.account.require(False)
        elif kind == "command":
            self._command(node, children)
        elif kind in {"declaration_command", "unset_command"}:
            self._declaration(children)
        else:
            self._statement(node, kind, children)
        return kind in {"command", "command_name", "declaration_command", "unset_command"}

    def _statement(self, node: "Node", kind: str, children: "list[Node]") -> None:
        if kind == "compound_statement":
            self.account.require(children[0].type != "((")  # to dash two groups of commands
        elif kind == "test_command":
            quiet = _QUIET_TEST.fullmatch(self.source, node.start_byte, node.end_byte)
            self.account.require(quiet is not None)
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
                self.account.require(False)

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
                start = child_of(child, "heredoc_start")
                content = child_of(child, "heredoc_body")
                known = content is None or not any(inner.type != "heredoc_content" for inner in content.children)
                self.stdin[body.id] = "" if content is None else self._text(content) if known and start else None
        if operands and body.type == "command":
            self.behind[body.id] = operands
        elif operands:
            self.account.require(body.type == "file_redirect")
            self.commands.append(Command(tuple(operands)))
        # Only the last one counts, and only when it is not mixed with another kind of redirection of descriptor 0.
        if sum(child.type in {"herestring_redirect", "heredoc_redirect"} for child in children) > 1:
            self.stdin[body.id] = None

    def _operands(self, redirect: "Node") -> list[Word]:
        """The words that the parser keeps behind the target of a redirection: they belong to the command."""
        children = redirect.children
        words = [child for child in children if child.type in WORDS]
        operands = words if any(child.type.endswith("&-") for child in children) else words[1:]
        if self.source.endswith(b"}", 0, redirect.start_byte):  # `{name}>f` is a redirection to bash, a word to dash
            brace = self.source.rfind(b"{", 0, redirect.start_byte)
            self.account.require(brace > 0 and self.source[brace - 1] not in _BEFORE_BRACE)
        if children[0].type == "file_descriptor" and children[0].end_byte != children[1].start_byte:
            self.account.require(False)  # to a shell a word of digits
        if children[0].type.startswith("&>") and _AFTER_BOTH.match(self.source, redirect.end_byte) is None:
            self.account.require(False)  # to dash `&` ends the command, and what follows the target is another
        if operands and (redirect.type != "file_redirect" or children[0].type.startswith("&>")):
            self.account.require(False)
        return [decode(word, self.source) for word in operands]

    def _heredoc(self, node: "Node") -> None:
        """Measure a here-document again: where it starts, that it ends at its delimiter and not before."""
        start, end = child_of(node, "heredoc_start"), child_of(node, "heredoc_end")
        if start is None or end is None:
            self.account.require(False)
            return
        source = self.source
        strips = source[node.start_byte : start.start_byte].rstrip().endswith(b"<<-")
        found = _DELIMITER.fullmatch(source, start.start_byte, start.end_byte)
        line = source.find(b"\n", start.end_byte) + 1
        if found is None or not line or line in self.heredoc_lines:
            self.account.require(False)
            return
        self.heredoc_lines.add(line)
        self.account.require(_is_closed(source[start.end_byte : line]))
        delimiter = next(part for part in found.groups() if part is not None)
        self.account.require(_ends_at(source, line, delimiter, strips) == end.end_byte)
        known = {"heredoc_start", "heredoc_body", "heredoc_end", "file_redirect", "pipeline", "command", "list"}
        for child in node.children:
            if child.is_named and child.type not in known:
                self.account.require(False)
            if child.type == "file_redirect" and self._operands(child):
                self.account.require(False)


def _is_closed(line: bytes) -> bool:
    """Whether the line break behind it is one to every shell, and not inside a quote or a substitution."""
    return line.count(b"(") == line.count(b")") and not any(line.count(quote) % 2 for quote in (b"'", b'"', b"`"))


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
