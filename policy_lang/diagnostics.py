"""Diagnostics: values that stages make, and the one exception that carries them over the edge.

In: places in text, codes, words. Out: `Diagnostic`s, sorted; `PolicyError` at the edge. `render` draws them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from policy_lang.codes import Code
from policy_lang.source import Source, Span


@dataclass(frozen=True, slots=True)
class Label:
    """A further place that belongs to a finding, and what to say of it (`first declared here`)."""

    source: Source
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters of `span` by `text`; an empty span inserts."""

    source: Source
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that mend the finding; `check --fix` applies only `safe` ones.

    INVARIANT: a safe fix guesses nothing and throws away nothing that somebody may have forgotten to use. What compiles decides
    the same without it, what does not compile has no more errors and permits nothing through it.
    """

    edits: tuple[Edit, ...]
    safe: bool


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: one cause, one primary place.

    `message` is lower case, without a full stop, the user's text in backticks. `help` says what to write instead.
    `witness` is a call in the language's own notation that shows a logic finding, confirmed by the evaluator.
    """

    code: Code
    message: str
    source: Source
    span: Span
    labels: tuple[Label, ...] = ()
    help: str | None = None
    fix: Fix | None = None
    witness: str | None = None

    @property
    def severity(self) -> Literal["error", "warning"]:
        """As the code declares it."""
        return self.code.severity


def in_order(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Without repetitions, by file, place, code and message."""
    unique = {(d.source.name, d.span, d.code.id, d.message): d for d in found}
    return tuple(unique[key] for key in sorted(unique))


def has_errors(found: Iterable[Diagnostic]) -> bool:
    """Whether any of them is an error: then there is no policy."""
    return any(d.severity == "error" for d in found)


class PolicyError(Exception):
    """A policy did not compile. `diagnostics` says why; the text is the plain rendering's first lines."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        first = next((d for d in diagnostics if d.severity == "error"), diagnostics[0])
        where = first.source.position(first.span.start)
        more = sum(d.severity == "error" for d in diagnostics) - 1
        tail = f" (and {more} more)" if more > 0 else ""
        super().__init__(f"{first.source.name}:{where.line}:{where.column}: {first.code.id}: {first.message}{tail}")
