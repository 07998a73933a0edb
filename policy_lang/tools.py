"""The tools that a policy speaks of, and what its references mean.

In: `Gathered`. Out: a `Catalogue`, sorted as the program's tools are, and findings. A `tool` statement for a
catalogued tool refines it and never loosens it (`kinds/refine.py`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from policy_lang import ast, codes
from policy_lang.catalog.mcp import ToolListing
from policy_lang.diagnostics import Diagnostic, Label
from policy_lang.gather import Gathered, LoadedFile
from policy_lang.kinds.declared import declared_schema
from policy_lang.kinds.refine import refine
from policy_lang.source import Source, Span
from zcpolicy.shapes import Schema

Key = tuple[str | None, str]
"""A tool's identity: (server, or None for the host's own; name)."""

_PLAIN = re.compile(r"[^\W\d][\w-]*")


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """One tool. `risk`: of its `tool` statement. `hints`: as listed, under their MCP names. `source`, `span`: where from.

    `layer`: the one that it comes from; `below`: whether its `tool` statement stands in a lower one, and only tightens.
    """

    key: Key
    schema: Schema
    hints: dict[str, bool]
    risk: ast.RiskClass | None
    runs_tools: bool
    source: Source
    span: Span
    statement: ast.Tool | None
    layer: int
    below: bool = False

    @property
    def shown(self) -> str:
        """As the language writes it."""
        return show(self.key)


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """`tools` sorted by (server or "", name), host tools first: a tool's index is its id. `ids` by server and name."""

    tools: tuple[ToolInfo, ...]
    servers: dict[str, tuple[Source, Span]]
    trusted: frozenset[str]  # servers with `trust hints`
    ids: dict[str | None, dict[str, int]]
    _memo: dict[ast.Pattern | None, dict[ast.Pattern, frozenset[int]]] = field(
        default_factory=dict["ast.Pattern | None", dict[ast.Pattern, frozenset[int]]], repr=False
    )

    def find(self, key: Key) -> int | None:
        """The id of a tool, or `None`."""
        return self.ids.get(key[0], {}).get(key[1])

    def match(self, ref: ast.ToolRef) -> frozenset[int]:
        """The ids of the tools that a reference names; empty for none."""
        by_name = self._memo.setdefault(ref.server, {})
        found = by_name.get(ref.name)
        if found is None:
            found = by_name[ref.name] = frozenset(self._scan(ref))
        return found

    def everything(self) -> frozenset[int]:
        """What `any` means."""
        return frozenset(range(len(self.tools)))

    def _scan(self, ref: ast.ToolRef) -> Iterator[int]:
        for server in self.servers_of(ref.server):
            names = self.ids.get(server, {})
            if ref.name.is_pattern:
                yield from (number for name, number in names.items() if fits_glob(ref.name.text, name))
            elif ref.name.text in names:
                yield names[ref.name.text]

    def servers_of(self, pattern: ast.Pattern | None) -> tuple[str | None, ...]:
        """The servers (or the host, `None`) that the part before the slash means."""
        if pattern is None or not pattern.is_pattern:
            return (None if pattern is None else pattern.text,)
        return tuple(name for name in self.servers if fits_glob(pattern.text, name))


def fits_glob(pattern: str, name: str) -> bool:
    """Whether `*` as any run of characters, also the empty one, makes `pattern` the whole `name`. Linear: leftmost pieces."""
    first, *middle, last = pattern.split("*")
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in middle:
        at = name.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def show(key: Key) -> str:
    """A tool's identity as the language writes it."""
    written = [part if _PLAIN.fullmatch(part) else quote(part) for part in key if part is not None]
    return "/".join(written)


def quote(text: str) -> str:
    """A string literal of the language."""
    out = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{out}"'


@dataclass(slots=True)
class _Listed:
    listing: ToolListing
    source: Source
    span: Span
    layer: int


