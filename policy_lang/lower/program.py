"""From the bound policy to the program and its origins.

In: a `Bound` without errors. Out: `ProgramData` in canonical order, and `Origins` parallel to it: where each part
was written. Order, duplication, files, groups, lets and profiles leave no trace in the program (SPEC 14).
"""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar, cast

from policy_lang import ast
from policy_lang.bound import Bound, BoundBody, Placed
from policy_lang.lower.condition import lower_conditions
from policy_lang.lower.settings import (
    approval,
    autonomy,
    connect,
    delegate,
    drift,
    memory,
    runtime,
    skills,
    strictest_of,
)
from policy_lang.values import encode_number
from zcpolicy.program import SEMANTICS, pack
from zcpolicy.shapes import (
    Agent,
    Body,
    BodyOrigins,
    Hints,
    Limit,
    Only,
    Origins,
    Place,
    ProgramData,
    Require,
    Rule,
    Tool,
    ToolIds,
    Window,
)  # fmt: skip

MAX_TEXT = 160
"""Characters of a statement that an origin keeps."""

HINTS = {"readOnlyHint": "read_only", "destructiveHint": "destructive", "openWorldHint": "open_world"}

T = TypeVar("T")

_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode
"""One encoder for all elements: making one costs as much as using it."""


def lower(bound: Bound) -> tuple[ProgramData, Origins]:
    """The program of a policy and where it came from."""
    lowering = _Lowering(bound)
    agents: dict[str, Agent] = {}
    origins: Origins = {"agents": {}, "ceiling": {}, "skills": {}}
    for name, body in sorted(bound.agents.items()):
        lowered, origins["agents"][name] = bound.kept.lowered.get(name) or lowering.body((body,))
        agents[name] = {"body": lowered, "narrows": body.parent}
    ceiling, origins["ceiling"] = lowering.body(bound.ceilings)
    skills_: dict[str, Body] = {}
    for name, body in sorted(bound.skills.items()):
        skills_[name], origins["skills"][name] = lowering.body((body,))
    data: ProgramData = {
        "semantics": SEMANTICS,
        "tools": [_tool(bound, number) for number in range(len(bound.catalogue.tools))],
        "servers": sorted(bound.catalogue.servers),
        "labels": list(bound.labels),
        "scopes": list(bound.scopes),
        "context": bound.context,
        "agents": agents,
        "ceiling": ceiling,
        "skills": skills_,
    }
    return data, origins


def _tool(bound: Bound, number: int) -> Tool:
    info = bound.catalogue.tools[number]
    server, name = info.key
    out: Tool = {"server": server, "name": name, "class": bound.classes[number], "schema": info.schema}
    if server in bound.catalogue.trusted:
        hints = {HINTS[key]: value for key, value in info.hints.items() if key in HINTS}
        out["hints"] = cast(Hints, hints)
    if info.runs_tools:
        out["runs_tools"] = True
    return out


