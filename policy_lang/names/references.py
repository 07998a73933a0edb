"""Tool references bound to the catalogue.

In: tool sets as written, and where. Out: sets of tool ids, and a finding for every reference that names no tool,
with the nearest name, the family's pattern, or the server that has it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from policy_lang import ast, codes
from policy_lang.diagnostics import Diagnostic, Edit, Fix
from policy_lang.gather import LoadedFile
from policy_lang.names.scope import Scopes
from policy_lang.nearest import nearest
from policy_lang.source import Span
from policy_lang.syntax.hints import APPROVAL_WORDS
from policy_lang.tools import Catalogue, fits_glob, show

MAX_GROUPS_DEEP = 100
"""How deep groups may stand in groups."""

JOINTS = ("__", "_", "-", ".", "/", ":")
"""What other systems write between a server and its tool."""


@dataclass(slots=True)
class Binder:
    """Binds tool sets; `sets` by the identity of the node, `found` the findings so far."""

    catalogue: Catalogue
    scopes: Scopes
    lowest: int
    sets: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    found: list[Diagnostic] = field(default_factory=list[Diagnostic])
    _open: list[str] = field(default_factory=list[str])

    def bind(self, node: ast.ToolSet, file: LoadedFile, *, restricts: bool = False) -> frozenset[int]:
        """The ids that a set means. `restricts`: it stands in a ceiling or a skill, where unknown tools are warnings."""
        known = self.sets.get(id(node))
        if known is not None:
            return known
        lenient = restricts or not file.is_root or file.layer < self.lowest
        wanted: frozenset[int] = frozenset()
        for item in node.items:
            wanted |= self._item(item, file, lenient)
        left = wanted
        for item in node.excepted:
            before = len(self.found)
            removed = self._item(item, file, lenient)
            if not removed & wanted and len(self.found) == before and wanted:
                text = file.source.at(item.span)
                self._report(
                    codes.EXCEPT_REMOVES_NOTHING,
                    f"`except {text}` removes nothing",
                    file,
                    item,
                    "drop it, or name a tool of the set",
                )
            left -= removed
        if wanted and not left:
            self._report(
                codes.EMPTY_SET,
                "`except` removes every tool of this set",
                file,
                node,
                "drop the statement, or write `none`",
            )
        self.sets[id(node)] = left
        return left

    def _item(self, item: ast.ToolItem, file: LoadedFile, lenient: bool) -> frozenset[int]:
        match item:
            case ast.AnyTool():
                return self.catalogue.everything()
            case ast.GroupRef(name=name):
                return self._group(item, name, file)
            case ast.ToolRef():
                ids = self.catalogue.match(item)
                if not ids:
                    self._unknown(item, file, lenient)
                return ids

    def _group(self, item: ast.GroupRef, name: str, file: LoadedFile) -> frozenset[int]:
        full = self.scopes.visible.get((id(file), "group", name))
        if full is None:
            self._report_name(codes.UNKNOWN_NAME, "group", name, item, file, self.scopes.candidates(file, "group"), "@")
            return frozenset()
        node, owner = self.scopes.declared["group"][full]
        if full in self._open:
            if self._open[0] == full:  # one finding for the whole circle
                names = " → ".join(f"`@{step}`" for step in [*self._open[self._open.index(full) :], full])
                self._report(codes.GROUP_CYCLE, f"groups go in a circle: {names}", file, item, None)
            return frozenset()
        if len(self._open) >= MAX_GROUPS_DEEP:
            self._report(codes.TOO_DEEP, f"groups stand more than {MAX_GROUPS_DEEP} deep in groups", file, item, None)
            return frozenset()
        if not isinstance(node, ast.Group):
            return frozenset()
        self._open.append(full)
        ids = self.bind(node.tools, owner)
        self._open.pop()
        return ids

    def _unknown(self, ref: ast.ToolRef, file: LoadedFile, lenient: bool) -> None:
        written = file.source.at(ref.span)
        better = next(iter(self._instead(ref, file)), None)
        code = codes.UNKNOWN_TOOL if better is not None or not lenient else codes.UNKNOWN_TOOL_HERE
        kind = (
            "matches no tool"
            if ref.name.is_pattern or (ref.server is not None and ref.server.is_pattern)
            else "is not a tool"
        )
        if better is None:
            help_text = self._where_tools_come_from(ref)
            self.found.append(Diagnostic(code, f"`{written}` {kind}", file.source, ref.span, help=help_text))
            return
        text, why = better
        fix = Fix((Edit(file.source, ref.span, text),), safe=False)
        self.found.append(
            Diagnostic(
                code,
                f"`{written}` {kind}",
                file.source,
                ref.span,
                help=f"{why} `{text}`" + "?" * why.startswith("did"),
                fix=fix,
            )
        )

    def _instead(self, ref: ast.ToolRef, file: LoadedFile) -> Iterator[tuple[str, str]]:
        """What was probably meant, best first: text, and the words before it."""
        if ref.server is None:
            yield from self._instead_of_host(ref.name, file)
        elif not ref.server.is_pattern:
            yield from self._instead_of_server(ref.server.text, ref.name)

    def _instead_of_host(self, name: ast.Pattern, file: LoadedFile) -> Iterator[tuple[str, str]]:
        if not name.is_pattern and self._has_family(None, name.text):
            yield f"{name.text}_*", "for its whole family write"
        if not name.is_pattern and (id(file), "group", name.text) in self.scopes.visible:
            yield f"@{name.text}", "it is a group: write"
        yield from self._joined(name)
        elsewhere = (tool.key for tool in self.catalogue.tools if tool.key[0] is not None)
        found = next((key for key in elsewhere if self._fits(name, key[1])), None)
        if found is not None and name.is_pattern:
            yield f"{found[0]}/{name.text}", "`*` without a server reaches host tools only; write"
        elif found is not None:
            yield show(found), "it is a tool of a server: write"
        near = None if name.is_pattern else nearest(name.text, self.catalogue.ids.get(None, {}))
        if near is not None:
            yield show((None, near)), "did you mean"

    def _joined(self, name: ast.Pattern) -> Iterator[tuple[str, str]]:
        """A server alone, or a server and a tool as hosts join them: `hub`, `hub__get`, `mcp__hub__*`, `"hub/get"`."""
        text = name.text.removeprefix("mcp__")
        for server in self.catalogue.servers:
            if text == server:
                yield f"{show((None, server))}/*", "it is a server: for its tools write"
                continue
            joint = next((joint for joint in JOINTS if text.startswith(server + joint)), None)
            rest = text[len(server) + len(joint) :] if joint is not None else ""
            pattern = ast.Pattern(rest, name.quoted)
            if any(self._fits(pattern, known) for known in self.catalogue.ids.get(server, {})):
                written = rest if pattern.is_pattern else show((None, rest))
                yield f"{show((None, server))}/{written}", "it is a tool of a server: write"

    def _instead_of_server(self, server: str, name: ast.Pattern) -> Iterator[tuple[str, str]]:
        if server not in self.catalogue.servers:
            near = nearest(server, self.catalogue.servers)
            if near is not None:
                yield show((near, name.text)) if name.quoted else f"{near}/{name.text}", "did you mean"
        elif not name.is_pattern:
            if self._has_family(server, name.text):
                yield f"{server}/{name.text}_*", "for its whole family write"
            near = nearest(name.text, self.catalogue.ids.get(server, {}))
            if near is not None:
                yield show((server, near)), "did you mean"

    def _has_family(self, server: str | None, name: str) -> bool:
        return any(known.startswith(f"{name}_") for known in self.catalogue.ids.get(server, {}))

    def _fits(self, pattern: ast.Pattern, name: str) -> bool:
        return fits_glob(pattern.text, name) if pattern.is_pattern else pattern.text == name

    def _where_tools_come_from(self, ref: ast.ToolRef) -> str:
        server = ref.server
        if server is not None and not server.is_pattern and server.text not in self.catalogue.servers:
            return f"declare server `{server.text}` with a `catalog` or `tool` statement"
        if server is None and ref.name.text in {"all", "everything"}:
            return "every tool is `any`"
        if server is None and ref.name.text in APPROVAL_WORDS:
            return "it is no call that could come first: to be asked, write `ask TOOL`"
        return "declare it with a `tool` statement, or add its catalogue"

    def _report(
        self, code: codes.Code, message: str, file: LoadedFile, node: ast.ToolItem | ast.ToolSet, help_text: str | None
    ) -> None:
        self.found.append(Diagnostic(code, message, file.source, node.span, help=help_text))

    def _report_name(
        self, code: codes.Code, space: str, name: str, node: ast.ToolItem, file: LoadedFile, known: list[str], sign: str
    ) -> None:
        self.found.append(unknown_name(code, space, name, node.span, file, known, sign))


def unknown_name(
    code: codes.Code, space: str, name: str, span: Span, file: LoadedFile, known: list[str], sign: str = ""
) -> Diagnostic:
    """`unknown bundle `forg``, with the nearest name and the edit that writes it."""
    behind_prefix = (one for one in known if one.endswith(f".{name}"))
    near = next(behind_prefix, None) or nearest(name, known)
    fix = Fix((Edit(file.source, span, sign + near),), safe=False) if near else None
    article = "an" if space == "agent" else "a"
    declared = ", as in `bundle NAME { server SERVER }`" if space == "bundle" else ""
    statement = space.removesuffix(" fact")
    advice = f"did you mean `{sign}{near}`?" if near else f"declare it with {article} `{statement}` statement{declared}"
    return Diagnostic(code, f"unknown {space} `{sign}{name}`", file.source, span, help=advice, fix=fix)
