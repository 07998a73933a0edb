"""Small catalogues: host tools, a declared server, a server with an MCP list whose strings nobody reviewed.

Out: a `Shelf`: the tools, the declarations that make them, and the catalogue file beside the policy.
"""

import json
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from hypothesis import strategies as st

KINDS = (
    "string", "path", "url", "shell", "command", "integer", "number", "boolean", "list<string>", "list<path>",
    "list<url>", "object", "any",
)  # fmt: skip

NAMES_OF_KIND = {
    "string": ("to", "text"), "path": ("path", "target"), "url": ("url", "text"), "shell": ("command",),
    "command": ("command",), "integer": ("n",), "number": ("n", "amount"), "boolean": ("flag",),
    "list<string>": ("to", "tags"), "list<path>": ("files",), "list<url>": ("links",), "object": ("data",),
    "any": ("blob", "data"),
}  # fmt: skip
"""Few names, so that tools share them, with equal kinds and with different ones."""

DEFAULTS = {
    "string": '"abc"', "path": '"/w/.env"', "url": '"file:///w/.env"', "shell": '"git push"', "integer": "2",
    "number": "2.5", "boolean": "true",
}  # fmt: skip


@dataclass(frozen=True)
class Param:
    """One parameter. `field`: the kind below an object, for `args.data.x`."""

    name: str
    kind: str
    optional: bool = False
    default: str | None = None
    nullable: bool = False
    enum: tuple[str, ...] = ()
    reviewed: bool = True
    fields: tuple["Param", ...] = ()

    def statement(self) -> str:
        """As a `tool` statement has it."""
        default = f" = {self.default}" if self.default is not None else ""
        return f"{self.name}{'?' if self.optional else ''}: {self.kind}{default}"

    def schema(self) -> dict[str, Any]:
        """As a JSON Schema has it."""
        made: dict[str, Any] = {
            "type": {"shell": "string", "path": "string", "url": "string"}.get(self.kind, self.kind)
        }
        if self.kind == "any":
            made = {}
        if self.kind == "list<string>":
            made = {"type": "array", "items": {"type": "string"}}
        if self.kind == "object":
            made = {"type": "object", "properties": {one.name: one.schema() for one in self.fields}}
            made["required"] = [one.name for one in self.fields if not one.optional]
            made["additionalProperties"] = False
        if self.enum:
            made["enum"] = list(self.enum)
        if self.nullable:
            made = {"anyOf": [made, {"type": "null"}]}
        if self.default is not None:
            made["default"] = json.loads(self.default)
        return made


@dataclass(frozen=True)
class Tool:
    """One tool of the catalogue. `listed`: by a catalogue file, not by a statement."""

    server: str | None
    name: str
    params: tuple[Param, ...]
    risk: str | None = None
    listed: bool = False
    hints: tuple[tuple[str, bool], ...] = ()
    open: bool = False

    @property
    def ref(self) -> str:
        """As the language writes it."""
        return self.name if self.server is None else f"{self.server}/{self.name}"

    @property
    def key(self) -> tuple[str | None, str]:
        """Its identity."""
        return (self.server, self.name)


@dataclass(frozen=True)
class Shelf:
    """All tools, the lines that declare them, and the files that lie beside the policy."""

    tools: tuple[Tool, ...]
    lines: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = field(default=())

    @property
    def servers(self) -> tuple[str, ...]:
        """The MCP servers."""
        return tuple(dict.fromkeys(tool.server for tool in self.tools if tool.server is not None))

    def matching(self, ref: str) -> tuple[Tool, ...]:
        """The tools that a reference or pattern names."""
        if ref == "any":
            return self.tools
        return tuple(
            tool for tool in self.tools if ("/" in ref) == (tool.server is not None) and fnmatchcase(tool.ref, ref)
        )


HOST_NAMES = ("fs_read", "fs_write", "note", "sh", "pay")
SERVER_NAMES = {"hub": ("get_me", "get_issue", "push_file"), "web": ("fetch", "get_me")}
RISKS = ("read", "low", "medium", "high")


