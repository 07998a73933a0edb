"""Compiling again after an edit: files that only hold agents are judged once, by content.

In: roots and a `Cache`. Out: `Gathered` in which the agents of unchanged files are stubs (heads without statements),
and what earlier compilations found out about them. What a file's agents were found to be depends on the file itself,
on every file that declares anything besides agents, on the names of all agents, and on the files of the agents that they
narrow or delegate to; the key of a result is the digest of all of that. So equal keys mean equal results.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from policy_lang import ast
from policy_lang.bound import Bound, Kept
from policy_lang.cache import Cache
from policy_lang.checks.usage import names_used_in
from policy_lang.diagnostics import Diagnostic
from policy_lang.files import ReadBytes, read_bytes
from policy_lang.gather import Gathered, LoadedFile, Root, gather, stands_alone
from policy_lang.names.scope import build_scopes
from policy_lang.parse import parse
from policy_lang.source import Source
from zcpolicy.shapes import Body, BodyOrigins, Origins, ProgramData


@dataclass(frozen=True, slots=True)
class Head:
    """A file whose agents have no statements; whom each of them delegates to, as written."""

    file: ast.File
    delegates: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Result:
    """What was found out about the agents of one file.

    `lowered`: by full name. `findings`: warnings that nobody silenced. `granted`: tools that its roots allow.
    `used`: the names that its agents use, by what they name.
    """

    lowered: dict[str, tuple[Body, BodyOrigins]]
    findings: tuple[Diagnostic, ...]
    granted: frozenset[int]
    used: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """`keys`: under which key the result of each file is to be kept, for files that were judged anew."""

    gathered: Gathered
    found: tuple[Diagnostic, ...]
    kept: Kept
    keys: tuple[tuple[LoadedFile, str], ...]


def prepare(roots: Sequence[Root], cache: Cache, bytes_of: ReadBytes = read_bytes) -> Prepared:
    """Read heads where they are known and results where they hold; parse whatever else is needed."""
    reader = _Reader(cache)
    while True:
        gathered, found = gather(roots, reader.read, bytes_of)
        files = _Files(gathered, reader)
        results = {id(file): result for file in files.alone if (result := files.result(file)) is not None}
        wanted = files.needed(results)
        if not wanted:
            break
        reader.whole |= wanted
    stubs = [file for file in files.alone if id(file) in results and files.is_stub(file)]
    kept = _union(results[id(file)] for file in stubs)
    anew = tuple((file, files.key(file)) for file in files.alone if id(file) not in results)
    return Prepared(gathered, found, kept, anew)


class _Reader:
    """Parses a file, or takes its head; `whole`: the keys of files that must be parsed."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.whole: set[str] = set()
        self.heads: dict[str, Head] = {}
        self._parsed: dict[str, tuple[ast.File, tuple[Diagnostic, ...]]] = {}

    def key(self, source: Source) -> str:
        return self.cache.key("head", source.name, source.text)

    def read(self, source: Source) -> tuple[ast.File, tuple[Diagnostic, ...]]:
        key = self.key(source)
        if key not in self.whole:
            head = self.heads.get(key) or self.cache.get(key, {source.name: source})
            if isinstance(head, Head):
                self.heads[key] = head
                return head.file, ()
        if key not in self._parsed:
            self._parsed[key] = file, found = parse(source)
            if not found and stands_alone(file):
                self.cache.put(key, _head(file))
        self.whole.add(key)
        return self._parsed[key]


