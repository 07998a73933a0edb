"""One finding per cause: of all that the stages noticed about a broken text, what is worth saying.

In: the findings of the layout and of what was understood, and the failures of the driver. Out: findings.
"""

from collections.abc import Iterator
from dataclasses import replace

from policy_lang import codes
from policy_lang.diagnostics import Diagnostic
from policy_lang.source import Source, Span
from policy_lang.syntax.automaton import automaton
from policy_lang.syntax.driver import Failure
from policy_lang.syntax.failures import MAX_GAP, WORD, explain
from policy_lang.syntax.layout import Layout

PARTS = frozenset({"to", "per", "for", "within", "same", "by", "on", "before"})
"""Words that stand inside a statement: lines that begin with them one below the other are one broken statement."""

_Explained = list[tuple[Failure, Diagnostic]]


def by_cause(
    source: Source, found: Layout, diagnostics: list[Diagnostic], failures: list[Failure]
) -> list[Diagnostic]:  # fmt: skip
    """The findings without those that follow from another."""
    explained = list(_without_rests(source, [(one, explain(source, found, one)) for one in failures]))
    brackets = [one for one in found.diagnostics if one.code in {codes.UNCLOSED, codes.STRAY_BRACKET}]
    cause = _unbalanced(source, found, explained) if brackets else None
    hidden = set[int]()
    if cause is not None:
        hidden = {id(one) for one in brackets}
        explained = [pair for pair in explained if pair[0].at <= cause]
    elif found.unclosed is not None:
        # What a file says last before it is cut off is not its author's last word.
        end = len(source.text.rstrip())
        cut = found.diagnostics[found.unclosed]
        hidden = {id(one) for one in diagnostics if one is not cut and one.span.end >= end}
    kept = [
        _with_brace(diagnostic, found) if failure.at == cause else diagnostic
        for failure, diagnostic in explained
        if failure.at == cause or not _has_trouble(found, failure)
    ]
    kept += [
        one
        for one in diagnostics
        if id(one) not in hidden and not any(one.span.start < failure.at < one.span.end for failure in failures)
    ]
    return kept


def _has_trouble(found: Layout, failure: Failure) -> bool:
    """Whether the layout reported an error in the statement, or the statement lies in brackets that nobody closed."""
    return any(failure.statement.start <= place <= failure.statement.end for place in found.troubled) or any(
        region.start <= failure.at <= region.end for region in found.unclosed_regions
    )


def _with_brace(diagnostic: Diagnostic, found: Layout) -> Diagnostic:
    """A misplaced statement, told with the brace that misplaced it."""
    if diagnostic.code is not codes.MISPLACED_STATEMENT or (diagnostic.help or "").endswith("?"):
        return diagnostic
    amount = "too many" if found.unclosed is None else "missing"
    return replace(diagnostic, help=f"{diagnostic.help}: is a `}}` {amount} above?")


def _without_rests(source: Source, explained: _Explained) -> Iterator[tuple[Failure, Diagnostic]]:
    """Without failures that are but the rest of a statement that was cut off at a line's end, or of its body."""
    machine = automaton()
    before: tuple[Failure, Diagnostic] | None = None
    bodiless = False
    for failure, diagnostic in explained:
        if bodiless and diagnostic.code is codes.MISPLACED_STATEMENT:
            continue
        bodiless = bodiless or (machine.accepts(failure.states, "LBRACE") and source.text.startswith(":", failure.at))
        if before is None or not _is_rest(source, before, (failure, diagnostic)):
            yield failure, diagnostic
        before = failure, diagnostic


def _is_rest(source: Source, before: tuple[Failure, Diagnostic], after: tuple[Failure, Diagnostic]) -> bool:
    """Whether a failure is no statement, and stands right below one that met its line's end, or was but a part as well."""
    (above, said_above), (failure, said) = before, after
    if said.code not in {codes.UNEXPECTED, codes.UNKNOWN_STATEMENT} or failure.statement.start != failure.at:
        return False
    if said.fix is not None and said_above.code is not codes.EMPTY_LIST:
        return False
    parts = all(_word(source, one) in PARTS for one in (above, failure))
    return _goes_on_behind(source, above, failure, begun=not parts)


def _word(source: Source, failure: Failure) -> str:
    found = WORD.match(source.text, failure.statement.start)
    return found[0] if found else ""


def _goes_on_behind(source: Source, before: Failure, failure: Failure, *, begun: bool) -> bool:
    """Whether a failure begins the line below one that met the line's end, or that was no statement either."""
    end = before.statement.end
    cut = before.at == end and source.text[end : end + 1] in {"\n", "\r", "#", ";"}
    return (cut or not begun) and _is_blank(source, end, failure.at)


def _is_blank(source: Source, start: int, end: int) -> bool:
    """Whether nothing stands between two places that are near each other."""
    return end - start < MAX_GAP and not source.text[start:end].strip(" \t\r\n;")


def _swallowed(text: str, span: Span) -> str:
    """What a string that does not end on its line took with it, also on the line below if it was meant to end there."""
    start = text.find("\n", span.end) + 1 or len(text)
    end = text.find("\n", start)
    below = text[start : end if end >= 0 else len(text)]
    tail = below[below.rfind('"') :] if below.count('"') % 2 else ""
    return text[span.start : span.end] + tail


def _unbalanced(source: Source, found: Layout, explained: _Explained) -> int | None:
    """Where a brace too few or too many shows first: at the brace itself, where one is missing, or behind it.

    What comes after it is likely no error of its own.
    """
    machine = automaton()
    for string in found.diagnostics:
        if string.code is codes.UNFINISHED_STRING and not {"{", "}"}.isdisjoint(_swallowed(source.text, string.span)):
            return string.span.start
    for failure, diagnostic in explained:
        at_brace = source.text[failure.at : failure.at + 1] in {"{", "}"}
        wants_brace = machine.accepts(failure.states, "LBRACE")
        if at_brace or wants_brace or diagnostic.code is codes.MISPLACED_STATEMENT:
            return failure.at
    return None
