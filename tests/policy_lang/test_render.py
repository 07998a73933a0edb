"""What a finding looks like in each style, compared whole."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy_lang.codes import Code
from policy_lang.diagnostics import Diagnostic, Edit, Fix, Label
from policy_lang.render import Style, human, render, summary
from policy_lang.source import Source, Span

UNKNOWN = Code("ZC2101", "unknown tool", "error")
DEAD = Code("ZC3101", "rule that decides nothing", "warning")
TEXT = """\
zcpolicy 1

agent coder {
    allow git_stats
    deny shell
    deny shell
}
"""
SOURCE = Source("team.zcpolicy", TEXT)


def place(text: str, part: str, *, nth: int = 0) -> Span:
    at = -1
    for _ in range(nth + 1):
        at = text.index(part, at + 1)
    return Span(at, at + len(part))


TYPO = Diagnostic(
    UNKNOWN,
    "unknown tool `git_stats`",
    SOURCE,
    place(TEXT, "git_stats"),
    help="did you mean `git_status`?",
    fix=Fix((Edit(SOURCE, place(TEXT, "git_stats"), "git_status"),), safe=False),
)
TWICE = Diagnostic(
    DEAD,
    "this `deny` decides nothing",
    SOURCE,
    place(TEXT, "deny shell", nth=1),
    labels=(Label(SOURCE, place(TEXT, "deny shell"), "this one already denies `shell`"),),
    fix=Fix((Edit(SOURCE, place(TEXT, "    deny shell\n", nth=1), ""),), safe=True),
    witness='call shell(command: "ls") => deny',
)


def test_human() -> None:
    assert (
        human([TYPO, TWICE])
        == """\
error[ZC2101]: unknown tool `git_stats`
 --> team.zcpolicy:4:11
  |
4 |     allow git_stats
  |           ^^^^^^^^^
  |
  = help: did you mean `git_status`?
  = possible fix: allow git_status

warning[ZC3101]: this `deny` decides nothing
 --> team.zcpolicy:6:5
  |
5 |     deny shell
  |     ---------- this one already denies `shell`
6 |     deny shell
  |     ^^^^^^^^^^
  |
  = fix: remove `deny shell`
  = witness: call shell(command: "ls") => deny
