"""From root files to all that one policy is made of: its layers, their imports and catalogues, each read once.

In: the layers' root sources, highest first, the policy itself last. Out: `Gathered`, and what went wrong.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from policy_lang import ast, codes
from policy_lang.catalog.mcp import CatalogError, ToolListing, read_tools
from policy_lang.diagnostics import Diagnostic, Label
from policy_lang.files import ReadBytes, read_bytes, read_source
from policy_lang.parse import parse
from policy_lang.source import Source, Span

MAX_CATALOG_BYTES = 16 * 1024 * 1024
"""The largest tool catalogue that is read, in bytes."""

MAX_FILES = 1_000
"""The most files that one policy may be made of."""

MAX_IMPORT_DEPTH = 50
"""The longest chain of imports."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedFile:
    """A parsed file, where it lies, and what it imports. Compared by identity: a file is read once.

    `folder`: relative imports and catalogues start here. `imports`: alias (None without `as`) and file.
    `is_root`: the first file of its layer.
    """

    file: ast.File
    folder: Path
    path: Path | None
    layer: int
    is_root: bool
    imports: list[tuple[ast.Import, "LoadedFile"]] = field(default_factory=list["tuple[ast.Import, LoadedFile]"])
    catalogs: list[tuple[ast.Catalog, tuple[ToolListing, ...]]] = field(
        default_factory=list[tuple[ast.Catalog, tuple[ToolListing, ...]]]
    )

    @property
    def source(self) -> Source:
        """The text it was parsed from."""
        return self.file.source


AGENTS_ONLY = ast.Edition | ast.Import | ast.Agent
"""The declarations of a file that can be judged by itself."""


def stands_alone(file: ast.File) -> bool:
    """Whether nothing but agents is declared, so that an earlier compilation may have judged the file."""
    return all(isinstance(node, AGENTS_ONLY) for node in file.declarations)


@dataclass(frozen=True, slots=True)
class Root:
    """The root of a layer: its text, the folder that its relative paths start at, its path if it has one."""

    source: Source
    folder: Path
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """`layers` highest first, the policy itself last; in each the root first, then imports as first met."""

    layers: tuple[tuple[LoadedFile, ...], ...]

    @property
    def files(self) -> tuple[LoadedFile, ...]:
        """Every file, highest layer first."""
        return tuple(file for layer in self.layers for file in layer)

    @property
    def as_read(self) -> tuple[LoadedFile, ...]:
        """Every file in the order of reading, imports before what imports them: the second of two like names is the last."""
        return tuple(file for layer in self.layers for file in _imports_first(layer))

    @property
    def lowest(self) -> int:
        """The index of the layer of the policy itself."""
        return len(self.layers) - 1


Read = Callable[[Source], tuple[ast.File, tuple[Diagnostic, ...]]]
"""`parse`, or what stands in for it."""


def gather(
    roots: Sequence[Root], read: Read = parse, bytes_of: ReadBytes = read_bytes
) -> tuple[Gathered, tuple[Diagnostic, ...]]:
    """Read and parse everything that the roots name. Never raises on bad input; the findings say what is missing.

    `bytes_of`: reads each file.
    """
    reader = _Reader(read, bytes_of)
    layers = tuple(reader.layer(number, root) for number, root in enumerate(roots))
    if len(roots) > 1:
        reader.unnamed_neighbours(roots)
    return Gathered(layers), tuple(reader.found)


