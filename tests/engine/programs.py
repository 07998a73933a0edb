"""Compiled policies written by hand, as short as tests want them."""

from typing import Any

from zcpolicy import Program, ResolvedAgentExecution, Resolver, Session

STRING = {"kind": "string"}


def schema(*required: str, extra: Any = "deny", **fields: Any) -> Any:
    """An object schema; a field is a kind or a whole schema."""
    return {
        "kind": "object",
        "fields": {name: {"kind": field} if isinstance(field, str) else field for name, field in fields.items()},
        "required": sorted(required),
        "extra": extra,
    }


def tool(name: str, arguments: dict[str, Any] | None = None, *, risk: str = "medium", **more: Any) -> dict[str, Any]:
    """A tool of the host, or `server/name`."""
    server, slash, bare = name.rpartition("/")
    return {"server": server if slash else None, "name": bare, "class": risk, "schema": arguments or schema(), **more}


def leaf(left: str, test: str, *right: Any, grants: bool = True, **more: Any) -> dict[str, Any]:
    """`args.x == 1`; numbers are written as the compiled form writes them."""
    return {"test": test, "left": left.split("."), "right": [value(one) for one in right], "grants": grants, **more}


def value(one: Any) -> Any:
    return {"n": str(one)} if isinstance(one, int) and not isinstance(one, bool) else one


def rule(effect: str, tools: str, condition: Any = None, **more: Any) -> dict[str, Any]:
    """`tools` are packed ids."""
    return {"effect": effect, "tools": tools, **({} if condition is None else {"if": condition}), **more}


def body(name: str, *rules: Any, kind: str = "agent", **parts: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"kind": kind, "name": name, **parts}
    if rules:
        said["rules"] = list(rules)
    return said


def limit(amount: str, unit: str = "calls", *, pot: str = "agent:a", **more: Any) -> dict[str, Any]:
    return {"amount": amount, "unit": unit, "pot": pot, "window": {"kind": "session"}, **more}


def data(tools: list[Any], *bodies: Any, narrows: dict[str, str] | None = None, **head: Any) -> dict[str, Any]:
    """The data of a program; tools get their order, servers are those of the tools."""
    chains = narrows or {}
    ordered = sorted(tools, key=lambda one: (one["server"] or "", one["name"]))
    return {
        "semantics": "1",
        "tools": ordered,
        "servers": sorted({one["server"] for one in tools if one["server"]}),
        "labels": [],
        "scopes": [],
        "context": {},
        "agents": {one["name"]: {"body": one, "narrows": chains.get(one["name"])} for one in bodies},
        "ceiling": {"kind": "ceiling", "name": "ceiling"},
        "skills": {},
        **head,
    }


def program(tools: list[Any], *bodies: Any, **more: Any) -> Program:
    whole: Any = data(tools, *bodies, **more)
    origins: Any = {"agents": {}, "ceiling": {}, "skills": {}}
    return Program.build(whole, origins)


def run(tools: list[Any], *rules: Any, session: Session | None = None, **parts: Any) -> ResolvedAgentExecution:
    """The execution of agent `a`, whose body is these rules and parts."""
    resolver = Resolver(program(tools, body("a", *rules, **parts)))
    return resolver.resolve("a", session=session or Session(interactive=True))
