"""Read one policy text: `parse(Source) -> (File, diagnostics)`.

In: any text. Out: what was written, and what is wrong with it by itself. With an error among the diagnostics the file
holds what could be read, for further reporting only. Nothing here needs another file, a catalogue or a name's meaning.
"""

from typing import Final

from policy_lang import ast, codes
from policy_lang.collector import collector_paused
from policy_lang.diagnostics import Diagnostic, Edit, Fix, Label, in_order
from policy_lang.source import Source, Span
from policy_lang.syntax.causes import by_cause
from policy_lang.syntax.declarations import Declarations
from policy_lang.syntax.driver import Driver, Failure
from policy_lang.syntax.failures import WORD, is_near
from policy_lang.syntax.layout import layout
from policy_lang.syntax.tokens import MAX_FINDINGS

EDITION: Final = 1
_VAGUE: Final = (codes.UNEXPECTED, codes.UNKNOWN_STATEMENT)
"""Not said of the first statement of a text that likely is no policy at all."""


def parse(source: Source) -> tuple[ast.File, tuple[Diagnostic, ...]]:
    """The file, and findings in order. Total: no text raises; linear in the text."""
    found = layout(source)
    make = Declarations(source)
    driver = Driver(found.flat, make)
    with collector_paused():
        declarations: tuple[ast.Declaration, ...] = tuple(driver.run())
    diagnostics = [*found.diagnostics, *make.diagnostics]
    half = "half a character (a lone surrogate)"
    diagnostics += [Diagnostic(codes.BAD_ESCAPE, half, source, span) for span in make.surrogates[:MAX_FINDINGS]]
    no_edition = [] if found.given_up else _edition(source, declarations, driver.failures)
    if found.diagnostics or driver.failures:
        diagnostics = by_cause(source, found, diagnostics, driver.failures)
        first = driver.failures[0].at if driver.failures and no_edition else None
        diagnostics = [one for one in diagnostics if one.span.start != first or one.fix or one.code not in _VAGUE]
    return ast.File(source, declarations, found.comments), in_order([*diagnostics, *no_edition])


def _edition(source: Source, declarations: tuple[ast.Declaration, ...], failures: list[Failure]) -> list[Diagnostic]:
    """The first statement of every file is `zcpolicy 1`, and no other is."""
    editions = [one for one in declarations if isinstance(one, ast.Edition)]
    begins = [one.span.start for one in declarations[:1]] + [failure.statement.start for failure in failures[:1]]
    begin = min(begins, default=0)
    diagnostics: list[Diagnostic] = []
    if editions and editions[0].span.start == begin:
        diagnostics.extend(_unknown_edition(source, editions[0]))
    elif not _begins_with_edition(source, begin):
        fix = Fix((Edit(source, Span(begin, begin), f"zcpolicy {EDITION}\n"),), safe=True)
        message = f"the first statement of a file is `zcpolicy {EDITION}`"
        help_ = f"write `zcpolicy {EDITION}` above it"
        labels: tuple[Label, ...] = ()
        if editions:  # written below: one finding, which shows both places
            fix = Fix((*fix.edits, Edit(source, editions[0].span, "")), safe=True)
            labels, help_ = (
                (Label(source, editions[0].span, "it stands here"),),
                f"move `zcpolicy {EDITION}` to the top",
            )
            editions = editions[1:]
        found = Diagnostic(codes.NO_EDITION, message, source, _first_word(source, begin), labels, help_, fix)
        diagnostics.append(found)
    for one in editions:
        if one.span.start != begin:
            message = "the edition stands once, as the first statement"
            diagnostics.append(Diagnostic(codes.REPEATED_EDITION, message, source, one.span, (), "remove it"))
    return diagnostics


def _unknown_edition(source: Source, edition: ast.Edition) -> list[Diagnostic]:
    if edition.number.text == str(EDITION):
        return []
    message = f"there is no edition `{edition.number.text}` that this version reads"
    fix = Fix((Edit(source, edition.number.span, str(EDITION)),), safe=False)
    help_ = f"write `zcpolicy {EDITION}`"
    return [Diagnostic(codes.UNKNOWN_EDITION, message, source, edition.number.span, (), help_, fix)]


def _first_word(source: Source, begin: int) -> Span:
    found = WORD.match(source.text, begin)
    return Span(begin, found.end() if found else min(begin + 1, len(source.text)))


def _begins_with_edition(source: Source, begin: int) -> bool:
    """Whether the first statement is an edition that went wrong, which has its own finding."""
    span = _first_word(source, begin)
    return is_near(source.at(span), "zcpolicy")
