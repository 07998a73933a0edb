"""Findings as SARIF 2.1.0, for code scanning.

In: diagnostics. Out: the text of one log with one run. Columns are counted in Unicode code points.
"""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import quote

from policy_lang.codes import Code
from policy_lang.diagnostics import Diagnostic, Fix
from policy_lang.render.as_json import json_text
from policy_lang.source import Source, Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(diagnostics: Sequence[Diagnostic]) -> str:
    """One run; `rules` holds the codes that occur, sorted."""
    rules = sorted({finding.code for finding in diagnostics})
    index = {code.id: number for number, code in enumerate(rules)}
    driver = {"name": "zcpolicy", "version": _version(), "rules": [_rule(code) for code in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, index) for finding in diagnostics],
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _version() -> str:
    try:
        return version("zcpolicy")
    except PackageNotFoundError:
        return "0"


def _rule(code: Code) -> dict[str, Any]:
    title = code.title[:1].upper() + code.title[1:]
    return {
        "id": code.id,
        "shortDescription": {"text": f"{title}."},
        "help": {"text": f"zcpolicy explain {code.id}"},
        "defaultConfiguration": {"level": code.severity},
    }


def _result(finding: Diagnostic, index: dict[str, int]) -> dict[str, Any]:
    text = "\n".join(filter(None, [finding.message, finding.help, finding.witness]))
    made: dict[str, Any] = {
        "ruleId": finding.code.id,
        "ruleIndex": index[finding.code.id],
        "level": finding.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": _location(finding.source, finding.span)}],
    }
    if finding.labels:
        made["relatedLocations"] = [
            {
                "id": number,
                "physicalLocation": _location(label.source, label.span),
                "message": {"text": label.text},
            }
            for number, label in enumerate(finding.labels)
        ]
    if finding.fix is not None:
        made["fixes"] = [_fix(finding.fix, finding.help or finding.message)]
    return made


def _fix(fix: Fix, text: str) -> dict[str, Any]:
    by_file: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        replacement = {"deletedRegion": _region(edit.source, edit.span), "insertedContent": {"text": edit.text}}
        by_file.setdefault(edit.source.name, []).append(replacement)
    changes = [{"artifactLocation": {"uri": _uri(name)}, "replacements": made} for name, made in by_file.items()]
    return {"description": {"text": text}, "artifactChanges": changes}


def _location(source: Source, span: Span) -> dict[str, Any]:
    return {"artifactLocation": {"uri": _uri(source.name)}, "region": _region(source, span)}


def _region(source: Source, span: Span) -> dict[str, int]:
    start, end = source.position(span.start), source.position(span.end)
    return {
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    }


def _uri(name: str) -> str:
    """A path as a URI reference; an absolute one as a file URI."""
    path = name.replace("\\", "/")
    quoted = quote(path.encode("utf-8", "surrogateescape"), safe="/")
    return f"file://{quoted}" if path.startswith("/") else quoted
