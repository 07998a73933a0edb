"""Tokens that carry text, as nodes: names, strings, numbers, durations, references, operands.

In: the text of a token and its place. Out: nodes of `ast`; findings in `diagnostics`, with a harmless value instead.
"""

import json
import re
from decimal import Decimal
from typing import Any, Final

from policy_lang import ast, codes
from policy_lang.diagnostics import Diagnostic, Edit, Fix, Label
from policy_lang.source import Source, Span

MAX_NAME: Final = 300
"""Characters of a name."""

MAX_REFERENCE: Final = 1_000
"""Characters of a tool reference or an operand."""

MAX_STRING: Final = 1_000_000
"""Characters of a string."""

MAX_DIGITS: Final = 100
"""Characters of a number."""

MAX_DURATION_DIGITS: Final = 9
"""Digits of a duration: thirty years in seconds."""

SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}

MAX_FINDINGS: Final = 200
"""Findings about statements that were understood, in one text."""

Parts = list[Any]

_COMPONENT = re.compile(r'\.(?:([\w\-]++)|("(?:[^"\\\n]|\\.)*+"))')
_PART = re.compile(r'(/?)(?:("(?:[^"\\\n]|\\.)*+")|([\w*\-]++))')
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")


class Tokens:
    """Makes nodes of the tokens of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self.surrogates: list[Span] = []

    def report(
        self, code: codes.Code, message: str, span: Span, help_: str | None = None, *, fix: tuple[Span, str] | None = None,
        safe: bool = False, label: tuple[Span, str] | None = None,
    ) -> None:  # fmt: skip
        """A finding in this source; `fix` replaces one place, `label` points at another."""
        if len(self.diagnostics) >= MAX_FINDINGS:
            return
        labels = () if label is None else (Label(self.source, *label),)
        mend = None if fix is None else Fix((Edit(self.source, *fix),), safe)
        self.diagnostics.append(Diagnostic(code, message, self.source, span, labels, help_, mend))

    # --- what each terminal makes ---

    def token_name(self, text: str, start: int, end: int) -> ast.Name:
        span = Span(start, end)
        return ast.Name(self.bounded(text, span), span)

    token_ref = token_name

    def token_string(self, text: str, start: int, end: int) -> ast.String:
        span = Span(start, end)
        return ast.String(self.unquoted(text, span), False, span)

    def token_raw(self, text: str, start: int, end: int) -> ast.String:
        return ast.String(self.bounded(text[2:-1], Span(start, end), MAX_STRING), True, Span(start, end))

    def token_number(self, text: str, start: int, end: int) -> ast.Number:
        span = Span(start, end)
        if len(text) > MAX_DIGITS:
            self.report(codes.TOO_LARGE, f"a number has at most {MAX_DIGITS} digits", span)
            return ast.Number(0, "0", span)
        return ast.Number(Decimal(text) if "." in text else int(text), text, span)

    def token_duration(self, text: str, start: int, end: int) -> ast.Duration:
        span = Span(start, end)
        if len(text) > MAX_DURATION_DIGITS + 1:
            self.report(codes.TOO_LARGE, f"a duration has at most {MAX_DURATION_DIGITS} digits", span)
            return ast.Duration(0, "0s", span)
        return ast.Duration(int(text[:-1]) * SECONDS[text[-1]], text, span)

    def token_currency(self, text: str, start: int, end: int) -> ast.Name:
        return ast.Name(text, Span(start, end))

    def token_group(self, text: str, start: int, end: int) -> ast.GroupRef:
        span = Span(start, end)
        return ast.GroupRef(self.bounded(text[1:], span, MAX_REFERENCE), span)

    def token_tool(self, text: str, start: int, end: int) -> ast.ToolRef:
        span = Span(start, end)
        if '"' not in text:
            self.bounded(text, span, MAX_REFERENCE)
            server, slash, name = text.partition("/")
            if slash:
                return ast.ToolRef(ast.Pattern(server), ast.Pattern(name), span)
            return ast.ToolRef(None, ast.Pattern(text), span)
        parts = [self._pattern(found, span) for found in _PART.finditer(text)]
        return ast.ToolRef(parts[0] if len(parts) > 1 else None, parts[-1], span)

    def _pattern(self, found: re.Match[str], span: Span) -> ast.Pattern:
        quoted = found[2]
        if quoted is None:
            return ast.Pattern(self.bounded(found[3], span, MAX_REFERENCE))
        text = self.bounded(self.unquoted(quoted, span), span, MAX_REFERENCE)
        if not text:
            self.report(codes.UNEXPECTED, "a name in quotes may not be empty", span)
        return ast.Pattern(text, True)

    def token_operand(self, text: str, start: int, end: int) -> ast.Operand:
        span = Span(start, end)
        self.bounded(text, span, MAX_REFERENCE)
        if '"' not in text:
            root, *path = text.split(".")
            return ast.Operand(root, tuple(path), span)  # type: ignore[arg-type]  # the terminal spells the roots
        dot = text.index(".")
        components = tuple(
            found[1] if found[2] is None else self.unquoted(found[2], span) for found in _COMPONENT.finditer(text, dot)
        )
        return ast.Operand(text[:dot], components, span)  # type: ignore[arg-type]  # the terminal spells the roots

    # --- text ---

    def bounded(self, text: str, span: Span, bound: int = MAX_NAME) -> str:
        """The text, or a piece of it and a finding where it is longer than `bound`."""
        if len(text) <= bound:
            return text
        self.report(codes.TOO_LARGE, f"{len(text)} characters, at most {bound} are read here", span)
        return text[:bound]

    def unquoted(self, text: str, span: Span) -> str:
        """What a string in quotes says."""
        if len(text) > MAX_STRING:
            return self.bounded(text, span, MAX_STRING)
        if "\\" not in text:
            return text[1:-1]
        try:
            value: str = json.loads(text, strict=False)
        except ValueError:
            self._bad_escape(text, span)
            return text[1:-1]
        if _SURROGATE.search(value):
            self.surrogates.append(span)
        return value

    def _bad_escape(self, text: str, span: Span) -> None:
        at = span.start + self.source.at(span).find(text)
        for found in _ESCAPE.finditer(text):
            if len(found[1]) == 1 and found[1] not in '"\\/bfnrt':
                place = Span(at + found.start(), at + found.end())
                help_ = 'escapes are those of JSON; write `\\\\` for a backslash, or a raw string r"…"'
                fix = (Span(place.start, place.start), "\\")
                self.report(codes.BAD_ESCAPE, f"`{found[0]}` is no escape", place, help_, fix=fix)
                return
