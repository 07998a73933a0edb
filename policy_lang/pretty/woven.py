"""Comments woven into docs: each is put at the first place behind it where a line may break.

In: the comments of a file, in order, and places of the text as printing reaches them. Out: lines, or notes instead.
"""

import re
from dataclasses import replace

from policy_lang import ast
from policy_lang.pretty.doc import Line, Note, Notes
from policy_lang.syntax.layout import looks_like_statement

_BLANK_LINE = re.compile(r"[ \t\r]*\n[ \t\r]*(?:\n|\Z)")


class Woven:
    """The comments that are still to be written."""

    def __init__(self, file: ast.File) -> None:
        self.text = file.source.text
        self._comments = file.comments
        self._at = 0

    def before(self, place: int) -> list[ast.Comment]:
        """Take the comments that begin before a place."""
        begin = self._at
        while self._at < len(self._comments) and self._comments[self._at].span.start < place:
            self._at += 1
        return list(self._comments[begin : self._at])

    def line(self, place: int, text: str = " ", *, continues: bool = False) -> Line | Notes:
        """A line before what begins at `place`, or the comments that stand there.

        Where it `continues` with a word such as `when`, a comment that looks like a statement is set apart: directly
        above that word it would be taken for one that was commented out.
        """
        found = self.before(place)
        if not found:
            return Line(text)
        notes = [self.note(comment) for comment in found]
        if continues and any(comment.alone and looks_like_statement(comment.text) for comment in found):
            notes[-1] = replace(notes[-1], blank=True)
        return Notes(tuple(notes))

    def note(self, comment: ast.Comment) -> Note:
        """A comment as it is printed."""
        return Note(words(comment), comment.alone, bool(_BLANK_LINE.match(self.text, comment.span.end)))

    def apart(self, before: int, after: int) -> bool:
        """Whether an empty line stands between two places."""
        newline = self.text.find("\n", before, after)
        return newline >= 0 and self.text.find("\n", newline + 1, after) >= 0


def words(comment: ast.Comment) -> str:
    """`# text`."""
    return f"#{comment.text}".rstrip()
