"""Limits: what they count is spent by the tools that they name, in a time zone that there is.

In: a `limit` statement. Out: findings.
"""

import re
from collections.abc import Iterator
from functools import cache

from policy_lang import ast, codes
from policy_lang.bound import Bound
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.gather import LoadedFile
from policy_lang.kinds.misfits import unknown_argument
from policy_lang.kinds.operands import argument
from policy_lang.nearest import nearest
from policy_lang.source import Span
from zcpolicy.validate import NO_TOOL_SPENDS

_INTRODUCED = re.compile(r"[ \t]+(?:to|for[ \t]+each)\s*\Z")
"""What stands before the tools of a limit, or before the argument of its pots."""


def limit_findings(bound: Bound, node: ast.Limit, file: LoadedFile) -> Iterator[Diagnostic]:
    """All findings about the kinds of one limit."""
    yield from _zone(node, file)
    each = node.each if isinstance(node.each, ast.Operand) else None
    if node.unit in NO_TOOL_SPENDS:
        yield from _spent_by_no_tool(node, each, file)
        return
    for operand, kinds in ((node.argument, ("integer", "number", "any")), (each, None)):
        if operand is not None:
            yield from _argument(bound, node, operand, kinds, file)


def _argument(
    bound: Bound, node: ast.Limit, operand: ast.Operand, kinds: tuple[str, ...] | None, file: LoadedFile
) -> Iterator[Diagnostic]:
    """An argument that is summed, or that pots are kept by. `kinds`: those that it may be of; None: any."""
    if node.tools is None:
        message, advice = "a limit on an argument needs the tools that have it", "write `to TOOL` before `per`"
        yield Diagnostic(codes.LIMIT_WITHOUT_TOOLS, message, file.source, operand.span, help=advice)
        return
    tools = bound.catalogue.tools
    schemas = [argument(tools[number].schema, operand.path) for number in bound.ids(node.tools)]
    if schemas and all(schema is None for schema in schemas):
        yield unknown_argument(bound, operand, node.tools, file)
    elif kinds and any(schema is not None and schema["kind"] not in kinds for schema in schemas):
        message = f"`{file.source.at(operand.span)}` is no number on every tool of this limit"
        yield Diagnostic(codes.WRONG_KIND, message, file.source, operand.span)


def _spent_by_no_tool(node: ast.Limit, each: ast.Operand | None, file: LoadedFile) -> Iterator[Diagnostic]:
    """A limit that bounds nothing, since its unit is spent by models and delegations, and it counts what tools spend."""
    named = [part.span for part in (node.tools, each) if part is not None]
    if not named:
        return
    text, amount = file.source.text, file.source.at(node.amount.span)
    edits: list[Edit] = []
    for span in named:
        before = _INTRODUCED.search(text, node.amount.span.end, span.start)
        start = before.start() if before else span.start
        edits.append(Edit(file.source, Span(start, span.end), ""))
    left_out = " ".join(text[edits[0].span.start : edits[0].span.end].split())
    tools = file.source.at(node.tools.span) if node.tools is not None else "TOOL"
    calls = f"limit {amount} calls to {' '.join(tools.split())}"
    advice = f"leave out `{left_out}` to bound all {node.unit}, or count calls: `{calls} …`"
    message = f"no tool spends {node.unit}: this limit would never be reached"
    yield Diagnostic(codes.SPENT_BY_NO_TOOL, message, file.source, named[0], (), advice, Fix(tuple(edits), safe=False))


def _zone(node: ast.Limit, file: LoadedFile) -> Iterator[Diagnostic]:
    """A calendar day of a zone that does not exist would begin at some other midnight."""
    zone = node.window.zone if node.window is not None else None
    if zone is not None and not _is_zone(zone.value):
        near = nearest(zone.value, _zones())
        fix = Fix((Edit(file.source, zone.span, f'"{near}"'),), safe=False) if near else None
        advice = f'did you mean `"{near}"`?' if near else 'write a name of the IANA table, such as `"Europe/Berlin"`'
        message = f"there is no time zone `{zone.value}`"
        yield Diagnostic(codes.UNKNOWN_NAME, message, file.source, zone.span, (), advice, fix)


@cache
def _is_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo

    try:
        return bool(ZoneInfo(name).key)
    except (OSError, ValueError, KeyError):
        return not _zones()  # a machine without the table knows no better


@cache
def _zones() -> frozenset[str]:
    from zoneinfo import available_timezones

    return frozenset(available_timezones())
