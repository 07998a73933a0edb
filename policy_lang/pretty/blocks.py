"""How statements are put under one another: blocks, the comments between statements, empty lines, columns.

In: what is to stand in a block, in order, and what makes a doc of each. Out: the block's doc.
A block stays on one line if it was written on one, holds no comment and fits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final, TypeVar

from policy_lang.pretty.doc import WIDTH, Behind, Doc, Line, Nest, flat, group
from policy_lang.pretty.pieces import Pieces
from policy_lang.pretty.woven import words
from policy_lang.source import Span

_Any = TypeVar("_Any")
MAX_COLUMN: Final = 72
"""What stands further right is not lined up."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A statement in two parts, the second of which is lined up with its neighbours'."""

    left: str
    right: Doc


@dataclass(frozen=True, slots=True)
class Item:
    """One statement to come: where it stands, and what makes its doc when the comments before it are taken."""

    span: Span
    show: Callable[[], Doc | Columns]


@dataclass(frozen=True, slots=True)
class Row:
    """One statement or comment. `note`: a comment behind it; `blank`: an empty line stands before it."""

    shown: Doc | Columns
    blank: bool
    note: str = ""
    comment: bool = False


class Blocks(Pieces):
    """Makes docs of blocks."""

    def rows(self, items: Sequence[Item], begin: int, end: int) -> tuple[str, list[Row]]:
        """What stands between two places: the comment behind `begin`, and a row for every statement and comment."""
        rows: list[Row] = []
        note = ""
        last = begin
        for item in (*items, None):
            place = end if item is None else item.span.start
            for comment in self.woven.before(place):
                if not comment.alone and not rows and not note:
                    note = words(comment)
                elif not comment.alone and rows and not rows[-1].note and not rows[-1].comment:
                    rows[-1] = replace(rows[-1], note=words(comment))
                else:
                    blank = bool(rows) and self.woven.apart(last, comment.span.start)
                    rows.append(Row(words(comment), blank, comment=True))
                last = comment.span.end
            if item is not None:
                blank = bool(rows) and self.woven.apart(last, place)
                rows.append(Row(item.show(), blank))
                last = item.span.end
        return note, rows

    def block(self, head: str, items: Sequence[Item], span: Span, between: str, *, spaced: bool = True) -> Doc:
        """`head { … }`; on one line, `between` stands between the items. Not `spaced`: empty lines go."""
        note, rows = self.rows(items, span.start, span.end)
        if not rows and not note:
            return f"{head} {{}}"
        forced = bool(note) or any(row.note or row.comment for row in rows) or self._was_broken(span)
        opened = f"{head} {{  {note}" if note else f"{head} {{"

        def laid_out(forced: bool) -> Doc:
            parts: list[Doc] = []
            for number, (row, doc) in enumerate(zip(rows, in_columns(rows, aligned=forced), strict=True)):
                parts += [Line(between if number else " ", spaced and row.blank), doc]
            return group([opened, Nest(tuple(parts)), Line(), "}"], forced=forced)

        if not forced and any(isinstance(row.shown, Columns) for row in rows):  # of a test: at the margin
            one_line = flat(laid_out(forced=False))
            forced = one_line is None or len(one_line) > WIDTH
        return laid_out(forced)

    def settings(self, head: str, rows: Sequence[tuple[int, str]], span: Span, between: str) -> Doc:
        """A block of items that are plain text; the places of some are only roughly known."""
        items = [Item(Span(place, place), partial(str, text)) for place, text in rows]
        return self.block(head, items, span, between, spaced=False)

    def _was_broken(self, span: Span) -> bool:
        opened = self.woven.text.find("{", span.start, span.end)
        return opened >= 0 and self.woven.text.find("\n", opened, span.end) >= 0


def in_columns(rows: Sequence[Row], *, aligned: bool = True) -> list[Doc]:
    """The docs of rows; second parts and comments of rows that follow one another are lined up."""
    docs: list[Doc] = []
    for run in _runs(rows, lambda row: isinstance(row.shown, Columns), lambda row: row.blank):
        lefts = [len(row.shown.left) for row in run if isinstance(row.shown, Columns)]
        column = max((left for left in lefts if left <= MAX_COLUMN), default=0) if aligned else 0
        docs += [_shown(row, column) for row in run]
    pairs = list(zip(rows, docs, strict=True))
    done: list[Doc] = []
    for noted in _runs(pairs, lambda pair: bool(pair[0].note), lambda pair: pair[0].blank):
        texts = [flat(doc) or "" for _, doc in noted]
        column = max((len(text) for text in texts if len(text) <= MAX_COLUMN), default=0)
        done += [_with_note(row, doc, column - len(text)) for (row, doc), text in zip(noted, texts, strict=True)]
    return done


def _shown(row: Row, column: int) -> Doc:
    if isinstance(row.shown, Columns):
        return group([row.shown.left.ljust(column), " ", row.shown.right])
    return row.shown


def _with_note(row: Row, doc: Doc, missing: int) -> Doc:
    return group([doc, Behind(f"{' ' * max(missing, 0)}  {row.note}")]) if row.note else doc


def _runs(items: Sequence[_Any], joins: Callable[[_Any], bool], apart: Callable[[_Any], bool]) -> list[Sequence[_Any]]:
    """Neighbours that all join, without an empty line between them; each other item alone."""
    begins = [
        place
        for place, item in enumerate(items)
        if not (place and joins(item) and joins(items[place - 1]) and not apart(item))
    ]
    return [items[begin:end] for begin, end in pairwise([*begins, len(items)])]
