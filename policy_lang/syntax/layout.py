"""The layout of a text: which newlines end a statement, which are free; comments; brackets; forbidden characters.

In: policy text, any. Out: `Layout`: a text of the same places, in which comments and free newlines are blanks, every
newline left ends a statement and every bracket has its partner; the comments; what is wrong.
One pass, linear in the text. Section 1 of the language's description.
"""

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from policy_lang import codes
from policy_lang.ast import Comment
from policy_lang.diagnostics import Diagnostic, Edit, Fix, Label
from policy_lang.source import Source, Span
from policy_lang.syntax.automaton import automaton
from policy_lang.syntax.characters import odd_characters, odd_names, without_odd

MAX_TEXT: Final = 16_000_000
"""Characters in one file."""

MAX_NESTING: Final = 100
"""Brackets and `not`s inside one another."""

MAX_FINDINGS: Final = 60
"""Findings about brackets, strings and characters after which the rest of a text is not read."""

CONTINUATION_WORDS: Final = ("when", "unless", "unclear", "because", "except", "with", "and", "or")
"""A line that begins with one of them continues the statement above."""

_CONNECTIVES: Final = frozenset({"and", "or", "not"})
_OPERATORS: Final = _CONNECTIVES | frozenset({
    "in", "like", "matches", "contains", "under", "glob", "in_domain", "in_net", "only", "any",
})  # fmt: skip

_BEFORE_NAMES: Final = frozenset({
    "allow", "ask", "deny", "auto_approve", "only", "on", "to", "before", "require", "except", "use", "connect", "skills",
    "read", "write", "marked", "as", "skill", "narrows", "of", "label", "scope",
})  # fmt: skip
"""Behind one of them `and`, `or` and `not` at a line's end are names."""

# Every event is preceded by what has no meaning here: finished strings and whatever else; `\Z` ends the search.
_EVENT = re.compile(
    r"""(?:[^"\#\n(){}\[\]r]++|(?<![\w\-])r"[^"\n]*+"|r(?!")|(?<=[\w\-])r|"(?:[^"\\\n]|\\.)*+")*+"""
    r"""(?P<event>[(){}\[\]]|r?"[^\n]*+|\#[^\n]*+(?:\n[ \t\r]*+(?:\#[^\n]*+)?+)*+|(?:\n[ \t\r]*+(?:\#[^\n]*+)?+)++|\Z)"""
)
_CONTINUES = re.compile(rf"(?:{'|'.join(CONTINUATION_WORDS)})(?![\w*/\-])")
_COMMENT = re.compile(r"#([^\n\r]*+)")
_LAST_WORD = re.compile(r"[a-z_]+\Z")
_AFTER_LEFT = re.compile(
    r"""(?:^|[\s(])(?:(?:args|session|tool|agent)(?:\.(?:[\w\-]++|"[^"\n]*+"))++|(?:paths|urls)(?:\.[\w\-]++)*+)\s++"""
    r"""(?:(?:not\s++)?in|like|matches|contains|under|glob|in_domain|in_net|runs\s++(?:only|any))\Z"""
)
_KIND_END = re.compile(r"list\s*+<[\w\s<>]*+\Z")
_FIRST_WORD = re.compile(r"[ \t]*+([a-z_]++)(?![\w\-])")

_PARTNER: Final = {"(": ")", "[": "]", "{": "}", "o": "}"}
_TAIL: Final = 400
"""How much of a line's end is looked at to see whether its last word is an operator."""


@dataclass(slots=True)
class Layout:
    """`flat` has the places of the text, then the closers that it lacks and one newline.

    `troubled`: where errors are. `unclosed`: which finding is about the end of the text. `unclosed_regions`: where
    newlines were free because a bracket was never closed. `given_up`: nothing of the text was read.
    """

    flat: str
    comments: tuple[Comment, ...]
    diagnostics: list[Diagnostic]
    troubled: list[int]
    unclosed: int | None
    unclosed_regions: list[Span] = field(default_factory=list[Span])
    given_up: bool = False


def looks_like_statement(comment: str) -> bool:
    """Whether a comment, without its `#`, begins with a word that a statement begins with."""
    word = _FIRST_WORD.match(comment)
    return word is not None and word[1] in automaton().beginnings("declarations", "statements", "steps")


