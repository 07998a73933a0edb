"""Silencing a warning on one statement: `# zcpolicy: allow ZC3102 reason`.

In: findings and the files that they are about. Out: the findings that nobody silenced, and a finding for every such
comment that silences nothing it may. The comment stands at the end of the statement's line, or alone above it.
Errors cannot be silenced.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from policy_lang import ast, codes
from policy_lang.diagnostics import Diagnostic
from policy_lang.gather import Gathered
from policy_lang.source import Source, Span

_COMMENT = re.compile(r"\s*zcpolicy:\s*(?:allow\s+(?P<code>ZC\d+)\s+(?P<reason>\S.*))?")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment: the code that it silences, in which statement's characters."""

    code: str
    statement: Span
    comment: Span


def unsuppressed(found: Iterable[Diagnostic], gathered: Gathered) -> Iterator[Diagnostic]:
    """The findings without the silenced warnings, then findings about the comments themselves."""
    silenced: dict[str, list[Suppression]] = {}
    about: list[Diagnostic] = []
    for loaded in gathered.files:
        silenced[loaded.source.name] = list(_read(loaded.file, about))
    for finding in found:
        if finding.severity == "error" or not _is_silenced(finding, silenced.get(finding.source.name, [])):
            yield finding
    yield from about


def _is_silenced(finding: Diagnostic, suppressions: list[Suppression]) -> bool:
    return any(
        one.code == finding.code.id and one.statement.start <= finding.span.start and finding.span.end <= one.statement.end
        for one in suppressions
    )


def _read(file: ast.File, about: list[Diagnostic]) -> Iterator[Suppression]:
    wanted = [(comment, match) for comment in file.comments if (match := _COMMENT.match(comment.text))]
    if not wanted:
        return
    statements = sorted(_statements(file), key=lambda span: (span.start, -span.end))
    for comment, match in wanted:
        code = match["code"]
        trouble = _trouble(code)
        if trouble is not None:
            about.append(Diagnostic(codes.BAD_SUPPRESSION, trouble, file.source, comment.span, help="write `# zcpolicy: allow ZC3102 reason`"))
            continue
        statement = _statement_of(comment, statements, file.source)
        if statement is None:
            message = "this comment stands at no statement"
            about.append(Diagnostic(codes.BAD_SUPPRESSION, message, file.source, comment.span, help="put it right above one, or behind it"))
        else:
            yield Suppression(code, statement, comment.span)


def _trouble(code: str | None) -> str | None:
    if code is None:
        return "it silences nothing: a code and a reason are needed"
    if code not in codes.ALL:
        return f"there is no diagnostic `{code}`"
    return f"`{code}` is an error, and errors cannot be silenced" if codes.ALL[code].severity == "error" else None


def _statement_of(comment: ast.Comment, statements: list[Span], source: Source) -> Span | None:
    """The innermost statement that ends on the comment's line; for a comment alone on its line the next one."""
    line = source.position(comment.span.start).line
    if not comment.alone:
        same = [span for span in statements if source.position(span.start).line <= line and source.position(span.end).line == line]
        return min(same, key=lambda span: span.end - span.start, default=None)
    return next((span for span in statements if span.start > comment.span.end), None)


def _statements(file: ast.File) -> Iterator[Span]:
    for node in file.declarations:
        yield node.span
        if isinstance(node, ast.Agent | ast.Ceiling | ast.Skill | ast.Profile):
            yield from (statement.span for statement in node.body.statements)
        elif isinstance(node, ast.TestBlock):
            yield from (step.span for step in node.steps)