class _Reader:
    """The state of one walk over the imports: what was read, what is being read, what was found."""

    def __init__(self, read: Read, bytes_of: ReadBytes) -> None:
        self.read = read
        self.bytes_of = bytes_of
        self.found: list[Diagnostic] = []
        self.by_path: dict[Path, LoadedFile] = {}
        self.trail: list[Path] = []
        self.current: list[LoadedFile] = []

    def layer(self, number: int, root: Root) -> tuple[LoadedFile, ...]:
        self.current = []
        key = root.path.resolve() if root.path is not None else None
        if key is not None and key in self.by_path:
            other = self.by_path[key].source
            self._report(codes.FILE_IN_TWO_LAYERS, f"`{root.source.name}` is already a part of this policy", root.source, Span(0, 0),
                         labels=(Label(other, Span(0, 0), "read here before"),))  # fmt: skip
            return (self.by_path[key],)
        self._load(root, number, is_root=True, key=key)
        return tuple(self.current)

    def unnamed_neighbours(self, roots: Sequence[Root]) -> None:
        for root in roots:
            if root.path is None:
                continue
            for other in sorted(root.folder.glob("*.zcpolicy")):
                if other.resolve() not in self.by_path:
                    self._report(codes.UNNAMED_NEIGHBOUR, f"`{other.name}` lies beside this layer, and nothing names it",
                                 root.source, Span(0, 0), help="import it, pass it as a layer, or move it away")  # fmt: skip

    def _load(self, root: Root, layer: int, *, is_root: bool, key: Path | None) -> LoadedFile:
        file, found = self.read(root.source)
        self.found.extend(found)
        loaded = LoadedFile(file, root.folder, root.path, layer, is_root)
        self.current.append(loaded)
        if key is not None:
            self.by_path[key] = loaded
            self.trail.append(key)
        for declaration in file.declarations:
            if isinstance(declaration, ast.Import):
                self._import(loaded, declaration)
            elif isinstance(declaration, ast.Catalog):
                self._catalog(loaded, declaration)
        if key is not None:
            self.trail.pop()
        return loaded

    def _import(self, importer: LoadedFile, node: ast.Import) -> None:
        path = _beside(importer, node.path.value)
        key = _resolved(path)
        if key is None:
            self._report(
                codes.MISSING_IMPORT, f"`{node.path.value}` is not a usable file name", importer.source, node.path.span
            )
        elif key in self.trail:
            chain = [*self.trail[self.trail.index(key) :], key]
            names = " → ".join(f"`{step.name}`" for step in chain)
            self._report(codes.IMPORT_CYCLE, f"imports go in a circle: {names}", importer.source, node.path.span)
        elif key in self.by_path:
            importer.imports.append((node, self.by_path[key]))
        elif len(self.by_path) >= MAX_FILES or len(self.trail) >= MAX_IMPORT_DEPTH:
            bound = f"a policy has at most {MAX_FILES} files, and at most {MAX_IMPORT_DEPTH} that import each other in a row"
            self._report(codes.MISSING_IMPORT, bound, importer.source, node.path.span)
        else:
            source = read_source(path, _shown(importer, node.path.value), self.bytes_of)
            if isinstance(source, Diagnostic):
                self._report(codes.MISSING_IMPORT, f"the import {source.message}", importer.source, node.path.span,
                             help=source.help or "imports are relative to this file")  # fmt: skip
            else:
                root = Root(source, path.parent, path)
                importer.imports.append((node, self._load(root, importer.layer, is_root=False, key=key)))

    def _catalog(self, loaded: LoadedFile, node: ast.Catalog) -> None:
        if node.server is None:
            self._report(codes.CATALOG_WITHOUT_SERVER, f'`catalog "{node.path.value}"` does not say whose tools these are',
                         loaded.source, node.span, help="write `as SERVER` after the file")  # fmt: skip
            return
        data = self.bytes_of(_beside(loaded, node.path.value), MAX_CATALOG_BYTES)
        if isinstance(data, str):
            self._report(codes.MISSING_CATALOG, f"the catalogue `{node.path.value}` {data}", loaded.source, node.path.span,
                         help="catalogues are relative to this file")  # fmt: skip
            return
        try:
            listing = read_tools(data.decode("utf-8"))
        except UnicodeDecodeError:
            self._report(
                codes.BAD_CATALOG, f"the catalogue `{node.path.value}` is not UTF-8", loaded.source, node.path.span
            )
        except CatalogError as error:
            self._report(
                codes.BAD_CATALOG,
                f"the catalogue `{node.path.value}` cannot be used: {error}",
                loaded.source,
                node.path.span,
            )
        else:
            loaded.catalogs.append((node, listing))

    def _report(
        self,
        code: codes.Code,
        message: str,
        source: Source,
        span: Span,
        *,
        labels: tuple[Label, ...] = (),
        help: str | None = None,
    ) -> None:
        self.found.append(Diagnostic(code, message, source, span, labels, help))


def _imports_first(layer: tuple[LoadedFile, ...]) -> Iterator[LoadedFile]:
    seen: set[int] = set()
    within = {id(file) for file in layer}

    def walk(file: LoadedFile) -> Iterator[LoadedFile]:
        if id(file) not in seen and id(file) in within:
            seen.add(id(file))
            for _, imported in file.imports:
                yield from walk(imported)
            yield file

    for file in layer:
        yield from walk(file)


def _beside(loaded: LoadedFile, written: str) -> Path:
    return loaded.folder / written


def _resolved(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return None


def _shown(importer: LoadedFile, written: str) -> str:
    """What diagnostics call an imported file: relative to the folder of the importer's own shown name."""
    return (Path(importer.source.name).parent / written).as_posix()
