"""What a body says once: its statements of a kind, combined to the strictest.

In: a body's statements. Out: the settings of the program's `Body`; `None` where nothing was said.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeVar

from policy_lang import ast
from policy_lang.bound import Bound, Placed
from policy_lang.gather import LoadedFile
from zcpolicy.shapes import Answer, Approval, Connect, Delegate, DelegateTo, Memory, RiskClass, ToolIds

S = TypeVar("S", bound=ast.Statement)

STRICTNESS: tuple[Answer, ...] = ("deny", "ask", "allow")
NARROWNESS: tuple[Literal["never", "exact", "tool"], ...] = ("never", "exact", "tool")
LEVELS: dict[ast.Level, dict[RiskClass, Answer]] = {
    "readonly": {"read": "allow", "low": "deny", "medium": "deny", "high": "deny"},
    "supervised": {"read": "allow", "low": "ask", "medium": "ask", "high": "ask"},
    "full": {"read": "allow", "low": "allow", "medium": "allow", "high": "allow"},
}
"""What the words of `autonomy` mean, class by class."""

DRIFTS = ("description", "schema", "launch")


def _every(statements: Iterable[Placed], kind: type[S]) -> Iterator[tuple[S, LoadedFile]]:
    for placed in statements:
        if isinstance(placed.node, kind):
            yield placed.node, placed.file


def _strictest(answers: Iterable[Answer]) -> Answer:
    return min(answers, key=STRICTNESS.index)


def autonomy(statements: tuple[Placed, ...]) -> dict[RiskClass, Answer] | None:
    """The cap of each class; `full` alone is no cap."""
    tables = [LEVELS[node.level] if node.level else dict(node.table) for node, _ in _every(statements, ast.Autonomy)]
    if not tables:
        return None
    out: dict[RiskClass, Answer] = {risk: _strictest(table[risk] for table in tables) for risk in LEVELS["full"]}
    return None if out == LEVELS["full"] else out


def strictest_of(statements: tuple[Placed, ...]) -> dict[str, list[Placed]]:
    """Of several `autonomy`, for each class the strictest: `{"autonomy high": …}`."""
    tables = [
        (LEVELS[placed.node.level] if placed.node.level else dict(placed.node.table), placed)
        for placed in statements
        if isinstance(placed.node, ast.Autonomy)
    ]
    if len(tables) < 2:
        return {}
    return {
        f"autonomy {risk}": [placed for table, placed in tables if table[risk] == least]
        for risk in LEVELS["full"]
        for least in (_strictest(table[risk] for table, _ in tables),)
    }


def connect(
    bound: Bound, statements: tuple[Placed, ...], grants: bool, pack: Callable[[frozenset[int]], ToolIds]
) -> Connect | None:
    """What may be connected; a granting agent that says nothing connects nothing."""
    said = list(_every(statements, ast.Connect))
    if not said:
        return {"servers": [], "tools": ""} if grants else None
    servers: frozenset[str] = frozenset(bound.catalogue.servers)
    tools = bound.catalogue.everything()
    for node, file in said:
        full = [bound.full(file, "bundle", name.text) for name in node.bundles]
        bundles = [bound.bundles[name] for name in full if name is not None and name in bound.bundles]
        servers &= frozenset().union(*(bundle.servers for bundle in bundles))
        tools &= frozenset().union(*(bundle.tools for bundle in bundles))
    return {"servers": sorted(servers), "tools": pack(tools)}


def skills(bound: Bound, statements: tuple[Placed, ...], grants: bool) -> list[str] | None:
    """The skills that may be loaded, by full name."""
    said = [
        {full for name in node.names if (full := bound.full(file, "skill", name.text)) is not None}
        for node, file in _every(statements, ast.Skills)
    ]
    if not said:
        return [] if grants else None
    return sorted(said[0].intersection(*said[1:]))


def memory(bound: Bound, statements: tuple[Placed, ...], grants: bool) -> Memory | None:
    """The scopes that may be read and written; a half that a statement leaves out is none."""
    said = list(_every(statements, ast.Memory))
    if not said:
        return {"read": [], "write": []} if grants else None
    read = [_scopes(bound, node.read, file) for node, file in said]
    write = [_scopes(bound, node.write, file) for node, file in said]
    return {"read": sorted(read[0].intersection(*read[1:])), "write": sorted(write[0].intersection(*write[1:]))}


def _scopes(bound: Bound, names: tuple[ast.Name, ...] | None, file: LoadedFile) -> set[str]:
    out: set[str] = set()
    for name in names or ():
        declared = name.text == "own" or name.text in bound.scopes
        out.add(name.text if declared else bound.full(file, "agent", name.text) or name.text)
    return out


def delegate(bound: Bound, statements: tuple[Placed, ...]) -> Delegate | None:
    """To whom, how deep, or not at all."""
    said: dict[str, list[ast.Delegate]] = {}
    for node, file in _every(statements, ast.Delegate):
        for name in node.agents:
            full = bound.full(file, "agent", name.text) or name.text
            said.setdefault(full, []).append(node)
    to = {full: _delegate_to(nodes) for full, nodes in said.items()}
    depths = [int(node.depth.value) for node, _ in _every(statements, ast.DelegateDepth)]
    none = any(True for _ in _every(statements, ast.DelegateNone))
    if not to and not depths and not none:
        return None
    out: Delegate = {"to": to}
    if depths:
        out["depth"] = str(min(depths))
    if none:
        out["none"] = True
    return out


def _delegate_to(nodes: list[ast.Delegate]) -> DelegateTo:
    """What is said of one child: independent if anybody says so, for that reason; of several reasons the first in order."""
    out: DelegateTo = {}
    free = [node for node in nodes if node.independent]
    if free:
        out["independent"] = True
    reasons = [node.because.value for node in free or nodes if node.because is not None]
    if reasons:
        out["because"] = min(reasons)
    return out


def approval(statements: tuple[Placed, ...]) -> Approval | None:
    """All routes, the shortest times, the narrowest scope."""
    said = [node for node, _ in _every(statements, ast.Approval)]
    if not said:
        return None
    out: Approval = {}
    if any(node.none for node in said):
        out["none"] = True
    routes = sorted({node.route.value for node in said if node.route is not None})
    if routes:
        out["routes"] = routes
    fallback = sorted({node.on_no_approver.value for node in said if isinstance(node.on_no_approver, ast.String)})
    if fallback and not any(node.on_no_approver == "deny" for node in said):
        out["fallback"] = fallback
    scopes = [node.remember for node in said if node.remember is not None]
    if scopes:
        out["remember"] = next(scope for scope in NARROWNESS if scope in scopes)
    timeouts = [node.timeout.seconds for node in said if node.timeout is not None]
    if timeouts:
        out["timeout"] = str(min(timeouts))
    kept = [node.remember_for.seconds for node in said if node.remember_for is not None]
    if kept:
        out["remember_for"] = str(min(kept))
    return out


def runtime(statements: tuple[Placed, ...]) -> dict[str, str] | None:
    """The least of each number, `off` where anybody says off."""
    out: dict[str, str] = {}
    for node, _ in _every(statements, ast.Runtime):
        for item in node.items:
            if isinstance(item.value, ast.Boolean):
                off = not item.value.value or out.get(item.key) == "off"
                out[item.key] = "off" if off else "on"
                continue
            number = item.value.seconds if isinstance(item.value, ast.Duration) else int(item.value.value)
            out[item.key] = str(min(number, int(out.get(item.key, number))))
    return out or None


def drift(statements: tuple[Placed, ...]) -> dict[str, Answer] | None:
    """For each kind of drift that anybody speaks of, the strictest answer."""
    said: dict[str, list[Answer]] = {}
    for node, _ in _every(statements, ast.OnDrift):
        for kind in DRIFTS if node.kind in (None, "any") else (node.kind,):
            said.setdefault(kind, []).append(node.answer)
    return {kind: _strictest(answers) for kind, answers in said.items()} or None
