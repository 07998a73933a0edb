"""Where a condition reads its values from: `args.a.b`, `session.x`, `tool.risk`, `agent.depth`, `paths`, `urls.host`.

In: an operand and the site that it stands at (tool, schema, agent). Out: an `Operand`: its kind, and how to read it.
"""

from __future__ import annotations

from zcpolicy.call import Malformed, judge_value
from zcpolicy.exact import is_list, is_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from zcpolicy.facts import Session
    from zcpolicy.mentions import Found
    from zcpolicy.predicates.refs import Where
    from zcpolicy.shapes import Schema, Tool

    Read = Callable[["Call"], Any]

URL_PARTS: Final = ("host", "scheme", "port")
RISKS: Final = ("read", "low", "medium", "high")


class _Missing:
    """What reads as absent: not sent, null, not known."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Call:
    """One call as conditions see it: judged arguments and the facts of the acting execution."""

    __slots__ = ("_found", "_where", "arguments", "labels", "session", "tool")

    def __init__(self, arguments: dict[str, Any], session: Session, labels: frozenset[str], tool: Tool) -> None:
        self.arguments = arguments
        self.session = session
        self.labels = labels
        self.tool = tool
        self._found: Found | None = None
        self._where: Where | None = None

    @property
    def found(self) -> Found:
        """The paths and URLs that the call mentions."""
        if self._found is None:
            from zcpolicy.mentions import find

            self._found = find(self.tool["schema"], self.arguments)
        return self._found

    @property
    def where(self) -> Where:
        """Where the process that opens the call's paths starts."""
        if self._where is None:
            from zcpolicy.predicates.refs import Where

            session, server = self.session, self.tool["server"]
            cwd = session.cwd if server is None else session.server_cwd.get(server)
            self._where = Where(cwd, session.env.get("HOME"), session.platform, session.resolve_link, session.env)
        return self._where

    def started_at(self, folder: str) -> Call:
        """The same call, were this the working directory; no link is looked at."""
        call = Call(self.arguments, self.session, self.labels, self.tool)
        call._where = self.where._replace(cwd=folder, resolve=None)
        return call


class Site:
    """Where a condition stands: the tool that is judged, the acting agent, and whether its rule grants."""

    __slots__ = ("agent", "context", "depth", "grants", "tool")

    def __init__(self, tool: Tool, agent: str, depth: int, context: Mapping[str, Schema], grants: bool) -> None:
        self.tool = tool
        self.agent = agent
        self.depth = depth
        self.context = context
        self.grants = grants


class Operand:
    """`kind`: a schema's kind, `host`, `scheme`, `risk`, `paths`, `urls`, `urls.host` …

    `item`: the kind of a list's elements. `looks`: whether it reads arguments. `declared`: False for an argument
    that the tool does not have (`read` then gives what was sent, where the tool takes more than it names).
    `constant`: whether it reads the same in every call.
    """

    __slots__ = ("constant", "declared", "item", "kind", "looks", "read")

    def __init__(
        self,
        kind: str,
        read: Read,
        *,
        looks: bool = True,
        declared: bool = True,
        item: str = "",
        constant: bool = False,
    ) -> None:
        self.constant = constant
        self.kind = kind
        self.read = read
        self.looks = looks
        self.declared = declared
        self.item = item


def operand(path: list[str], site: Site) -> Operand:
    """The operand of a compiled condition at this site. What does not exist there reads as MISSING."""
    root, rest = path[0], tuple(path[1:])
    if root == "args" and rest:
        return _argument(rest, site)
    if root == "session" and rest:
        return _session(rest, site)
    if root in ("paths", "urls"):
        return _mentioned(root, rest)
    if root == "tool" and rest:
        return _constant(*_of_tool(rest[0], site.tool))
    if root == "agent" and rest:
        return _constant(*(("integer", site.depth) if rest[0] == "depth" else ("string", site.agent)))
    return _constant("any", MISSING)


def _constant(kind: str, value: object) -> Operand:
    return Operand(kind, lambda call: value, looks=False, constant=True)


def _of_tool(name: str, tool: Tool) -> tuple[str, object]:
    if name == "risk":
        return "risk", tool["class"]
    if name == "name":
        return "string", tool["name"]
    if name == "server":
        return "string", tool["server"] or ""  # the host's own tools are of no server, and of none that has a name
    return "boolean", tool.get("hints", {}).get(name, MISSING)


def _mentioned(root: str, rest: tuple[str, ...]) -> Operand:
    if root == "paths":
        return Operand("paths", lambda call: call.found.paths, item="path")
    if not rest:
        return Operand("urls", lambda call: call.found.urls, item="url")
    part = rest[0]
    if part not in URL_PARTS:
        return _constant("any", MISSING)

    def read(call: Call) -> list[object]:
        from zcpolicy.predicates.url import read_url

        return [_part(read_url(url), part) for url in call.found.urls]

    return Operand("urls", read, item="integer" if part == "port" else part)