"""
    )


def test_plain() -> None:
    assert render([TYPO, TWICE], "plain") == (
        "team.zcpolicy:4:11: error ZC2101: unknown tool `git_stats`\n"
        "team.zcpolicy:6:5: warning ZC3101: this `deny` decides nothing\n"
    )


def test_github() -> None:
    assert render([TYPO], "github") == (
        "::error file=team.zcpolicy,line=4,endLine=4,col=11,endColumn=20,title=ZC2101 unknown tool"
        "::unknown tool `git_stats`%0Adid you mean `git_status`?\n"
    )


def test_github_escapes_what_would_end_a_property_or_a_command() -> None:
    odd = Diagnostic(UNKNOWN, "100%\n::error::x", Source("a,b:c\n.zcpolicy", "x"), Span(0, 1))
    assert render([odd], "github") == (
        "::error file=a%2Cb%3Ac\\n.zcpolicy,line=1,endLine=1,col=1,endColumn=2,title=ZC2101 unknown tool"
        "::100%25%0A::error::x\n"
    )


def test_json() -> None:
    assert json.loads(render([TYPO, TWICE], "json", files=1)) == {
        "diagnostics": [
            {
                "code": "ZC2101",
                "severity": "error",
                "message": "unknown tool `git_stats`",
                "file": "team.zcpolicy",
                "span": {"start": {"line": 4, "column": 11}, "end": {"line": 4, "column": 20}},
                "labels": [],
                "help": "did you mean `git_status`?",
                "url": "docs/codes/ZC2101.md",
                "fix": {
                    "edits": [
                        {
                            "span": {"start": {"line": 4, "column": 11}, "end": {"line": 4, "column": 20}},
                            "text": "git_status",
                        }
                    ],
                    "safe": False,
                },
            },
            {
                "code": "ZC3101",
                "severity": "warning",
                "message": "this `deny` decides nothing",
                "file": "team.zcpolicy",
                "span": {"start": {"line": 6, "column": 5}, "end": {"line": 6, "column": 15}},
                "labels": [
                    {
                        "span": {"start": {"line": 5, "column": 5}, "end": {"line": 5, "column": 15}},
                        "text": "this one already denies `shell`",
                    }
                ],
                "help": None,
                "url": "docs/codes/ZC3101.md",
                "fix": {
                    "edits": [
                        {
                            "span": {"start": {"line": 6, "column": 1}, "end": {"line": 7, "column": 1}},
                            "text": "",
                        }
                    ],
                    "safe": True,
                },
                "witness": 'call shell(command: "ls") => deny',
            },
        ],
        "summary": {"errors": 1, "warnings": 1, "files": 1},
    }


_POSITIVE = {"type": "integer", "minimum": 1}
_REGION = {
    "type": "object",
    "properties": dict.fromkeys(("startLine", "startColumn", "endLine", "endColumn"), _POSITIVE),
    "required": ["startLine"],
    "additionalProperties": False,
}
_ARTIFACT = {
    "type": "object",
    "properties": {"uri": {"type": "string", "pattern": r"^[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*$"}},
    "required": ["uri"],
    "additionalProperties": False,
}
_MESSAGE = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
_LOCATION = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": -1},
        "physicalLocation": {
            "type": "object",
            "properties": {"artifactLocation": _ARTIFACT, "region": _REGION},
            "required": ["artifactLocation"],
            "additionalProperties": False,
        },
        "message": _MESSAGE,
    },
    "additionalProperties": False,
}
_FIX = {
    "type": "object",
    "properties": {
        "description": _MESSAGE,
        "artifactChanges": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "artifactLocation": _ARTIFACT,
                    "replacements": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "properties": {"deletedRegion": _REGION, "insertedContent": _MESSAGE},
                            "required": ["deletedRegion"],
                            "additionalProperties": False,
                        },
                    },
                },
                "required": ["artifactLocation", "replacements"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["artifactChanges"],
    "additionalProperties": False,
}
_RULE = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "shortDescription": _MESSAGE,
        "help": _MESSAGE,
        "defaultConfiguration": {
            "type": "object",
            "properties": {"level": {"enum": ["none", "note", "warning", "error"]}},
            "additionalProperties": False,
        },
    },
    "required": ["id"],
    "additionalProperties": False,
}
_RESULT = {
    "type": "object",
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": -1},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": _MESSAGE,
        "locations": {"type": "array", "items": _LOCATION},
        "relatedLocations": {"type": "array", "items": _LOCATION, "uniqueItems": True},
        "fixes": {"type": "array", "items": _FIX, "uniqueItems": True},
    },
    "required": ["message"],
    "additionalProperties": False,
}
SARIF = {
    "type": "object",
    "properties": {
        "$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "tool": {
                        "type": "object",
                        "properties": {
                            "driver": {
                                "type": "object",
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {"type": "array", "items": _RULE, "uniqueItems": True},
                                },
                                "required": ["name"],
                                "additionalProperties": False,
                            }
                        },
                        "required": ["driver"],
                        "additionalProperties": False,
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {"type": "array", "items": _RESULT},
                },
                "required": ["tool"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["version", "runs"],
    "additionalProperties": False,
}
"""The part of the SARIF 2.1.0 schema that the rendering uses, closed so that nothing else can slip in."""


@pytest.mark.parametrize("findings", [[], [TYPO], [TYPO, TWICE]])
def test_sarif_has_the_shape_of_its_schema(findings: list[Diagnostic]) -> None:
    jsonschema.validate(json.loads(render(findings, "sarif")), SARIF)


def test_sarif_names_rules_places_and_fixes() -> None:
    (run,) = json.loads(render([TYPO, TWICE], "sarif"))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["ZC2101", "ZC3101"]
    first, second = run["results"]
    assert (first["ruleIndex"], second["ruleIndex"]) == (0, 1)
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "team.zcpolicy"},
        "region": {"startLine": 4, "startColumn": 11, "endLine": 4, "endColumn": 20},
    }
    assert second["relatedLocations"][0]["message"] == {"text": "this one already denies `shell`"}
    assert first["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {"text": "git_status"}


@pytest.mark.parametrize(
    ("name", "uri"),
    [("a b/ü.zcpolicy", "a%20b/%C3%BC.zcpolicy"), ("/w/x.zcpolicy", "file:///w/x.zcpolicy"), ("<text>", "%3Ctext%3E")],
)
def test_sarif_paths_are_uris(name: str, uri: str) -> None:
    log: Any = json.loads(render([Diagnostic(UNKNOWN, "x", Source(name, "x"), Span(0, 1))], "sarif"))
    assert log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def excerpt_of(text: str, part: str) -> list[str]:
    """The line and its underline, as drawn."""
    drawn = human([Diagnostic(UNKNOWN, "x", Source("f", text), place(text, part))]).split("\n")
    return [line.partition("| ")[2] for line in drawn[3:5]]


@pytest.mark.parametrize(
    ("text", "part", "drawn", "underline"),
    [
        ("\tallow xy", "xy", "    allow xy", "          ^^"),
        ("ab\tallow", "allow", "ab  allow", "    ^^^^^"),
        ('"日本" x', "x", '"日本" x', "       ^"),
        ("e\u0301e x", "x", "e\u0301e x", "   ^"),
        ("a\u202eb x", "x", "a\\u{202e}b x", "           ^"),
        ("a\x1b[31m x", "x", "a\\e[31m x", "        ^"),
        ("a\u00a0x", "x", "a\\u{a0}x", "       ^"),
        ("\U0001f600 x", "x", "\U0001f600 x", "   ^"),
    ],
)
def test_excerpts_align_and_hide_nothing(text: str, part: str, drawn: str, underline: str) -> None:
    assert excerpt_of(text, part) == [drawn, underline]


def test_a_long_line_is_clipped_around_the_place() -> None:
    drawn, underline = excerpt_of("a" * 5_000 + " here " + "b" * 5_000, "here")
    assert drawn == "…" + "a" * 29 + " here " + "b" * 85 + "…"
    assert underline == " " * 31 + "^^^^"


def test_a_place_at_the_end_of_the_file_and_over_lines() -> None:
    at_end = Diagnostic(UNKNOWN, "x", Source("f", "a\n"), Span(2, 2))
    assert human([at_end]).split("\n")[1:5] == [" --> f:2:1", "  |", "2 |", "  | ^"]
    over_lines = Diagnostic(UNKNOWN, "x", Source("f", "ab {\n cd\n}\n"), Span(3, 10))
    assert human([over_lines]).split("\n")[3:5] == ["1 | ab {", "  |    ^"]


def test_another_file_has_its_own_place() -> None:
    other = Source("base.zcpolicy", "zcpolicy 1\nagent coder {}\n")
    label = Label(other, place(other.text, "coder"), "first declared here")
    assert (
        human([Diagnostic(UNKNOWN, "x", SOURCE, place(TEXT, "coder"), (label,))])
        == """\