class _Lowering:
    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self._packed: dict[frozenset[int], ToolIds] = {}

    def body(self, bodies: tuple[BoundBody, ...]) -> tuple[Body, BodyOrigins]:
        """One body; several ceilings become one, which decides alike."""
        if not bodies:
            return {"kind": "ceiling", "name": "ceiling"}, {}
        first = bodies[0]
        statements = tuple(placed for body in bodies for placed in body.statements)
        kind = "agent" if first.kind == "profile" else first.kind
        out: Body = {"kind": kind, "name": first.name}
        origins: BodyOrigins = {"place": place(Placed(cast(ast.Statement, first.node), first.file), first.name)}
        self._lists(statements, _pot(first), out, origins)
        others: dict[str, list[Place]] = {}
        self._settings(bodies, statements, out, others)
        if others:
            origins["other"] = others
        return out, origins

    def _lists(self, statements: tuple[Placed, ...], pot: str, out: Body, origins: BodyOrigins) -> None:
        rules, places = _collect(statements, ast.Rule, self._rule)
        if rules:
            out["rules"], origins["rules"] = rules, places
        onlys, places = _collect(statements, ast.Only, self._only)
        if onlys:
            out["only"], origins["only"] = onlys, places
        limits, places = _collect(statements, ast.Limit, lambda node, placed: self._limit(node, placed, pot))
        if limits:
            out["limits"], origins["limits"] = limits, places
        requires, places = _collect(statements, ast.Require, self._require)
        if requires:
            out["require"], origins["require"] = requires, places

    def _settings(
        self, bodies: tuple[BoundBody, ...], statements: tuple[Placed, ...], out: Body, others: dict[str, list[Place]]
    ) -> None:
        said = {
            "autonomy": (ast.Autonomy,), "connect": (ast.Connect,), "skills": (ast.Skills,), "memory": (ast.Memory,),
            "delegate": (ast.Delegate, ast.DelegateDepth, ast.DelegateNone), "approval": (ast.Approval,),
            "runtime": (ast.Runtime,), "drift": (ast.OnDrift,),
        }  # fmt: skip
        grants = bodies[0].kind == "agent"
        values: dict[str, object] = {
            "autonomy": autonomy(statements),
            "connect": connect(self.bound, statements, grants, self.pack),
            "skills": skills(self.bound, statements, grants),
            "memory": memory(self.bound, statements, grants),
            "delegate": delegate(self.bound, statements),
            "approval": approval(statements),
            "runtime": runtime(statements),
            "drift": drift(statements),
        }
        for key, kinds in said.items():
            if values[key] is not None:
                cast(dict[str, object], out)[key] = values[key]
            places = [place(placed) for placed in statements if isinstance(placed.node, kinds)]
            if places:
                others[key] = places
        for key, strictest in strictest_of(statements).items():
            others[key] = [place(placed) for placed in strictest]

    def pack(self, ids: frozenset[int]) -> ToolIds:
        """`pack`, remembered: most sets occur many times."""
        known = self._packed.get(ids)
        if known is None:
            known = self._packed[ids] = pack(ids)
        return known

    def _set(self, node: ast.ToolSet) -> ToolIds:
        return self.pack(self.bound.ids(node))

    def _rule(self, node: ast.Rule, placed: Placed) -> Rule:
        out: Rule = {"effect": node.effect, "tools": self._set(node.tools)}
        condition = lower_conditions(node, self.bound, placed.file)
        if condition is not None:
            out["if"] = condition
        if node.because is not None:
            out["because"] = node.because.value
        if node.approval:
            out["approval"] = True
        if node.label is not None:
            out["label"] = node.label.text
        if node.unclear_ask:
            out["unclear"] = "ask"
        return out

    def _only(self, node: ast.Only, placed: Placed) -> Only:
        out: Only = {"tools": self._set(node.tools) if node.tools is not None else ""}
        if node.because is not None:
            out["because"] = node.because.value
        return out

    def _limit(self, node: ast.Limit, placed: Placed, pot: str) -> Limit:
        amount = node.amount
        text = str(amount.seconds) if isinstance(amount, ast.Duration) else encode_number(_amount(amount))
        out: Limit = {"amount": text, "unit": node.unit, "window": _window(node.window), "pot": pot}
        if isinstance(amount, ast.Money):
            out["currency"] = amount.currency
        if node.argument is not None:
            out["argument"] = list(node.argument.path)
        if node.tools is not None:
            out["tools"] = self._set(node.tools)
        if isinstance(node.each, ast.Operand):
            out["each"] = ["args", *node.each.path]
        elif node.each is not None:
            out["each"] = [node.each]
        return out

    def _require(self, node: ast.Require, placed: Placed) -> Require:
        out: Require = {"earlier": self._set(node.earlier), "later": self._set(node.later)}
        if node.within is not None:
            out["within"] = str(node.within.seconds)
        if node.same:
            out["same"] = sorted(list(operand.path) for operand in node.same)
        if node.by_any_agent:
            out["by_any_agent"] = True
        if node.because is not None:
            out["because"] = node.because.value
        return out


S = TypeVar("S", bound=ast.Statement)


def _collect(
    statements: tuple[Placed, ...], kind: type[S], make: Callable[[S, Placed], T]
) -> tuple[list[T], list[list[Place]]]:
    """The lowered statements of a kind, sorted, without duplicates; and for each all places that say it."""
    said: dict[str, tuple[T, list[Place]]] = {}
    for placed in statements:
        if isinstance(placed.node, kind):
            element = make(placed.node, placed)
            key = _canonical(element)
            said.setdefault(key, (element, []))[1].append(place(placed))
    ordered = [said[key] for key in sorted(said)]
    return [element for element, _ in ordered], [places for _, places in ordered]


def place(placed: Placed, shown: str | None = None) -> Place:
    """File, line and text of a statement."""
    source, span = placed.file.source, placed.node.span
    text = shown
    if text is None:
        text = " ".join(source.text[span.start : min(span.end, span.start + 4 * MAX_TEXT)].split())
        text = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    return [source.name, str(source.position(span.start).line), text]


def _pot(body: BoundBody) -> str:
    match body.kind:
        case "ceiling":
            return "ceiling"
        case "skill":
            return f"skill:{body.name}"
        case _:
            return f"agent:{body.name}"


def _amount(amount: ast.Number | ast.Money) -> int | Decimal:
    return amount.value if isinstance(amount, ast.Number) else amount.amount


def _window(node: ast.Window | None) -> Window:
    if node is None:
        return {"kind": "session"}
    if node.kind == "rolling":
        return {"kind": "rolling", "seconds": str(node.seconds)}
    if node.kind == "calendar" and node.calendar is not None and node.zone is not None:
        return {"kind": "calendar", "calendar": node.calendar, "zone": node.zone.value}
    return {"kind": node.kind}