def _part(url: Any, part: str) -> object:
    """One part of a parsed URL, MISSING where it has none or could not be read."""
    found = None if url is None else getattr(url, part)
    return MISSING if found is None or found == "" else found


# --- args --------------------------------------------------------------------------------------------------------


def locate(schema: Schema, path: tuple[str, ...]) -> tuple[Schema | None, tuple[str, ...]]:
    """The schema that a path of names ends at, and the names left: a URL's part, or what the schema leaves open.

    None as the schema: this tool declares no such argument; names are left if it can be sent all the same. A value of
    another kind that has no members is declared, and does not fit: `null`, so that every test of it is UNKNOWN.
    """
    for index, name in enumerate(path):
        kind = schema["kind"]
        if kind == "url" and index == len(path) - 1 and name in URL_PARTS:
            return schema, path[index:]
        if kind == "any" or (kind == "list" and index == len(path) - 1 and _has_parts(schema, name)):
            return schema, path[index:]
        if kind != "object":
            return _ILL_FITTING, ()
        fields = schema.get("fields", {})
        extra = schema.get("extra", "deny" if index == 0 else "allow")
        if name in fields:
            schema = fields[name]
        elif not isinstance(extra, str):
            schema = extra
        elif extra == "deny" or fields:
            return None, () if extra == "deny" else path[index:]
        else:
            return _OPEN, path[index:]
    return schema, ()


_OPEN: Final[Schema] = {"kind": "any", "unreviewed": True}
_ILL_FITTING: Final[Schema] = {"kind": "null"}


def _has_parts(schema: Schema, name: str) -> bool:
    """Whether it is a list of URLs, and this a part of each."""
    return name in URL_PARTS and "item" in schema and schema["item"]["kind"] == "url"


def dig(value: Any, path: tuple[str, ...]) -> Any:
    """The value at a path of names, MISSING where there is none or it is null."""
    for name in path:
        if not is_object(value):
            return MISSING
        value = value.get(name)
        if value is None:
            return MISSING
    return value


def _argument(path: tuple[str, ...], site: Site) -> Operand:
    schema, rest = locate(site.tool["schema"], path)
    if schema is None:
        return Operand(
            "any",
            lambda call: dig(call.arguments, path),
            looks=bool(rest),
            declared=False,
            item="any",
            constant=not rest,
        )
    kind = schema["kind"]
    if kind in ("url", "list") and rest:
        return _url_part(kind, rest[0], lambda call: dig(call.arguments, path[:-1]))
    item = schema["item"]["kind"] if kind == "list" and "item" in schema else "any"
    if len(path) == 1:
        return _top(path[0], kind, item)
    return Operand(kind, lambda call: dig(call.arguments, path), item=item)


def _top(name: str, kind: str, item: str) -> Operand:
    def read(call: Call) -> Any:
        value = call.arguments.get(name)
        return MISSING if value is None else value

    return Operand(kind, read, item=item)


def _url_part(kind: str, part: str, read_url: Read, looks: bool = True) -> Operand:
    """A part of a URL, or of each URL of a list; a list's URL that cannot be read is MISSING among the others."""
    named = "integer" if part == "port" else part

    def one(value: object) -> object:
        from zcpolicy.predicates.url import parse_url

        return _part(parse_url(value), part)

    def each(call: Call) -> object:
        values = read_url(call)
        return [one(value) for value in values] if is_list(values) else MISSING

    if kind == "list":
        return Operand("list", each, looks=looks, item=named)
    return Operand(named, lambda call: one(read_url(call)), looks=looks)


# --- session -----------------------------------------------------------------------------------------------------


def _session(path: tuple[str, ...], site: Site) -> Operand:
    name, rest = path[0], path[1:]
    if name == "interactive" and not rest and name not in site.context:
        return Operand("boolean", lambda call: call.session.interactive, looks=False)
    if name == "cwd" and not rest and name not in site.context:
        return Operand("path", _cwd, looks=False)
    schema = site.context.get(name)
    if schema is None:
        return _constant("any", MISSING)
    declared = schema
    ends, left = locate(schema, rest)
    if ends is None:
        return _constant("any", MISSING)

    below = rest[:-1] if left and ends["kind"] in ("url", "list") else rest

    def read(call: Call) -> object:
        value = call.session.context.get(name)
        try:
            kept = MISSING if value is None else judge_value(declared, value)
        except Malformed:
            return MISSING
        return dig(kept, below)

    if below is not rest:
        return _url_part(ends["kind"], left[0], read, looks=False)
    item = ends["item"]["kind"] if ends["kind"] == "list" and "item" in ends else "any"
    return Operand(ends["kind"], read, looks=False, item=item)


def _cwd(call: Call) -> object:
    return MISSING if call.session.cwd is None else call.session.cwd
