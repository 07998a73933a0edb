"""The shell parser: tree-sitter-bash, loaded when a text first needs it.

In: the UTF-8 bytes of a text. Out: its syntax tree, or `None`; and whether the parser reads a text of the closed
subset as the lexer does.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .shell_lexer import SHORT, Script, Span

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

_CHUNK: Final = 16 * 1024
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


def parse(source: bytes) -> "Tree | None":
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


def agrees(text: str, script: Script) -> bool:
    """Whether the parser sees in a text of the closed subset the very commands, words and redirections of the lexer."""
    tree = parse(text.encode())
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
