"""From files to a `World`.

In: paths, or a text. Out: every file of the policy, parsed, with its imports, catalogues and layer.
"""

from pathlib import Path

from policy_lang import ast
from policy_lang.catalog.mcp import read_tools
from policy_lang.parse import parse
from policy_lang.source import Source
from tests.reference.written import Page, World


def read(path: Path, layers: tuple[Path, ...] = ()) -> World:
    """A policy from its file, under its layers (highest first)."""
    roots = [Source(str(file), file.read_text("utf-8")) for file in (*layers, path)]
    return _world([(source, Path(source.name)) for source in roots])


def read_text(text: str, folder: Path = Path()) -> World:
    """A policy from its text; `folder` is where imports and catalogues start."""
    return _world([(Source("<text>", text), folder / "<text>")])


def _world(roots: list[tuple[Source, Path]]) -> World:
    pages: dict[Path, Page] = {}
    above: Page | None = None
    for layer, (source, path) in enumerate(roots):
        above = _page(source, path, layer, above, pages)
    assert above is not None
    return World(list(pages.values()), above)


def _page(source: Source, path: Path, layer: int, above: Page | None, pages: dict[Path, Page]) -> Page:
    tree, found = parse(source)
    assert not any(one.code.severity == "error" for one in found), [one.message for one in found]
    page = pages[path.resolve()] = Page(tree, layer, above=above)
    for declaration in tree.declarations:
        if isinstance(declaration, ast.Import):
            target = path.parent / declaration.path.value
            imported = pages.get(target.resolve())
            if imported is None:
                imported = _page(Source(str(target), target.read_text("utf-8")), target, layer, above, pages)
            page.imports.append((declaration.prefix.text if declaration.prefix else None, imported))
        elif isinstance(declaration, ast.Catalog):
            assert declaration.server is not None
            text = (path.parent / declaration.path.value).read_text("utf-8")
            page.catalogs.append((declaration.server.text, read_tools(text)))
    return page
