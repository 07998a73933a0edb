"""Programs of sed and awk: whether one surely starts no command and writes no file.

In: the text of a program. Out: `Quiet`. Both languages are read in the part that people write every day; whatever
is not understood is not quiet. Source: the GNU sed and gawk manuals.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .shell_lexer import Word

MAX_PROGRAM: Final = 4096
"""Characters of a sed or awk program that are read; a longer one is not quiet."""


class Quiet(NamedTuple):
    """What a program surely does not do."""

    starts: bool
    """It starts no command."""
    writes: bool
    """It writes no file."""


UNREAD: Final = Quiet(False, False)

_REGEX_PART = r"(?:[^\\\n/\[]|\\[^\n])"
_ADDRESS = rf"(?:[0-9]+(?:~[0-9]+)?|\$|/{_REGEX_PART}*+/[IM]*)"
_SED_ADDRESSES = re.compile(rf"[ \t;\n}}]*+(?:{_ADDRESS}(?:[ \t]*,[ \t]*(?:[+~][0-9]+|{_ADDRESS}))?)?[ \t]*!*[ \t]*")
_SED_SIMPLE = re.compile(r"[=dDgGhHnNpPxzF{}][ \t]*(?=[;}\n]|\Z)|[lqQ][ \t]*[0-9]*[ \t]*(?=[;}\n]|\Z)")
_SED_LABEL = re.compile(r"[:btT][ \t]*[A-Za-z0-9_]*[ \t]*(?=[;}\n]|\Z)")
_SED_TEXT = re.compile(r"[aic][ \t]*+(?!\\)[^\\\n]*+(?=\n|\Z)")
_SED_WRITE = re.compile(r"[rRwW][ \t]+[^\n]+(?=\n|\Z)")
_SED_FLAGS = re.compile(r"[gpiImM0-9]*[ \t]*(?=[;}\n]|\Z)")
_SED_FLAGS_WRITE = re.compile(r"[gpiImM0-9]*w[ \t]*[^\n]+(?=\n|\Z)")


def sed_is_quiet(program: str) -> Quiet:
    """Read a sed program command by command; the first that is not understood ends the reading."""
    if len(program) > MAX_PROGRAM:
        return UNREAD
    position, writes = 0, False
    while True:
        addresses = _SED_ADDRESSES.match(program, position)
        position = addresses.end() if addresses else position
        if position >= len(program):
            return Quiet(True, not writes)
        step = _sed_command(program, position)
        if step is None:
            return UNREAD
        position, wrote = step
        writes = writes or wrote


def _sed_command(program: str, position: int) -> tuple[int, bool] | None:
    """The end of the command at `position` and whether it writes a file."""
    if program[position] in "sy":
        return _sed_substitution(program, position)
    if program[position] == "{":
        return position + 1, False
    for shape in (_SED_SIMPLE, _SED_LABEL, _SED_TEXT):
        found = shape.match(program, position)
        if found:
            return found.end(), False
    written = _SED_WRITE.match(program, position)
    return (written.end(), program[position] in "wW") if written else None


def _sed_substitution(program: str, position: int) -> tuple[int, bool] | None:
    if position + 1 >= len(program):
        return None
    delimiter = program[position + 1]
    if delimiter in "\\\n ;" or delimiter.isalnum() or not delimiter.isascii():
        return None
    end = position + 2
    for _ in range(2):
        after = _sed_part(program, end, delimiter)
        if after is None:
            return None
        end = after
    flags = _SED_FLAGS.match(program, end)
    if flags:
        return flags.end(), False
    written = _SED_FLAGS_WRITE.match(program, end) if program[position] == "s" else None
    return (written.end(), True) if written else None


def _sed_part(program: str, position: int, delimiter: str) -> int | None:
    """The place after the delimiter that ends a part; a bracket that could hide a delimiter is not read."""
    while position < len(program):
        letter = program[position]
        if letter == "\\":
            position += 2
        elif letter == delimiter:
            return position + 1
        elif letter == "\n":
            return None
        elif letter == "[":
            close = program.find("]", position + 2)
            if close < 0 or delimiter in program[position:close]:
                return None
            position += 1
        else:
            position += 1
    return None


_AWK_STARTS = re.compile(r"system|getline|[|@]|\\\n")


def awk_is_quiet(program: str) -> Quiet:
    """No call of `system`, no pipe, no `getline`, no indirect call or `@load`, not even inside a string or regex."""
    if len(program) > MAX_PROGRAM or _AWK_STARTS.search(program.replace("||", "")):
        return UNREAD
    return Quiet(True, ">" not in program)


def sed_programs(words: Sequence[Word]) -> list[str | None]:
    """The programs among the words of a sed command; `None` for one that is not known or comes from the input."""
    return _programs(words, code="e", file="f", takes="l", ends="i", long_code="--expression")


def awk_programs(words: Sequence[Word]) -> list[str | None]:
    """The programs among the words of an awk command; libraries count as unknown."""
    unknown = [None for word in words[1:] if word.head.startswith(("-i", "-l", "-E", "--include", "--load", "--exec"))]
    return unknown + _programs(words, code="e", file="f", takes="Fv", ends="", long_code="--source")


def _programs(
    words: Sequence[Word], *, code: str, file: str, takes: str, ends: str, long_code: str
) -> list[str | None]:
    programs: list[str | None] = []
    operands: list[Word] = []
    given = False
    rest = iter(words[1:])
    for word in rest:
        head = word.head
        if word.text == "--" and not operands:
            operands.extend(rest)
        elif head.startswith("--"):
            given = given or head.startswith((long_code[:4], "--fi"))
            programs += [_after(word, "=", rest)] if head.startswith(long_code[:4]) else []
        elif head.startswith("-") and len(head) > 1:
            letter = next((letter for letter in head[1:] if letter in code + file + takes + ends), "")
            operand = None if not letter or letter in ends else _after(word, letter, rest)
            given = given or letter in (code, file)
            programs += [operand] if letter == code else []
            programs += [None] if letter == file and (operand is None or operand.startswith(("-", "/dev/"))) else []
        else:
            operands.append(word)
    return programs if given or not operands else [*programs, operands[0].text]


def _after(word: Word, mark: str, rest: Iterator[Word]) -> str | None:
    """The operand of an option: what follows its mark in the word, else the next word."""
    if word.text is None:
        return None
    attached = word.text.partition(mark)[2]
    if attached:
        return attached
    following = next(rest, None)
    return None if following is None else following.text
