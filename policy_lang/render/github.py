"""Findings as annotations of a GitHub workflow: `::error file=…,line=…,col=…,title=…::message`.

In: diagnostics. Out: text, a line per finding.
"""

from collections.abc import Iterable

from policy_lang.diagnostics import Diagnostic
from policy_lang.render.visible import visible


def github(diagnostics: Iterable[Diagnostic]) -> str:
    """A workflow command per finding; its help follows the message."""
    return "".join(_command(finding) for finding in diagnostics)


def _command(finding: Diagnostic) -> str:
    start, end = finding.source.position(finding.span.start), finding.source.position(finding.span.end)
    properties = {
        "file": finding.source.name,
        "line": str(start.line),
        "endLine": str(end.line),
        "col": str(start.column),
        "endColumn": str(end.column),
        "title": f"{finding.code.id} {finding.code.title}",
    }
    if start.line != end.line:
        del properties["endColumn"]  # columns of one line only
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    message = finding.message if finding.help is None else f"{finding.message}\n{finding.help}"
    return f"::{finding.severity} {written}::{_data(visible(message, keep=chr(10)))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible(text)).replace(":", "%3A").replace(",", "%2C")
