"""What a policy's files say: names, tools and bodies, looked up by walking the files each time.

In: parsed files. Out: `World`. Nothing is checked: the policy is one that compiles.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from policy_lang import ast
from policy_lang.catalog.mcp import ToolListing
from tests.reference.values import (
    Plain,
    ToolName,
    fits,
    highest,
    hinted_class,
    kind_schema,
    plain,
    refined,
    tool_name,
)
from zcpolicy.program import Schema


@dataclass(eq=False)
class Page:
    """One file: its tree, the pages it imports with their prefixes, its catalogues, the layer it belongs to."""

    tree: ast.File
    layer: int
    imports: list[tuple[str | None, "Page"]] = field(default_factory=list[tuple[str | None, "Page"]])
    catalogs: list[tuple[str, tuple[ToolListing, ...]]] = field(
        default_factory=list[tuple[str, tuple[ToolListing, ...]]]
    )
    above: "Page | None" = None  # the root of the layer above


@dataclass(frozen=True)
class Told:
    """One statement of a body, and the page whose names it uses."""

    statement: ast.Statement
    page: Page


@dataclass(frozen=True)
class Known:
    """One tool of the policy's catalogue."""

    name: ToolName
    schema: Schema
    risk: ast.RiskClass
    hints: dict[str, bool]  # empty without `trust hints`
    runs_tools: bool


NamedDeclaration = ast.Let | ast.Group | ast.Bundle | ast.Skill | ast.Profile | ast.Agent


