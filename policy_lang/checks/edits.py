"""Edits that take a statement out of its text, cleanly.

In: the text and a statement's span. Out: an edit that removes it, with the separator or the whole line that was its.
"""

from policy_lang import ast
from policy_lang.diagnostics import Edit
from policy_lang.source import Source, Span


def lasts(tools: ast.ToolSet | None, source: Source, kept: ast.ToolSet | None, beside: Source) -> bool:
    """Whether what covers these tools does so wherever the file is read, and whatever tools a catalogue has one day: it stands in
    the same file, and the tools are named one by one, or in the same words.
    """
    if source is not beside:
        return False
    if tools is None:
        return kept is None
    if not tools.excepted and all(isinstance(item, ast.ToolRef) and not _is_pattern(item) for item in tools.items):
        return True
    return kept is not None and source.at(tools.span).split() == beside.at(kept.span).split()


def _is_pattern(ref: ast.ToolRef) -> bool:
    return ref.name.is_pattern or (ref.server is not None and ref.server.is_pattern)


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