error[ZC2101]: x
 --> team.zcpolicy:3:7
  |
3 | agent coder {
  |       ^^^^^
  |
 ::: base.zcpolicy:2:7
  |
2 | agent coder {}
  |       ----- first declared here
  |
"""
    )


def test_a_file_without_text_has_a_place_only() -> None:
    assert human([Diagnostic(UNKNOWN, "`x` does not exist", Source("x", ""), Span(0, 0))]) == (
        "error[ZC2101]: `x` does not exist\n --> x:1:1\n"
    )


def test_colour_only_where_asked() -> None:
    assert "\x1b[" not in human([TYPO, TWICE])
    assert "\x1b[1;31merror[ZC2101]\x1b[0m" in human([TYPO], colour=True)
    assert summary([TYPO], 1, colour=True) == "\x1b[1;31m1 error\x1b[0m in 1 file\n"


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([], "no findings in 2 files\n"),
        ([TYPO], "1 error in 2 files\n"),
        ([TYPO, TWICE], "1 error, 1 warning in 2 files\n"),
    ],
)
def test_summary(findings: list[Diagnostic], words: str) -> None:
    assert summary(findings, 2) == words


def test_many_findings_on_one_long_line_are_cheap_and_the_first_are_drawn() -> None:
    source = Source("f", "name, " * 20_000)
    findings = [Diagnostic(UNKNOWN, "x", source, Span(at, at + 4)) for at in range(0, len(source.text), 6)]
    drawn = human(findings)
    assert drawn.count("error[ZC2101]") == 1_000
    assert drawn.endswith("\n… and 19000 findings more\n")
    assert render(findings, "plain").count("\n") == 20_000


@settings(max_examples=200, deadline=None)
@given(st.text(), st.integers(0, 60), st.integers(0, 60), st.text(), st.sampled_from(["human", "plain", "github"]))
def test_whatever_a_policy_holds_nothing_unseen_reaches_the_terminal(
    text: str, start: int, end: int, words: str, style: Style
) -> None:
    source = Source(words, text)
    span = Span(min(start, end, len(text)), min(max(start, end), len(text)))
    label = Label(source, Span(0, len(text)), words)
    fix = Fix((Edit(source, span, words),), safe=False)
    drawn = render([Diagnostic(UNKNOWN, words, source, span, (label,), words, fix, words)], style)
    assert {character for character in drawn if not character.isprintable()} <= {"\n"}