def build_catalogue(gathered: Gathered) -> tuple[Catalogue, tuple[Diagnostic, ...]]:
    """All tools of all files: MCP lists first, then `tool` statements, which add or refine."""
    found: list[Diagnostic] = []
    listed = dict(_listed(gathered, found))
    tools = {key: _from_list(key, entry) for key, entry in listed.items()}
    for loaded in gathered.as_read:
        for node in loaded.file.declarations:
            if isinstance(node, ast.Tool):
                _declare(tools, loaded, node, found)
    ordered = tuple(tools[key] for key in sorted(tools, key=lambda key: (key[0] is not None, key[0] or "", key[1])))
    ids: dict[str | None, dict[str, int]] = {None: {}}
    for number, tool in enumerate(ordered):
        ids.setdefault(tool.key[0], {})[tool.key[1]] = number
    servers, trusted = _servers(gathered)
    return Catalogue(ordered, servers, trusted, ids), tuple(found)


def _listed(gathered: Gathered, found: list[Diagnostic]) -> Iterator[tuple[Key, _Listed]]:
    owner: dict[str, tuple[Source, Span]] = {}
    for loaded in gathered.as_read:
        for node, listings in loaded.catalogs:
            if node.server is None:
                continue
            server = node.server.text
            if server in owner:
                first = Label(*owner[server], "first catalogue here")
                found.append(
                    Diagnostic(
                        codes.DUPLICATE_NAME,
                        f"server `{server}` already has a catalogue",
                        loaded.source,
                        node.span,
                        (first,),
                    )
                )
                continue
            owner[server] = (loaded.source, node.span)
            for listing in listings:
                yield (server, listing.name), _Listed(listing, loaded.source, node.span, loaded.layer)


def _from_list(key: Key, entry: _Listed) -> ToolInfo:
    listing = entry.listing
    return ToolInfo(key, listing.schema, dict(listing.hints), None, False, entry.source, entry.span, None, entry.layer)


def _declare(tools: dict[Key, ToolInfo], loaded: LoadedFile, node: ast.Tool, found: list[Diagnostic]) -> None:
    key: Key = (node.ref.server.text if node.ref.server else None, node.ref.name.text)
    known = tools.get(key)
    if known is not None and known.statement is not None:
        first = Label(known.source, known.span, "first declared here")
        found.append(
            Diagnostic(
                codes.DUPLICATE_NAME, f"tool `{show(key)}` is declared twice", loaded.source, node.span, (first,)
            )
        )
        return
    schema, trouble = declared_schema(node, loaded.source)
    found.extend(trouble)
    below = known is not None and loaded.layer > known.layer
    if known is not None:
        schema, trouble = refine(known.schema, schema, node, loaded.source, show(key), below=below)
        found.extend(trouble)
    hints, layer = (known.hints, known.layer) if known else ({}, loaded.layer)
    tools[key] = ToolInfo(key, schema, hints, node.risk, node.runs_tools, loaded.source, node.span, node, layer, below)


def _servers(gathered: Gathered) -> tuple[dict[str, tuple[Source, Span]], frozenset[str]]:
    places: dict[str, tuple[Source, Span]] = {}
    trusted: set[str] = set()
    for loaded in gathered.files:
        for node in loaded.file.declarations:
            for name, span in _names_server(node):
                places.setdefault(name, (loaded.source, span))
            if isinstance(node, ast.Server) and node.trust_hints and loaded.layer == 0:
                trusted.add(node.name.text)
    return places, frozenset(trusted)


def _names_server(node: ast.Declaration) -> Iterable[tuple[str, Span]]:
    match node:
        case ast.Catalog(server=ast.Pattern(text=name)) | ast.Server(name=ast.Pattern(text=name)):
            return ((name, node.span),)
        case ast.Tool(ref=ast.ToolRef(server=ast.Pattern(text=name))):
            return ((name, node.span),)
        case _:
            return ()
