"""The canonical layout of a policy file.

In: a parsed file, or a source. Out: its text: four spaces, a statement a line as ordered by the author, one empty line
at most, every comment. What is printed is read again and compared with what was read: the formatter gives no text
that means something else, or that lacks a comment.
"""

from dataclasses import fields, is_dataclass
from typing import cast

from policy_lang import ast, codes
from policy_lang.diagnostics import Diagnostic, has_errors
from policy_lang.parse import parse
from policy_lang.pretty.files import Files
from policy_lang.pretty.woven import Woven
from policy_lang.source import Source, Span


def format_file(file: ast.File) -> str:
    """The text of a file that was read without an error, or built. Not read again: `format_source` does."""
    return Files(Woven(file)).text(file)


def format_source(source: Source) -> tuple[str | None, tuple[Diagnostic, ...]]:
    """The text in canonical layout, or None and the errors that forbid it."""
    file, found = parse(source)
    if has_errors(found):
        return None, found
    text = format_file(file)
    again, trouble = parse(Source(source.name, text))
    if has_errors(trouble) or not is_same(file, again):
        message = "the file was read, but its canonical layout would mean something else"
        help_ = "the file was left as it is; this is a fault of the formatter, please report it"
        return None, (Diagnostic(codes.FORMAT_FAILED, message, source, Span(0, 0), help=help_),)
    return text, found


def is_same(one: ast.File, other: ast.File) -> bool:
    """Whether two files say the same in the same order, with the same comments; places and layout aside."""
    notes = [[comment.text.rstrip() for comment in file.comments] for file in (one, other)]
    return notes[0] == notes[1] and _equal(one.declarations, other.declarations)


def _equal(one: object, other: object) -> bool:
    """Whether two trees are equal but for their spans. No recursion: trees may be deep."""
    stack = [(one, other)]
    while stack:
        left, right = stack.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, Span):
            continue
        if isinstance(left, tuple):
            lefts, rights = cast("tuple[object, ...]", left), cast("tuple[object, ...]", right)
            if len(lefts) != len(rights):
                return False
            stack.extend(zip(lefts, rights, strict=True))
        elif is_dataclass(left) and not isinstance(left, type):
            stack.extend((getattr(left, field.name), getattr(right, field.name)) for field in fields(left))
        elif left != right:
            return False
    return True
