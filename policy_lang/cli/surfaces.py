"""All that an execution gets, surface by surface, each statement with the place where it was written.

In: a resolved execution. Out: JSON values: `{"agent", "chain", "digest", "tools", "autonomy", "approvals", "limits",
"preconditions", "runtime", "memory", "skills", "delegation", "connects", "drift"}`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from policy_lang.ast import RISK_CLASSES
from zcpolicy.approvals.wanted import SCOPES
from zcpolicy.combine import RANK
from zcpolicy.exact import thawed
from zcpolicy.program import head_of, tools_in
from zcpolicy.resolver import ResolvedAgentExecution
from zcpolicy.shapes import Answer, RiskClass
from zcpolicy.stack import BodyRef

Said = dict[str, Any]
"""A statement: `{"body", "file", "line", "text"}` and what it says."""


def surfaces(run: ResolvedAgentExecution) -> dict[str, Any]:
    """Every surface of the execution."""
    bodies = tuple(run.stack.bodies())
    return {
        "agent": run.agent,
        "chain": list(run.stack.own.chain),
        "digest": run.resolver.program.digest,
        "tools": _tools(run, bodies),
        "autonomy": _autonomy(bodies),
        "approvals": _approvals(bodies),
        "limits": list(_limits(run, bodies)),
        "preconditions": list(_requires(run, bodies)),
        "runtime": _runtime(run, bodies),
        "memory": {
            "read": [scope.name for scope in run.memory.read],
            "write": [scope.name for scope in run.memory.write],
            "from": _origins(bodies, "memory"),
        },
        "skills": {"names": list(run.loadable), "from": _origins(bodies, "skills")},
        "delegation": _delegation(run, bodies),
        "connects": _shared(bodies, "connect", lambda said: list(said["servers"])),
        "drift": _drift(bodies),
    }


def _place(body: BodyRef, part: str, index: int = -1) -> Said:
    found = body.places(part, index)
    file, line, text = found[0] if found else (None, None, None)
    return {"body": body.name, "file": file, "line": int(line) if line and line.isdigit() else None, "text": text}


def _origins(bodies: Iterable[BodyRef], part: str) -> list[Said]:
    """Every place that speaks of a part, where any does."""
    return [_place(body, part) for body in bodies if part in body.data]


def _tools(run: ResolvedAgentExecution, bodies: tuple[BodyRef, ...]) -> list[dict[str, Any]]:
    """The tools that may be shown, each with its class and the statements about it."""
    program = run.resolver.program
    ids = {name: number for number, name in enumerate(program.tools)}
    about: dict[int, list[Said]] = {ids[name]: [] for name in run.tools()}
    for body in bodies:
        for part in ("rules", "only"):
            for index, statement in enumerate(_list(body, part)):
                said = {"effect": statement.get("effect", "only"), **_place(body, part, index)}
                for tool in tools_in(program, statement["tools"]) & about.keys():
                    about[tool].append(said)
    tools = head_of(program)["tools"]
    return [
        {"tool": program.tools[tool], "class": tools[tool]["class"], "rules": rules} for tool, rules in about.items()
    ]


def _list(body: BodyRef, part: str) -> list[Any]:
    found: Any = body.data.get(part, ())
    return [*map(thawed, found)]


def _autonomy(bodies: tuple[BodyRef, ...]) -> dict[str, Any]:
    """The strictest answer for each class."""
    answers: dict[RiskClass, Answer] = dict.fromkeys(RISK_CLASSES, "allow")
    for body in bodies:
        for risk, answer in body.data.get("autonomy", {}).items():
            answers[risk] = min(answers[risk], answer, key=RANK.__getitem__)
    return {"classes": answers, "from": _origins(bodies, "autonomy")}


def _approvals(bodies: tuple[BodyRef, ...]) -> dict[str, Any]:
    """Who is asked, how long, how far a yes may reach: the strictest of all bodies."""
    said = [body.data.get("approval", {}) for body in bodies]
    return {
        "none": any(one.get("none") for one in said),
        "routes": sorted({route for one in said for route in one.get("routes", [])}),
        "fallback": sorted({route for one in said for route in one.get("fallback", [])}),
        "timeout": min((int(one["timeout"]) for one in said if "timeout" in one), default=None),
        "remember": min((one["remember"] for one in said if "remember" in one), key=SCOPES.index, default="exact"),
        "remember_for": min((int(one["remember_for"]) for one in said if "remember_for" in one), default=None),
        "from": _origins(bodies, "approval"),
    }


def _limits(run: ResolvedAgentExecution, bodies: tuple[BodyRef, ...]) -> Iterator[dict[str, Any]]:
    for body in bodies:
        for index, limit in enumerate(_list(body, "limits")):
            shown = {key: value for key, value in limit.items() if key != "tools"}
            if "tools" in limit:
                shown["tools"] = _names(run, limit["tools"])
            yield {**shown, **_place(body, "limits", index)}


def _requires(run: ResolvedAgentExecution, bodies: tuple[BodyRef, ...]) -> Iterator[dict[str, Any]]:
    for body in bodies:
        for index, require in enumerate(_list(body, "require")):
            sets = {"earlier": _names(run, require["earlier"]), "later": _names(run, require["later"])}
            yield {**require, **sets, **_place(body, "require", index)}


def _names(run: ResolvedAgentExecution, ids: str) -> list[Any]:
    program = run.resolver.program
    return [program.tools[tool] for tool in sorted(tools_in(program, ids))]


def _runtime(run: ResolvedAgentExecution, bodies: tuple[BodyRef, ...]) -> dict[str, Any]:
    """What the loop keeps to, defaults included."""
    return {"values": run.runtime._asdict(), "from": _origins(bodies, "runtime")}


def _shared(bodies: tuple[BodyRef, ...], part: str, names: Callable[[Any], list[str]]) -> dict[str, Any]:
    """The names that every body which speaks of the part gives."""
    said: list[Any] = [body.data.get(part) for body in bodies if part in body.data]
    return {"names": _common(names(one) for one in said), "from": _origins(bodies, part)}


def _common(lists: Iterable[list[str]]) -> list[str]:
    common: set[str] | None = None
    for one in lists:
        common = set(one) if common is None else common & set(one)
    return sorted(common or ())


def _delegation(run: ResolvedAgentExecution, bodies: tuple[BodyRef, ...]) -> dict[str, Any]:
    """Whom it may delegate to, and how deep."""
    rights = run.rights
    granted: Mapping[str, Mapping[str, Any]] = run.stack.own.root.data.get("delegate", {}).get("to", {})
    to = {
        agent: {"independent": free} | {key: said for key, said in granted[agent].items() if key == "because"}
        for agent, free in rights.to.items()
    }
    return {"to": to, "depth": rights.depth_left, "from": _origins(bodies, "delegate")}


def _drift(bodies: tuple[BodyRef, ...]) -> dict[str, Any]:
    """What is done with a tool that changed, where a body says so: the strictest."""
    answers: dict[str, Answer] = {}
    for body in bodies:
        for kind, answer in body.data.get("drift", {}).items():
            answers[kind] = min(answers.get(kind, answer), answer, key=RANK.__getitem__)
    return {"answers": answers, "from": _origins(bodies, "drift")}
