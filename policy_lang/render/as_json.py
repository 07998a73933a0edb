"""Findings as JSON: the shapes of the command line's `--format json`.

In: diagnostics. Out: JSON values, and the text of the whole answer. Lines and columns from 1, in characters.
"""

import json
from collections.abc import Sequence
from typing import Any

from policy_lang.diagnostics import Diagnostic, Fix
from policy_lang.source import Source, Span


def as_json(diagnostics: Sequence[Diagnostic], *, files: int) -> str:
    """`{"diagnostics": […], "summary": {"errors", "warnings", "files"}}`."""
    errors = sum(finding.severity == "error" for finding in diagnostics)
    counts = {"errors": errors, "warnings": len(diagnostics) - errors, "files": files}
    return json_text({"diagnostics": [diagnostic_json(finding) for finding in diagnostics], "summary": counts})


def json_text(value: object) -> str:
    """Indented JSON and a newline; every character that is not ASCII is escaped, so nothing can hide in it."""
    return json.dumps(value, indent=2) + "\n"


def diagnostic_json(finding: Diagnostic) -> dict[str, Any]:
    """One finding. A label or an edit in another file than the finding names it in `file`."""
    made: dict[str, Any] = {
        "code": finding.code.id,
        "severity": finding.severity,
        "message": finding.message,
        "file": finding.source.name,
        "span": span_json(finding.source, finding.span),
        "labels": [
            {"span": span_json(label.source, label.span), "text": label.text} | _file(label.source, finding)
            for label in finding.labels
        ],
        "help": finding.help,
        "url": page(finding.code.id),
    }
    if finding.fix is not None:
        made["fix"] = _fix(finding.fix, finding)
    if finding.witness is not None:
        made["witness"] = finding.witness
    return made


def page(code: str) -> str:
    """Where the page of a code is, relative to the project."""
    return f"docs/codes/{code}.md"


def span_json(source: Source, span: Span) -> dict[str, Any]:
    """`{"start": {"line", "column"}, "end": {…}}`; the end is the place after the last character."""
    start, end = source.position(span.start), source.position(span.end)
    return {"start": start._asdict(), "end": end._asdict()}


def _fix(fix: Fix, finding: Diagnostic) -> dict[str, Any]:
    edits = [
        {"span": span_json(edit.source, edit.span), "text": edit.text} | _file(edit.source, finding)
        for edit in fix.edits
    ]
    return {"edits": edits, "safe": fix.safe}


def _file(source: Source, finding: Diagnostic) -> dict[str, str]:
    return {} if source.name == finding.source.name else {"file": source.name}