class World:
    """All files of one policy. `root` is the page of its lowest layer; names are looked up from there."""

    def __init__(self, pages: list[Page], root: Page) -> None:
        self.pages = pages
        self.root = root

    # --- names ----------------------------------------------------------------------------------------

    def find(self, of: type[NamedDeclaration], name: str, page: Page) -> tuple[NamedDeclaration, Page]:
        """The declaration that a name means on a page. Raises `KeyError` where there is none."""
        for found in self._found(of, name, page):
            return found
        raise KeyError(name)

    def _found(self, of: type[NamedDeclaration], name: str, page: Page) -> Iterator[tuple[NamedDeclaration, Page]]:
        for declaration in page.tree.declarations:
            if isinstance(declaration, of) and declaration.name.text == name:
                yield declaration, page
        for prefix, imported in page.imports:
            if prefix is None:
                yield from self._found(of, name, imported)
            elif name.startswith(prefix + "."):
                yield from self._found(of, name.removeprefix(prefix + "."), imported)
        if page.above is not None:
            yield from self._found(of, name, page.above)

    def items(self, right: ast.Right, page: Page) -> list[Plain]:
        """The values on the right of a test: a list means any of its items."""
        if isinstance(right, ast.LetRef):
            let, home = self.find(ast.Let, right.name, page)
            assert isinstance(let, ast.Let)
            return self.items(let.value, home)
        assert not isinstance(right, ast.Operand)
        value = plain(right)
        return value if isinstance(value, list) else [value]

    # --- tools ----------------------------------------------------------------------------------------

    def tool(self, name: ToolName) -> Known | None:
        """A tool of the catalogue, or None: unknown."""
        listing = next((one for server, one in self._listings() if (server, one.name) == name), None)
        statements = [tool for tool in self._all(ast.Tool) if tool_name(tool.ref) == name]
        if listing is None and not statements:
            return None
        schema: Schema = (
            listing.schema if listing else {"kind": "object", "fields": {}, "required": [], "extra": "deny"}
        )
        for statement in statements:
            schema = refined(schema, statement, listed=listing is not None)
        hints = dict(listing.hints) if listing and self._trusts(name[0]) else {}
        said: list[ast.RiskClass] = [tool.risk for tool in statements if tool.risk is not None]
        risk = self._operators_class(name) or highest(said) or hinted_class(hints)
        return Known(name, schema, risk, hints, any(tool.runs_tools for tool in statements))

    def every_tool(self) -> list[Known]:
        """All tools of the catalogue, in no order that matters."""
        names: list[ToolName] = [(server, one.name) for server, one in self._listings()]
        names += [tool_name(tool.ref) for tool in self._all(ast.Tool)]
        known = [self.tool(name) for name in dict.fromkeys(names)]
        return [tool for tool in known if tool is not None]

    def _operators_class(self, name: ToolName) -> ast.RiskClass | None:
        fitting: list[ast.RiskClass] = [
            declaration.risk
            for page in self.pages
            for declaration in page.tree.declarations
            if isinstance(declaration, ast.Risk) and self.covers(declaration.tools, page, name)
        ]
        return highest(fitting)

    def _trusts(self, server: str | None) -> bool:
        highest = [page for page in self.pages if page.layer == 0]
        return any(
            isinstance(one, ast.Server) and one.trust_hints and one.name.text == server
            for page in highest
            for one in page.tree.declarations
        )

    def _listings(self) -> Iterator[tuple[str, ToolListing]]:
        for page in self.pages:
            for server, listings in page.catalogs:
                for listing in listings:
                    yield server, listing

    def _all(self, of: type[ast.Tool]) -> Iterator[ast.Tool]:
        for page in self.pages:
            for declaration in page.tree.declarations:
                if isinstance(declaration, of):
                    yield declaration

    def covers(self, tools: ast.ToolSet, page: Page, name: ToolName) -> bool:
        """Whether a known tool is in a set: (A ∪ B) minus (C ∪ D)."""
        inside = any(self._item_covers(item, page, name) for item in tools.items)
        return inside and not any(self._item_covers(item, page, name) for item in tools.excepted)

    def _item_covers(self, item: ast.ToolItem, page: Page, name: ToolName) -> bool:
        match item:
            case ast.AnyTool():
                return True
            case ast.GroupRef():
                group, home = self.find(ast.Group, item.name, page)
                assert isinstance(group, ast.Group)
                return self.covers(group.tools, home, name)
            case ast.ToolRef():
                if item.server is None or name[0] is None:
                    return item.server is None and name[0] is None and fits(item.name, name[1])
                return fits(item.server, name[0]) and fits(item.name, name[1])
            case _:
                assert_never(item)

    def connects(self, connect: ast.Connect, page: Page, name: ToolName) -> bool:
        """Whether the tool of an MCP server is in one of the bundles."""
        for written in connect.bundles:
            bundle, _ = self.find(ast.Bundle, written.text, page)
            assert isinstance(bundle, ast.Bundle)
            for item in bundle.items:
                if item.server.text != name[0]:
                    continue
                if item.only is not None and not any(fits(pattern, name[1]) for pattern in item.only):
                    continue
                if item.excepted is not None and any(fits(pattern, name[1]) for pattern in item.excepted):
                    continue
                return True
        return False

    # --- bodies ---------------------------------------------------------------------------------------

    def told(self, body: ast.Body, page: Page) -> list[Told]:
        """The statements of a body, those of its profiles included."""
        found: list[Told] = []
        for statement in body.statements:
            if isinstance(statement, ast.Use):
                for used in statement.profiles:
                    profile, home = self.find(ast.Profile, used.text, page)
                    assert isinstance(profile, ast.Profile)
                    found += self.told(profile.body, home)
            else:
                found.append(Told(statement, page))
        return found

    def chain(self, agent: str) -> list[tuple[ast.Agent, Page]]:
        """An agent and those it narrows, the granting one last. Raises `KeyError` for an unknown agent."""
        declaration, page = self.find(ast.Agent, agent, self.root)
        assert isinstance(declaration, ast.Agent)
        links = [(declaration, page)]
        while declaration.narrows is not None:
            declaration, page = self.find(ast.Agent, declaration.narrows.text, page)
            assert isinstance(declaration, ast.Agent)
            links.append((declaration, page))
        return links

    def ceilings(self) -> list[list[Told]]:
        """Every ceiling of every file and layer."""
        return [
            self.told(declaration.body, page)
            for page in self.pages
            for declaration in page.tree.declarations
            if isinstance(declaration, ast.Ceiling)
        ]

    def skill(self, name: str) -> list[Told]:
        """What a skill says. Raises `KeyError` for an unknown one."""
        declaration, page = self.find(ast.Skill, name, self.root)
        assert isinstance(declaration, ast.Skill)
        return self.told(declaration.body, page)

    def context_kind(self, name: str) -> Schema | None:
        """The kind that a `context` statement gives a fact, or None."""
        for page in self.pages:
            for declaration in page.tree.declarations:
                if isinstance(declaration, ast.Context):
                    for one in declaration.fields:
                        if one.name.text == name:
                            return kind_schema(one.kind)
        return None
