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
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any, Final

    from zcpolicy.facts import ToolName
    from zcpolicy.limit_text import TextLimit
    from zcpolicy.program import Program
    from zcpolicy.shapes import Body, Limit, Rule

MAX_NAMED: Final = 3
"""Tools of one name that a refusal lists."""


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
        body["autonomy"] = {**narrowing.autonomy}
    if narrowing.limits:
        body["limits"] = [_bound(limit, ids) for limit in narrowing.limits]
    if narrowing.exclude_memory:
        body["memory"] = {"read": [], "write": []}
    return BodyRef(program, body)


def portable(narrowing: Narrowing, program: Program) -> dict[str, Any]:
    """JSON that means the same under any program: the tools of its limits by name. It shares nothing with anything."""
    from json import dumps, loads

    limits: list[dict[str, Any]] = [_told(limit, program) for limit in narrowing.limits]
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


def restored(saved: dict[str, Any], ids: Mapping[ToolName, int]) -> tuple[Narrowing, dict[str, Any]]:
    """A narrowing from its portable form, and that form again: of tools that this program does not have a later one may know.

    Raises FactsError, ResolveError for what is none.
    """
    from json import dumps, loads

    try:
        again: dict[str, Any] = loads(dumps(saved))
        limits: list[Any] = [dict(limit) for limit in again["limits"]]
        for limit in limits:
            if "tools" in limit:
                names = [name if isinstance(name, str) else (name[0], name[1]) for name in limit["tools"]]
                limit["tools"] = pack({ids[name] for name in names if name in ids})
        wanted: dict[str, Any] = {name: again[name] for name in ("only", "deny", "ask", "autonomy", "exclude_memory")}
        return Narrowing(limits=limits, **wanted), again
    except (KeyError, IndexError, TypeError, ValueError):
        raise ResolveError("a saved narrowing is not what was saved") from None


def _listed(names: Iterable[ToolName]) -> list[Any]:
    return sorted(map(tool_json, names), key=str)


def _bound(limit: Limit | TextLimit, ids: Mapping[ToolName, int]) -> Limit:
    from copy import deepcopy

    if not isinstance(limit, tuple):
        return deepcopy(limit)
    found = deepcopy(limit.limit)
    if limit.tools is not None:
        found["tools"] = pack({ids[name] for name in limit.tools if name in ids})
    return found


def _told(limit: Limit | TextLimit, program: Program) -> dict[str, Any]:
    """A limit with its tools by name."""
    if isinstance(limit, tuple):
        return {**limit.limit, **({} if limit.tools is None else {"tools": _listed(limit.tools)})}
    return {**limit, **({"tools": _listed(names_in(program, limit["tools"]))} if "tools" in limit else {})}


def refuse_unknown(narrowing: Narrowing, tools: Collection[ToolName], once: Collection[ToolName] = ()) -> None:
    """For what a host brings. Raises ResolveError for a name that is no tool: it would withhold nothing, or everything.

    `tools`: those of the policy. `once`: those that it had before; a host may still name them. A limit that names its tools
    by their numbers in one program would be one of other tools after a reload.
    """
    if any("tools" in limit for limit in narrowing.limits if not isinstance(limit, tuple)):
        raise ResolveError('a limit of a narrowing that names tools is written as text: "3 calls to shell per hour"')
    named = narrowing.deny | narrowing.ask | (narrowing.only or frozenset())
    named = named.union(*(limit.tools or () for limit in narrowing.limits if isinstance(limit, tuple)))
    unknown = [name for name in named if name not in tools and name not in once]
    for name, near in misspelt(unknown, tools):
        raise ResolveError(_no_tool(name, near, tools))


def _no_tool(name: ToolName, near: ToolName | None, tools: Collection[ToolName]) -> str:
    said = escaped(joined(name)[:60])
    last = _last(name)
    same = sorted((tool for tool in tools if _last(tool) == last), key=str)[:MAX_NAMED]
    if same:
        return f"the narrowing names `{said}`, which is no tool: write {' or '.join(map(_written, same))}"
    if near is None and isinstance(name, str):  # of a server's tool, whose server was left out
        by_last = {_last(tool): tool for tool in tools}
        near = next((by_last[one] for _, one in misspelt((name,), by_last) if one is not None), None)
    if near is not None:
        return f"the narrowing names `{said}`, which is no tool: did it mean {_written(near)}?"
    if "*" in said or said == "any" or said.startswith("@"):
        return f"a narrowing takes exact names, and `{said}` is a pattern"
    return f"the narrowing names `{said}`, which is no tool of the policy"


def _last(name: ToolName) -> str:
    return name if isinstance(name, str) else name[1]


def _written(name: ToolName) -> str:
    """As a host writes it."""
    if isinstance(name, str):
        return f"`{escaped(name)}`"
    from json import dumps

    server, tool = (dumps(escaped(part), ensure_ascii=False) for part in name)
    return f"`({server}, {tool})`"
