"""Edits that take a statement out of its text, cleanly.

In: the text and a statement's span. Out: an edit that removes it, with the separator or the whole line that was its.
"""

from policy_lang.diagnostics import Edit
from policy_lang.source import Source, Span


def remove(source: Source, span: Span) -> Edit:
    """Take out a statement: with its line where it stands alone, else with the `;` after or before it."""
    text, (start, end) = source.text, span
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    before, after = text[line:start], text[end:stop]
    if not before.strip() and not after.strip():
        return Edit(source, Span(line, min(stop + 1, len(text))), "")
    spaces = len(after) - len(after.lstrip(" "))
    if after.lstrip(" ").startswith(";"):
        end += spaces + 1
        end += len(text[end:stop]) - len(text[end:stop].lstrip(" "))
        return Edit(source, Span(start, end), "")
    kept = before.rstrip(" ")
    if kept.endswith(";"):
        return Edit(source, Span(line + len(kept) - 1, end), "")
    return Edit(source, span, "")
