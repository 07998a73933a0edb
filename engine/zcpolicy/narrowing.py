"""The host's narrowing of one run as a body that only withholds.

In: a `Narrowing`. Out: the `BodyRef` that stands beside the others.
"""

from __future__ import annotations

from zcpolicy.program import pack
from zcpolicy.stack import BodyRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zcpolicy.facts import Narrowing, ToolName
    from zcpolicy.program import Program
    from zcpolicy.shapes import Body, Rule


def body_of(narrowing: Narrowing, program: Program, ids: Mapping[ToolName, int]) -> BodyRef:
    """Names that no tool has match nothing: outside an `only`, and denied anyway."""

    def bound(names: Iterable[ToolName]) -> str:
        return pack({ids[name] for name in names if name in ids})

    body: Body = {"kind": "narrowing", "name": "narrowing"}
    rules: list[Rule] = []
    if narrowing.deny:
        rules.append({"effect": "deny", "tools": bound(narrowing.deny)})
    if narrowing.ask:
        rules.append({"effect": "ask", "tools": bound(narrowing.ask)})
    if rules:
        body["rules"] = rules
    if narrowing.only is not None:
        body["only"] = [{"tools": bound(narrowing.only)}]
    if narrowing.autonomy is not None:
        body["autonomy"] = narrowing.autonomy
    if narrowing.limits:
        body["limits"] = list(narrowing.limits)
    if narrowing.exclude_memory:
        body["memory"] = {"read": [], "write": []}
    return BodyRef(program, body)