def rarely(one_in: int) -> st.SearchStrategy[bool]:
    """True about once in so many; where Hypothesis looks first, it is False."""
    return st.sampled_from([False] * (one_in - 2) + [True, False])


@st.composite
def params(draw: st.DrawFn, kinds: tuple[str, ...]) -> tuple[Param, ...]:
    """Up to three parameters of different names."""
    made: dict[str, Param] = {}
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=3)):
        name = draw(st.sampled_from(NAMES_OF_KIND[kind]))
        how = draw(st.sampled_from(("required", "required", "optional", "default")))
        default = DEFAULTS.get(kind) if how == "default" else None
        made[name] = Param(name, kind, how == "optional", default)
    return tuple(made.values())


@st.composite
def listed_params(draw: st.DrawFn) -> tuple[Param, ...]:
    """The parameters of a listed tool: strings are unreviewed; enums, nulls, nested objects."""
    made: dict[str, Param] = {}
    for kind in draw(
        st.lists(st.sampled_from(("string", "integer", "boolean", "list<string>", "object", "any")), max_size=3)
    ):
        name = draw(st.sampled_from(NAMES_OF_KIND[kind]))
        how = draw(st.sampled_from(("required", "optional", "nullable", "enum", "default")))
        made[name] = Param(
            name, kind, how != "required", DEFAULTS.get(kind) if how == "default" else None, how == "nullable",
            ("abc", "x") if how == "enum" and kind == "string" else (), reviewed=False,
            fields=(Param("n", "integer", optional=True), Param("text", "string", reviewed=False)) if kind == "object" else (),
        )  # fmt: skip
    return tuple(made.values())


@st.composite
def shelves(draw: st.DrawFn) -> Shelf:
    """A catalogue: one to four host tools, perhaps a declared server, perhaps a listed one."""
    tools: list[Tool] = []
    lines: list[str] = []
    for name in draw(st.lists(st.sampled_from(HOST_NAMES), min_size=1, max_size=4, unique=True)):
        tool = Tool(None, name, draw(params(KINDS)), draw(st.sampled_from((*RISKS, None))))
        tools.append(tool)
        lines.append(_statement(tool))
    if draw(st.booleans()):
        for name in draw(st.lists(st.sampled_from(SERVER_NAMES["web"]), min_size=1, unique=True)):
            tool = Tool("web", name, draw(params(KINDS)), draw(st.sampled_from((*RISKS, None))))
            tools.append(tool)
            lines.append(_statement(tool))
    files: list[tuple[str, str]] = []
    if draw(st.booleans()):
        listed = draw(st.lists(_listed(), min_size=1, max_size=3, unique_by=lambda tool: tool.name))
        tools += listed
        lines += ['catalog "hub.json" as hub', draw(st.sampled_from(("server hub {}", "server hub { trust hints }")))]
        files.append(("hub.json", json.dumps({"tools": [_listing(tool) for tool in listed]}, sort_keys=True)))
    shelf = Shelf(tuple(tools), tuple(lines), tuple(files))
    if draw(st.booleans()):
        line = f"risk {draw(st.sampled_from(RISKS))} = {draw(st.sampled_from([tool.ref for tool in tools]))}"
        shelf = Shelf(shelf.tools, (*shelf.lines, line), shelf.files)
    return shelf


@st.composite
def _listed(draw: st.DrawFn) -> Tool:
    hints = draw(st.dictionaries(st.sampled_from(("readOnlyHint", "destructiveHint", "openWorldHint")), st.booleans()))
    name = draw(st.sampled_from(SERVER_NAMES["hub"]))
    return Tool("hub", name, draw(listed_params()), None, True, tuple(sorted(hints.items())), draw(rarely(5)))


def _listing(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "annotations": dict(tool.hints),
        "inputSchema": {
            "type": "object",
            "properties": {param.name: param.schema() for param in tool.params},
            "required": [param.name for param in tool.params if not param.optional],
            "additionalProperties": tool.open,
        },
    }


def _statement(tool: Tool) -> str:
    risk = f" risk {tool.risk}" if tool.risk else ""
    return f"tool {tool.ref}({', '.join(param.statement() for param in tool.params)}){risk}"
