"""Silencing a warning on one statement: `# zcpolicy: allow ZC3102 reason`.

In: findings and the files that they are about. Out: the findings that nobody silenced, and a finding for every such
comment that silences nothing it may. The comment stands at the end of the statement's line, or alone above it.
Errors cannot be silenced.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from policy_lang import ast, codes
from policy_lang.diagnostics import Diagnostic
from policy_lang.gather import Gathered
from policy_lang.source import Source, Span

_COMMENT = re.compile(r"\s*zcpolicy:\s*(?:allow\s+(?P<code>ZC\d+)\s+(?P<reason>\S.*))?")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment: the code that it silences, in which statement's characters; `refused` if that is an error."""

    code: str
    statement: Span
    refused: Diagnostic | None = None


def unsuppressed(found: Iterable[Diagnostic], gathered: Gathered) -> Iterator[Diagnostic]:
    """The findings without the silenced warnings, then findings about the comments themselves."""
    found = tuple(found)
    about: list[Diagnostic] = []
    silenced: dict[tuple[str, str], Covered] = {}
    for loaded in gathered.files:
        for one in sorted(_read(loaded.file, about), key=lambda one: one.statement):
            if one.refused is None:
                silenced.setdefault((loaded.source.name, one.code), Covered()).add(one.statement)
            elif not any(_is_meant(one, finding, loaded.source) for finding in found):
                about.append(one.refused)
    for finding in found:
        covered = silenced.get((finding.source.name, finding.code.id))
        if finding.severity == "error" or covered is None or not covered.holds(finding.span):
            yield finding
    yield from about


@dataclass(slots=True)
class Covered:
    """Spans added in ascending order: `ends` holds the furthest end so far, so that a look-up is one bisection."""

    starts: list[int] = field(default_factory=list[int])
    ends: list[int] = field(default_factory=list[int])

    def add(self, span: Span) -> None:
        """Add a span that begins no earlier than the last."""
        self.starts.append(span.start)
        self.ends.append(max(span.end, self.ends[-1] if self.ends else 0))

    def holds(self, span: Span) -> bool:
        """Whether one of the spans holds this one."""
        before = bisect_right(self.starts, span.start)
        return before > 0 and self.ends[before - 1] >= span.end


def _read(file: ast.File, about: list[Diagnostic]) -> Iterator[Suppression]:
    wanted = [(comment, match) for comment in file.comments if (match := _COMMENT.match(comment.text))]
    if not wanted:
        return
    statements = sorted(_statements(file), key=lambda span: (span.start, -span.end))
    by_last_line: dict[int, Span] = {}
    for span in statements:
        line = file.source.position(span.end).line
        by_last_line[line] = min(span, by_last_line.get(line, span), key=lambda one: one.end - one.start)
    for comment, match in wanted:
        code = match["code"]
        trouble = _trouble(code)
        statement = _statement_of(comment, statements, by_last_line, file.source)
        if trouble is not None:
            help_text = "write `# zcpolicy: allow ZC3102 reason`"
            refused = Diagnostic(codes.BAD_SUPPRESSION, trouble, file.source, comment.span, help=help_text)
            if statement is not None and code in codes.ALL:
                yield Suppression(code, statement, refused)
            else:
                about.append(refused)
        elif statement is None:
            message = "this comment stands at no statement"
            help_text = "put it right above one, or behind it"
            about.append(Diagnostic(codes.BAD_SUPPRESSION, message, file.source, comment.span, help=help_text))
        else:
            yield Suppression(code, statement)


def _is_meant(one: Suppression, finding: Diagnostic, source: Source) -> bool:
    """Whether a finding is the error that a comment would silence: it is reported anyway, and once."""
    span, statement = finding.span, one.statement
    inside = statement.start <= span.start and span.end <= statement.end
    return finding.code.id == one.code and finding.source.name == source.name and inside


def _trouble(code: str | None) -> str | None:
    if code is None:
        return "it silences nothing: a code and a reason are needed"
    if code not in codes.ALL:
        return f"there is no diagnostic `{code}`"
    return f"`{code}` is an error, and errors cannot be silenced" if codes.ALL[code].severity == "error" else None


def _statement_of(
    comment: ast.Comment, statements: list[Span], by_last_line: dict[int, Span], source: Source
) -> Span | None:
    """The innermost statement that ends on the comment's line; for a comment alone on its line the next one."""
    if not comment.alone:
        return by_last_line.get(source.position(comment.span.start).line)
    after = bisect_right(statements, comment.span.end, key=lambda span: span.start)
    return statements[after] if after < len(statements) else None


def _statements(file: ast.File) -> Iterator[Span]:
    for node in file.declarations:
        yield node.span
        if isinstance(node, ast.Agent | ast.Ceiling | ast.Skill | ast.Profile):
            yield from (statement.span for statement in node.body.statements)
        elif isinstance(node, ast.TestBlock):
            yield from (step.span for step in node.steps)
