"""Names, references and values as text.

In: leaves of the tree. Out: text that reads as the same leaf.
"""

import json
import re

from policy_lang import ast
from policy_lang.syntax.characters import is_odd

_NAME = re.compile(r"[^\W\d][\w\-]*")
_PLAIN = re.compile(r"[ !#-\[\]-~]*")
_ODD_CODES = re.compile(r"[^\x20-\x7e]")


def quoted(text: str) -> str:
    """A string in quotes: JSON's escapes where needed, and for every character that cannot be seen."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    plain = json.dumps(text, ensure_ascii=False)
    return _ODD_CODES.sub(lambda found: _escape(found[0]), plain)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if character == "\x7f" or is_odd(character) or character == "\t" else character


def string(one: ast.String) -> str:
    """A string as written, raw where it was raw and can be."""
    if one.raw and '"' not in one.value and "\n" not in one.value and not any(map(is_odd, one.value)):
        return f'r"{one.value}"'
    return quoted(one.value)


def key(text: str, *, in_quotes: bool = False) -> str:
    """An argument's or parameter's name; in quotes where it is no name."""
    return text if not in_quotes and _NAME.fullmatch(text) else quoted(text)


def pattern(one: ast.Pattern) -> str:
    """A tool's or server's name, or a pattern."""
    return quoted(one.text) if one.quoted else one.text


def tool(one: ast.ToolItem) -> str:
    """A tool reference, a group, or `any`."""
    match one:
        case ast.ToolRef():
            return pattern(one.name) if one.server is None else f"{pattern(one.server)}/{pattern(one.name)}"
        case ast.GroupRef():
            return f"@{one.name}"
        case ast.AnyTool():
            return "any"


def operand(one: ast.Operand) -> str:
    """`args.a."odd b".c`."""
    return ".".join([one.root, *map(key, one.path)])


def scalar(one: ast.Literal_ | ast.LetRef | ast.Operand) -> str:
    """A literal that is no list and no object, or what stands for one."""
    match one:
        case ast.String():
            return string(one)
        case ast.Number():
            return one.text
        case ast.Boolean():
            return "true" if one.value else "false"
        case ast.Null():
            return "null"
        case ast.LetRef():
            return one.name
        case ast.Operand():
            return operand(one)


def kind(one: ast.Kind) -> str:
    """`list<string>`."""
    inner, closers = one, ""
    text = ""
    while inner.item is not None:
        text, closers, inner = f"{text}{inner.name}<", closers + ">", inner.item
    return f"{text}{inner.name}{closers}"
