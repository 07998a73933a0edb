"""Findings for tools that read lines: one each, `file:line:col: error ZC1234: message`.

In: diagnostics. Out: text.
"""

from collections.abc import Iterable

from policy_lang.diagnostics import Diagnostic
from policy_lang.render.visible import visible


def plain(diagnostics: Iterable[Diagnostic]) -> str:
    """A line per finding."""
    return "".join(_line(finding) for finding in diagnostics)


def _line(finding: Diagnostic) -> str:
    place = finding.source.position(finding.span.start)
    where = f"{visible(finding.source.name)}:{place.line}:{place.column}"
    return f"{where}: {finding.severity} {finding.code.id}: {visible(finding.message)}\n"
