"""The host's narrowing of one run as a body that only withholds.

In: a `Narrowing`. Out: the `BodyRef` that stands beside the others; its portable form, which names tools and survives
a reload.
"""

from __future__ import annotations

from zcpolicy.facts import Narrowing
from zcpolicy.misspelt import joined, misspelt
from zcpolicy.program import names_in, pack
from zcpolicy.refusals import ResolveError
from zcpolicy.stack import BodyRef
from zcpolicy.texts import escaped, tool_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from zcpolicy.facts import ToolName
    from zcpolicy.program import Program
    from zcpolicy.shapes import Body, Rule


def body_of(narrowing: Narrowing, program: Program, ids: Mapping[ToolName, int]) -> BodyRef:
    """Names that no tool has match nothing: outside an `only`, and denied anyway.

    Raises ResolveError where a name to be withheld is a pattern, or nearly that of a tool: it would withhold nothing.
    """
    _refuse_misspelt(narrowing.deny | narrowing.ask, ids)

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
        body["autonomy"] = {**narrowing.autonomy}
    if narrowing.limits:
        from copy import deepcopy

        body["limits"] = deepcopy([*narrowing.limits])
    if narrowing.exclude_memory:
        body["memory"] = {"read": [], "write": []}
    return BodyRef(program, body)


def portable(narrowing: Narrowing, program: Program) -> dict[str, Any]:
    """JSON that means the same under any program: the tools of its limits by name. It shares nothing with anything."""
    from json import dumps, loads

    limits: list[dict[str, Any]] = [dict(limit) for limit in narrowing.limits]
    for limit in limits:
        if "tools" in limit:
            limit["tools"] = _listed(names_in(program, limit["tools"]))
    saved: dict[str, Any] = {
        "only": None if narrowing.only is None else _listed(narrowing.only),
        "deny": _listed(narrowing.deny),
        "ask": _listed(narrowing.ask),
        "autonomy": narrowing.autonomy,
        "limits": limits,
        "exclude_memory": narrowing.exclude_memory,
    }
    copied: dict[str, Any] = loads(dumps(saved))
    return copied


def restored(saved: dict[str, Any], ids: Mapping[ToolName, int]) -> Narrowing:
    """A narrowing from its portable form. Raises FactsError, ResolveError for what is none."""
    try:
        limits: list[Any] = [dict(limit) for limit in saved["limits"]]
        for limit in limits:
            if "tools" in limit:
                names = [name if isinstance(name, str) else (name[0], name[1]) for name in limit["tools"]]
                limit["tools"] = pack({ids[name] for name in names if name in ids})
        wanted: dict[str, Any] = {name: saved[name] for name in ("only", "deny", "ask", "autonomy", "exclude_memory")}
        return Narrowing(limits=limits, **wanted)
    except (KeyError, IndexError, TypeError, ValueError):
        raise ResolveError("a saved narrowing is not what was saved") from None


def _listed(names: Iterable[ToolName]) -> list[Any]:
    return sorted(map(tool_json, names), key=str)


def _refuse_misspelt(names: frozenset[ToolName], ids: Mapping[ToolName, int]) -> None:
    """Raises ResolveError for a pattern, and for a name that is nearly a tool's."""
    for name, near in misspelt((name for name in names if name not in ids), ids):
        said = escaped(joined(name)[:60])
        if "*" in said:
            raise ResolveError(f"a narrowing takes exact names, and `{said}` is a pattern")
        if near is not None:
            raise ResolveError(f"the narrowing withholds `{said}`, which is no tool: did it mean {_named(near)}?")


def _named(name: ToolName) -> str:
    return f"`{name}`" if isinstance(name, str) else f"`{name[1]}` of server `{name[0]}`"