def layout(source: Source) -> Layout:
    """Read the layout of a text."""
    text = source.text
    if len(text) > MAX_TEXT:
        message = f"the file has {len(text)} characters, at most {MAX_TEXT} are read"
        return Layout("\n", (), [Diagnostic(codes.TOO_LARGE, message, source, Span(0, 0))], [0], None, given_up=True)
    reader = _Reader(source, text)
    reader.diagnostics.extend(odd_characters(source))
    if reader.diagnostics:
        reader.text = without_odd(text)
    if not text.isascii():
        reader.diagnostics.extend(odd_names(source, reader.text))
    reader.read()
    reader.troubled.extend(found.span.start for found in reader.diagnostics)
    flat = "".join(reader.pieces)
    return Layout(
        flat, tuple(reader.comments), reader.diagnostics, sorted(reader.troubled), reader.unclosed, reader.regions,
        reader.given_up,
    )  # fmt: skip


class _Open(NamedTuple):
    """An open bracket: `o` is the `{` of an object literal; `piece` is where it lies in the flat text's pieces."""

    kind: str
    start: int
    piece: int


@dataclass(slots=True)
class _Reader:
    source: Source
    text: str
    pieces: list[str] = field(default_factory=list[str])
    comments: list[Comment] = field(default_factory=list[Comment])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    troubled: list[int] = field(default_factory=list[int])
    regions: list[Span] = field(default_factory=list[Span])
    open: list[_Open] = field(default_factory=list[_Open])
    unclosed: int | None = None
    unfinished: int | None = None
    given_up: bool = False

    def read(self) -> None:
        text = self.text
        at = 0
        for event in _EVENT.finditer(text):
            start, end = event.span("event")
            self.pieces.append(text[at:start])
            if start == len(text):
                break
            self.pieces.append(self.replacement(text[start], start, end))
            at = end
            if len(self.open) > MAX_NESTING:
                self.too_deep(start)
            if len(self.open) > MAX_NESTING or len(self.diagnostics) > MAX_FINDINGS:
                self.give_up()
                break
        self.close_all()

    def replacement(self, first: str, start: int, end: int) -> str:
        """What stands in the flat text for an event: as many characters."""
        if first in "([{":
            inside = bool(self.open) and self.open[-1].kind != "{"
            self.open.append(_Open("o" if inside and first == "{" else first, start, len(self.pieces)))
            return first
        if first in ")]}":
            return self.close(first, start)
        if first in 'r"':
            self.unfinished_string(start, end)
            return " " * (end - start)
        return self.line_end(start, end)

    # --- newlines and comments ---

    def line_end(self, start: int, end: int) -> str:
        text = self.text
        run = text[start:end]
        blank = " " * (end - start)
        if "#" in run:
            for found in _COMMENT.finditer(run):
                where = start + found.start()
                line = text.rfind("\n", 0, where) + 1
                alone = not text[line:where].strip(" \t")
                self.comments.append(Comment(found[1], alone, Span(where, start + found.end())))
        if "\n" not in run or (self.open and self.open[-1].kind != "{"):
            return blank
        if _CONTINUES.match(text, end):
            if "#" in run:
                self.commented_head(run, end)
            return blank
        return blank if self.goes_on(start) else "\n" + blank[1:]

    def goes_on(self, end: int) -> bool:
        """Whether the line that ends at `end` does so in `,` `=` `=>` `:` or an operator."""
        text = self.text
        last = end - 1
        while last >= 0 and text[last] in " \t\r":
            last -= 1
        if last < 0:
            return False
        mark = text[last]
        if mark in ",=:<":
            return True
        if mark == ">":
            return not _KIND_END.search(text[max(0, last - _TAIL) : last + 1])
        if not mark.isalpha():
            return False
        word = _LAST_WORD.search(text[max(0, last - 10) : last + 1])
        if word is None or word[0] not in _OPERATORS or text[last - len(word[0])] not in " \t\r\n()]":
            return False
        line = text[max(text.rfind("\n", 0, last) + 1, last - _TAIL) : last + 1]
        if word[0] not in _CONNECTIVES:
            return bool(_AFTER_LEFT.search(line))
        before = line[: -len(word[0])].rstrip()
        named = _LAST_WORD.search(before)
        return not before.endswith(",") and (named is None or named[0] not in _BEFORE_NAMES)

    def commented_head(self, run: str, at: int) -> None:
        """A continuation directly below a comment that was a statement would join the statement above that one."""
        for line in reversed(run.split("\n")[1:-1]):
            content = line.strip()
            if not content.startswith("#"):
                return
            if looks_like_statement(content[1:]):
                break
            if not _CONTINUES.match(content[1:].lstrip()):
                return
        else:
            return
        found = _CONTINUES.match(self.text, at)
        assert found is not None
        message = f"`{found[0]}` continues the statement above a comment that looks like a statement"
        help_ = "comment this line out as well, or put the comment elsewhere"
        fix = Fix((Edit(self.source, Span(at, at), "# "),), safe=False)
        self.report(codes.COMMENTED_HEAD, message, Span(*found.span()), help_, fix)

    # --- brackets and strings ---

    def close(self, closer: str, at: int) -> str:
        pair = "{" if closer == "}" else "(" if closer == ")" else "["
        place = len(self.open) - 1
        while place >= 0 and _PARTNER[self.open[place].kind] != closer:
            if closer != "}" and self.open[place].kind == "{":
                place = -1
                break
            place -= 1
        if place < 0 or (closer == "}" and self.is_slip(at)):
            fix = Fix((Edit(self.source, Span(at, at + 1), ""),), safe=False)
            self.report(codes.STRAY_BRACKET, f"`{closer}` has no `{pair}`", Span(at, at + 1), "remove it", fix)
            return " "
        between = self.open[place + 1 :]
        if between:
            self.never_closed(between, at)
        del self.open[place:]
        return closer

    def is_slip(self, at: int) -> bool:
        """Whether a `}` stands inside brackets that are opened and closed on its line: it closes no block."""
        kind, start, _ = self.open[-1]
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        return kind in "([" and "\n" not in self.text[start:at] and _PARTNER[kind] in self.text[at:end]

    def never_closed(self, opened: list[_Open], at: int) -> None:
        """Report the first of them, which likely is the cause, and take all out of the flat text."""
        for one in opened:
            self.pieces[one.piece] = " "
        kind, start, _ = opened[0]
        mark = "{" if kind == "o" else kind
        label = Label(self.source, Span(at, min(at + 1, len(self.text))), "still open here")
        help_ = f"close it with `{_PARTNER[kind]}`"
        found = Diagnostic(
            codes.UNCLOSED, f"`{mark}` is never closed", self.source, Span(start, start + 1), (label,), help_
        )
        self.diagnostics.append(found)
        self.troubled.append(at)
        self.regions.append(Span(start, at))

    def close_all(self) -> None:
        length = len(self.text)
        place = next((n for n, one in enumerate(self.open) if one.kind != "{"), len(self.open))
        if self.open:
            self.unclosed = len(self.diagnostics)
        if self.open[place:]:
            self.never_closed(self.open[place:], length)
        elif self.open:
            self.cut_off(self.open[-1].start)
        if self.open:
            self.troubled.append(length)
            self.pieces.append("}" * place)
        self.pieces.append("\n")

    def cut_off(self, start: int) -> None:
        text = self.text
        end = len(text.rstrip())
        label = Label(self.source, Span(start, start + 1), "this block is never closed")
        found = Diagnostic(
            codes.UNCLOSED, "the file ends inside a block", self.source, Span(max(end - 1, 0), end), (label,),
            "close it with `}`",
        )  # fmt: skip
        self.diagnostics.append(found)

    def unfinished_string(self, start: int, end: int) -> None:
        """What was opened on this line can hardly be closed after it: it is taken out with the string."""
        text = self.text
        line = text.rfind("\n", 0, start) + 1
        while self.open and self.open[-1].kind != "{" and self.open[-1].start >= line:
            opened = self.open.pop()
            self.pieces[opened.piece] = " "
            self.troubled.append(opened.start)
        self.troubled.append(start)
        # The end of a string that was meant to span two lines looks like another that does not end.
        goes_on = line > 0 and line - 1 == self.unfinished
        self.unfinished = None if goes_on else end
        if not goes_on:
            span = Span(start, start + len(text[start:end].rstrip()))
            self.report(codes.UNFINISHED_STRING, "the string does not end on its line", span, 'close it with `"`')

    def too_deep(self, at: int) -> None:
        message = f"nested deeper than {MAX_NESTING}"
        self.report(codes.TOO_DEEP, message, Span(at, at + 1), "nothing after this place was read")

    def give_up(self) -> None:
        """Read nothing of a text that is hopeless; what was found stands."""
        self.given_up = True
        self.open.clear()
        self.pieces.clear()

    def report(self, code: codes.Code, message: str, span: Span, help_: str, fix: Fix | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, self.source, span, (), help_, fix))