class _Files:
    """What the results of one policy's files depend on."""

    def __init__(self, gathered: Gathered, reader: _Reader) -> None:
        self._reader, self._gathered = reader, gathered
        self._contents = {id(file): reader.key(file.source) for file in gathered.files}
        self.alone = [file for file in gathered.files if stands_alone(file.file)]
        self._scopes, _ = build_scopes(gathered)
        self._links = {id(file): frozenset(self._linked(file)) for file in gathered.files}
        self._environment = self._of_everybody()

    def is_stub(self, file: LoadedFile) -> bool:
        return self._contents[id(file)] not in self._reader.whole

    def key(self, file: LoadedFile) -> str:
        linked = sorted(self._contents[number] for number in self._links[id(file)])
        return self._reader.cache.key("result", self._environment, self._contents[id(file)], *linked)

    def result(self, file: LoadedFile) -> Result | None:
        sources = {one.source.name: one.source for one in self._gathered.files}
        found = self._reader.cache.get(self.key(file), sources)
        return found if isinstance(found, Result) else None

    def needed(self, results: dict[int, Result]) -> set[str]:
        """The contents that have to be parsed: of files without a result, of those that these look at, and so on."""
        todo = [id(file) for file in self._gathered.files if id(file) not in results]
        numbers: set[int] = set()
        while todo:
            number = todo.pop()
            if number not in numbers:
                numbers.add(number)
                todo.extend(self._links.get(number, ()))
        return {self._contents[number] for number in numbers} - self._reader.whole

    def _linked(self, file: LoadedFile) -> Iterator[int]:
        """The files of the agents that this file's agents narrow or delegate to, and of those that these narrow."""
        head = self._reader.heads.get(self._contents[id(file)])
        delegates = head.delegates if head is not None else _delegates(file.file)
        for node in file.file.declarations:
            if isinstance(node, ast.Agent):
                for written in (node.name.text, *delegates.get(node.name.text, ())):
                    yield from self._chain(file, written)

    def _chain(self, file: LoadedFile, written: str) -> Iterator[int]:
        passed: set[str] = set()
        full = self._scopes.visible.get((id(file), "agent", written))
        while full is not None and full not in passed:
            passed.add(full)
            node, home = self._scopes.declared["agent"][full]
            yield id(home)
            parent = node.narrows if isinstance(node, ast.Agent) else None
            full = self._scopes.visible.get((id(home), "agent", parent.text)) if parent is not None else None

    def _of_everybody(self) -> str:
        """A digest of what every agent may depend on: files with other declarations, who imports whom, all agents."""
        alone = {id(file) for file in self.alone}
        parts: list[str] = []
        for number, layer in enumerate(self._gathered.layers):
            for file in layer:
                parts += [str(number), str(file.is_root), file.source.name]
                parts += [
                    f"{node.prefix.text if node.prefix else ''}={other.source.name}" for node, other in file.imports
                ]
                parts += [repr(listing) for _, listing in file.catalogs]
                parts += [self._contents[id(file)]] if id(file) not in alone else list(_names(file.file))
        return self._reader.cache.key("everybody", *parts)


def _names(file: ast.File) -> Iterator[str]:
    for node in file.declarations:
        if isinstance(node, ast.Agent):
            yield f"{node.name.text}<{node.narrows.text if node.narrows else ''}"


def _delegates(file: ast.File) -> dict[str, tuple[str, ...]]:
    return {
        node.name.text: tuple(
            name.text for said in node.body.statements if isinstance(said, ast.Delegate) for name in said.agents
        )
        for node in file.declarations
        if isinstance(node, ast.Agent)
    }


def _head(file: ast.File) -> Head:
    emptied = tuple(
        replace(node, body=ast.Body((), node.body.span)) if isinstance(node, ast.Agent) else node
        for node in file.declarations
    )
    return Head(ast.File(file.source, emptied, ()), _delegates(file))


def _union(results: Iterable[Result]) -> Kept:
    found = list(results)
    lowered = {name: pair for result in found for name, pair in result.lowered.items()}
    return Kept(
        frozenset(lowered),
        lowered,
        tuple(finding for result in found for finding in result.findings),
        frozenset[int]().union(*(result.granted for result in found)),
        frozenset[tuple[str, str]]().union(*(result.used for result in found)),
    )


def result_of(
    file: LoadedFile, bound: Bound, found: Iterable[Diagnostic], data: ProgramData, origins: Origins
) -> Result:
    """What a compilation without errors found out about the agents of one file."""
    bodies = {name: body for name, body in bound.agents.items() if body.file is file}
    spans = [body.node.span for body in bodies.values()]
    return Result(
        {name: (data["agents"][name]["body"], origins["agents"][name]) for name in bodies},
        tuple(
            finding
            for finding in found
            if finding.source is file.source
            and any(span.start <= finding.span.start and finding.span.end <= span.end for span in spans)
        ),
        frozenset[int]().union(
            *(
                bound.ids(rule.tools)
                for body in bodies.values()
                if body.kind == "agent"
                for rule, _ in body.every(ast.Rule)
                if rule.effect == "allow"
            )
        ),
        frozenset(names_used_in(bound, bodies.values())),
    )


def keep(
    prepared: Prepared, cache: Cache, bound: Bound, found: Iterable[Diagnostic], data: ProgramData, origins: Origins
) -> None:
    """Keep what this compilation found out about files that it judged anew."""
    for file, key in prepared.keys:
        cache.put(key, result_of(file, bound, found, data, origins))
